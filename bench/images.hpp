#pragma once
// The images of a workload's data set, behind one type, so that what trains on them is compiled once.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <taut/data/byte_images.hpp>

#include "workload.hpp"

namespace bench {

class Images {
 public:
  /// The first `count` images of MNIST in `directory`/mnist or of CIFAR-10 in
  /// `directory`/cifar-10-batches-bin, prepared as the workload wants them.
  static Images load(const Workload& workload, const std::string& directory, taut::data::Split split,
                     std::int64_t count);

  std::int64_t size() const { return count_; }
  taut::Shape sample_shape() const { return source_->sample_shape(); }
  std::int64_t get(std::int64_t index, std::span<float> values, taut::Rng& rng) const {
    return source_->get(index, values, rng);
  }

  struct Source {
    virtual ~Source() = default;
    virtual std::int64_t size() const = 0;
    virtual taut::Shape sample_shape() const = 0;
    virtual std::int64_t get(std::int64_t index, std::span<float> values, taut::Rng& rng) const = 0;
  };

 private:
  Images(std::shared_ptr<const Source> source, std::int64_t count);

  std::shared_ptr<const Source> source_;
  std::int64_t count_;
};

}  // namespace bench
