#include "images.hpp"

#include <taut/data/augment.hpp>
#include <taut/data/cifar.hpp>
#include <taut/data/mnist.hpp>

#include <algorithm>
#include <utility>

using namespace taut;

namespace bench {
namespace {

template <class D> struct SourceOf final : Images::Source {
  D data;

  explicit SourceOf(D from) : data(std::move(from)) {}
  std::int64_t size() const override { return data.size(); }
  Shape sample_shape() const override { return data.sample_shape(); }
  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const override {
    return data.get(index, values, rng);
  }
};

/// Images as vectors.
template <class D> struct Flat {
  D data;

  std::int64_t size() const { return data.size(); }
  Shape sample_shape() const { return {data.sample_shape().size()}; }
  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
    return data.get(index, values, rng);
  }
};

template <class D> std::shared_ptr<const Images::Source> source(D data) {
  return std::make_shared<SourceOf<D>>(std::move(data));
}

}  // namespace

Images::Images(std::shared_ptr<const Source> source, std::int64_t count)
    : source_(std::move(source)), count_(std::min(count, source_->size())) {}

Images Images::load(const Workload& workload, const std::string& directory, data::Split split,
                    std::int64_t count) {
  using namespace data;
  if (!workload.images()) return {source(Flat<Mnist>{Mnist::load(directory + "/mnist", split)}), count};
  auto cifar = Cifar10::load(directory + "/cifar-10-batches-bin", split);
  if (!workload.normalized()) return {source(std::move(cifar)), count};
  const Normalize normalize{cifar10_mean, cifar10_std};
  if (!workload.augmented() || split == Split::test)
    return {source(Augmented{std::move(cifar), normalize}), count};
  return {source(Augmented{std::move(cifar), RandomCrop{4}, HorizontalFlip{}, normalize}), count};
}

}  // namespace bench
