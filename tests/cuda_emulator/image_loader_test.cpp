// The loader of images that lie on the device against the CPU's: the same batches, to the bit.

#include <taut/cuda/cuda.hpp>
#include <taut/cuda/image_loader.hpp>
#include <taut/data/byte_images.hpp>
#include <taut/data/cifar.hpp>
#include <taut/data/mnist.hpp>
#include <taut/nn/linear.hpp>
#include <taut/optim/sgd.hpp>
#include <taut/train/fit.hpp>

#include "compare.hpp"

namespace taut::test {
namespace {

using data::Augmented, data::ByteImages, data::HorizontalFlip, data::Normalize, data::RandomCrop;

ByteImages images(std::int64_t count, const Shape& shape) {
  std::mt19937 random(7);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * shape.size()));
  for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(random() % 255 + 1);  // none is the padding's
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(count));
  for (auto& label : labels) label = static_cast<std::uint8_t>(random() % 10);
  return {"images", shape, std::move(pixels), std::move(labels)};
}

Normalize normalize(std::int64_t channels) {
  std::vector<float> mean, deviation;
  for (std::int64_t i = 0; i < channels; ++i) {
    mean.push_back(0.4f + 0.1f * static_cast<float>(i));
    deviation.push_back(0.2f + 0.05f * static_cast<float>(i));
  }
  return {mean, deviation};
}

template <class T> std::vector<T> copy(std::span<const T> values) { return {values.begin(), values.end()}; }

/// Fails unless a batch on the device is the CPU's.
void expect_equal(const cuda::ImageBatch& got, const data::Batch& expected) {
  EXPECT_EQ(copy(got.labels), copy(expected.labels));
  EXPECT_EQ(copy(got.samples), copy(expected.samples));
  EXPECT_EQ(got.index, expected.index);
  EXPECT_EQ(got.targets<CudaTensor>().to_host(), copy(expected.labels));
  const auto tensor = got.tensor<CudaTensor>();
  ASSERT_EQ(tensor.shape(), expected.shape);
  EXPECT_EQ(tensor.to_host(), copy(expected.values));
  std::vector<bfloat16> rounded;
  for (const float value : expected.values) rounded.push_back(bfloat16(value));
  const auto half = got.tensor<BasicCudaTensor<bfloat16>>().to_host();
  for (std::size_t i = 0; i < rounded.size(); ++i) ASSERT_EQ(float(half[i]), float(rounded[i])) << i;
}

/// Fails unless the next two epochs of both loaders are the same.
template <class D> void expect_equal_epochs(const D& dataset, const data::DataLoaderOptions& options) {
  data::DataLoader on_cpu{dataset, options};
  cuda::ImageLoader on_device{dataset, options};
  EXPECT_EQ(on_device.batches_per_epoch(), on_cpu.batches_per_epoch());
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto expected = on_cpu.begin();
    std::int64_t batches = 0;
    for (const auto& batch : on_device) {
      ASSERT_FALSE(expected == on_cpu.end());
      expect_equal(batch, *expected);
      ++expected, ++batches;
    }
    EXPECT_TRUE(expected == on_cpu.end());
    EXPECT_EQ(batches, on_device.batches_per_epoch());
  }
}

TEST(CudaImageLoader, GivesTheBatchesOfTheCpus) {
  for (const Shape& shape : {Shape{3, 32, 32}, Shape{1, 28, 28}, Shape{2, 3, 5}, Shape{4, 1, 1}}) {
    const auto set = images(21, shape);
    const auto normal = normalize(shape[0]);
    for (const int workers : {0, 2}) {
      const data::DataLoaderOptions options{.batch_size = 8, .seed = 5, .workers = workers};
      expect_equal_epochs(set, options);
      expect_equal_epochs(Augmented{set, normal}, options);
      expect_equal_epochs(Augmented{set, HorizontalFlip{}}, options);
      expect_equal_epochs(Augmented{set, RandomCrop{2}, normal}, options);
      expect_equal_epochs(Augmented{set, RandomCrop{4}, HorizontalFlip{}, normal}, options);
    }
  }
}

TEST(CudaImageLoader, TakesTheLoadersOptions) {
  const Augmented set{images(10, {1, 4, 4}), RandomCrop{1}};
  expect_equal_epochs(set, {.batch_size = 4, .shuffle = false});
  expect_equal_epochs(set, {.batch_size = 4, .seed = 1, .first_epoch = 3, .drop_last = true});
  expect_equal_epochs(images(0, {1, 4, 4}), {});
  EXPECT_THROW((cuda::ImageLoader{set, {.batch_size = 0}}), Error);
  EXPECT_THROW((cuda::ImageLoader{images(2, {4, 4})}), ShapeError);
}

TEST(CudaImageLoader, ResumesInMidEpoch) {
  const Augmented set{images(20, {3, 5, 4}), RandomCrop{1}, HorizontalFlip{}};
  const data::DataLoader on_cpu{set, {.batch_size = 3}};
  const cuda::ImageLoader on_device{set, {.batch_size = 3}};
  const auto expected = on_cpu.epoch(4, 2);
  const auto rest = on_device.epoch(4, 2);
  EXPECT_EQ(rest.size(), expected.size());
  auto from = expected.begin();
  for (const auto& batch : rest) expect_equal(batch, *from), ++from;
  EXPECT_TRUE(from == expected.end());
}

TEST(CudaImageLoader, IteratorsOutliveTheirLoader) {
  const auto set = images(4, {1, 3, 3});
  auto iterator = cuda::ImageLoader{set, {.batch_size = 2, .shuffle = false}}.begin();
  ++iterator;
  Rng rng{0};
  std::vector<float> expected(9);
  set.get(2, expected, rng);
  const auto got = iterator->tensor<CudaTensor>().to_host();
  EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + 9), expected);
}

template <AnyTensor T> struct Classifier {
  nn::Linear<T> linear;
  T operator()(const T& x) const {
    return linear(reshape(x, {x.shape()[0], x.shape().size() / x.shape()[0]}));
  }
};

TEST(CudaImageLoader, TrainsAsTheCpusDoes) {
  const Augmented set{images(40, {1, 6, 6}), RandomCrop{1}, HorizontalFlip{}, normalize(1)};
  const auto losses = [&](auto loader) {
    using G = Grad<CudaTensor>;
    Rng rng{3};
    Classifier<G> model{nn::Linear<G>::make(36, 10, rng)};
    optim::Sgd sgd{model, {.lr = 0.1f}};
    std::vector<double> all;
    for (const auto& epoch : train::fit(model, sgd, loader, {.epochs = 3})) all.push_back(epoch.train_loss);
    return all;
  };
  const data::DataLoaderOptions options{.batch_size = 16};
  const auto got = losses(cuda::ImageLoader{set, options});
  EXPECT_EQ(got, losses(data::DataLoader{set, options}));
  EXPECT_LT(got[2], got[0]);
}

// What the kernel cannot do, or does in another order, is refused when it is compiled.
static_assert(cuda::DeviceAugmentable<Augmented<ByteImages, RandomCrop, HorizontalFlip, Normalize>>);
static_assert(cuda::DeviceAugmentable<Augmented<data::Cifar10, RandomCrop, HorizontalFlip, Normalize>>);
static_assert(cuda::DeviceAugmentable<data::Mnist>);
static_assert(!cuda::DeviceAugmentable<Augmented<ByteImages, Normalize, RandomCrop>>);
static_assert(!cuda::DeviceAugmentable<Augmented<ByteImages, RandomCrop, RandomCrop>>);
static_assert(!cuda::DeviceAugmentable<Augmented<ByteImages, data::Cutout>>);

}  // namespace
}  // namespace taut::test
