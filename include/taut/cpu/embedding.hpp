#pragma once
// Lookup of rows by index on dense arrays, and its gradient. The gradient first sorts the indices' positions
// by row, so that threads take rows, and each row is summed in double in the order of the positions.

#include <algorithm>
#include <vector>

#include "../op/embedding.hpp"
#include "array.hpp"
#include "index_check.hpp"

namespace taut {

namespace cpu {

/// The positions at which each row is named, in order: for row r, order[first[r]] to order[first[r + 1] - 1].
struct PositionsByRow {
  std::vector<std::int64_t> first, order;

  PositionsByRow(std::span<const std::int64_t> indices, std::int64_t rows)
      : first(static_cast<std::size_t>(rows) + 1), order(indices.size()) {
    for (const auto row : indices) ++first[static_cast<std::size_t>(row) + 1];
    for (std::size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
    auto next = first;
    for (std::size_t i = 0; i < indices.size(); ++i)
      order[static_cast<std::size_t>(next[static_cast<std::size_t>(indices[i])]++)] =
          static_cast<std::int64_t>(i);
  }

  std::span<const std::int64_t> of(std::int64_t row) const {
    const auto* const begin = order.data();
    return {begin + first[static_cast<std::size_t>(row)], begin + first[static_cast<std::size_t>(row) + 1]};
  }
};

}  // namespace cpu

template <class E>
BasicCpuArray<E> eval(const op::Embedding& op, const BasicCpuArray<E>& weight,
                      const BasicCpuArray<std::int64_t>& indices) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(weight.shape(), indices.shape()));
  cpu::check_indices(op.name, "index", "rows", indices.span(), weight.shape()[0]);
  const std::int64_t n = weight.shape()[1];
  const E* const from = weight.data();
  const std::int64_t* const rows = indices.data();
  E* const to = out.mutable_data();
  cpu::parallel_for(indices.shape().size(), 1 + cpu::default_grain / (n + 1),
                    [=](std::int64_t begin, std::int64_t end) {
                      for (auto i = begin; i < end; ++i) std::copy_n(from + rows[i] * n, n, to + i * n);
                    });
  return out;
}

template <class E>
BasicCpuArray<E> eval(const op::EmbeddingGradient& op, const BasicCpuArray<E>& g,
                      const BasicCpuArray<std::int64_t>& indices) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(g.shape(), indices.shape()));
  cpu::check_indices(op.name, "index", "rows", indices.span(), op.rows);
  const std::int64_t n = g.shape()[-1];
  const E* const from = g.data();
  E* const to = out.mutable_data();
  const cpu::PositionsByRow positions(indices.span(), op.rows);
  cpu::parallel_for(op.rows, 1 + cpu::default_grain / (n + 1), [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> total(static_cast<std::size_t>(n));
    for (auto row = begin; row < end; ++row) {
      std::fill(total.begin(), total.end(), 0.0);
      for (const auto i : positions.of(row))
        for (std::int64_t j = 0; j < n; ++j)
          total[static_cast<std::size_t>(j)] += static_cast<double>(from[i * n + j]);
      std::transform(total.begin(), total.end(), to + row * n,
                     [](double value) { return static_cast<E>(value); });
    }
  });
  return out;
}

}  // namespace taut
