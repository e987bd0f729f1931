#pragma once
// What a model consists of, as a table to read.

#include <algorithm>
#include <string>

#include "model.hpp"

namespace taut {

namespace detail {

/// A line a tensor, its columns aligned.
class SummaryTable {
 public:
  void add(std::string name, const Shape& shape, bool trained) {
    name_width_ = std::max(name_width_, name.size());
    shape_width_ = std::max(shape_width_, to_string(shape).size());
    (trained ? trained_ : buffered_) += shape.size();
    rows_.push_back({std::move(name), to_string(shape), shape.size(), trained});
  }

  std::string str() const {
    std::string text;
    for (const auto& row : rows_) {
      (text += row.name).append(name_width_ + 2 - row.name.size(), ' ');
      (text += row.shape).append(shape_width_ + 2 - row.shape.size(), ' ');
      text += std::to_string(row.size) + (row.trained ? "\n" : "  not trained\n");
    }
    text += std::to_string(trained_) + " parameters";
    if (buffered_ > 0) text += "; not trained: " + std::to_string(buffered_);
    return text + '\n';
  }

 private:
  struct Row {
    std::string name, shape;
    std::int64_t size;
    bool trained;
  };

  std::vector<Row> rows_;
  std::size_t name_width_ = 0, shape_width_ = 0;
  std::int64_t trained_ = 0, buffered_ = 0;
};

}  // namespace detail

/// A table of a model's tensors, in the order of its fields: name in PyTorch's spelling, shape and how many
/// numbers they hold, and whether they are trained; the last line has the sums.
template <Model M> std::string summary(const M& model) {
  detail::SummaryTable table;
  detail::walk(model, [&](const detail::FieldPath* path, const auto& tensor, bool trained) {
    table.add(path ? path->str() : "", tensor.shape(), trained);
  });
  return table.str();
}

}  // namespace taut
