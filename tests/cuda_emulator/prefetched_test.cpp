// Batches that are uploaded ahead: the loader's own, in its order, with its errors.

#include <gtest/gtest.h>
#include <taut/cuda/cuda.hpp>
#include <taut/data/data_loader.hpp>
#include <taut/nn/linear.hpp>
#include <taut/optim/sgd.hpp>
#include <taut/train/fit.hpp>

#include <atomic>

namespace taut::test {
namespace {

/// Points of which the label is a function; one of them may not be read.
struct Points {
  std::int64_t unreadable = -1;

  std::int64_t size() const { return 22; }
  Shape sample_shape() const { return {3}; }
  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
    if (index == unreadable) throw Error("unreadable");
    for (float& value : values) value = static_cast<float>(rng.uniform()) + static_cast<float>(index % 2);
    return index % 2;
  }
};

data::DataLoader<Points> points(Points set = {}, int workers = 1) {
  return data::DataLoader{set, {.batch_size = 4, .seed = 3, .workers = workers}};
}

TEST(CudaPrefetched, GivesTheLoadersBatches) {
  for (const int ahead : {1, 2, 9}) {
    auto expected = points();
    cuda::Prefetched loader{points(), ahead};
    EXPECT_EQ(loader.batches_per_epoch(), 6);
    for (int epoch = 0; epoch < 2; ++epoch) {
      auto other = expected.begin();
      for (const auto& batch : loader) {
        ASSERT_FALSE(other == expected.end());
        EXPECT_EQ(batch.tensor<CudaTensor>().to_host(),
                  std::vector<float>(other->values.begin(), other->values.end()));
        EXPECT_EQ(batch.tensor<CudaTensor>().shape(), other->shape);
        EXPECT_EQ(batch.targets<CudaTensor>().to_host(), batch.labels);
        EXPECT_EQ(batch.labels, std::vector<std::int64_t>(other->labels.begin(), other->labels.end()));
        EXPECT_EQ(batch.size(), other->size());
        ++other;
      }
      EXPECT_TRUE(other == expected.end());
    }
  }
}

TEST(CudaPrefetched, KeepsBatchesUntilTheyHaveBeenUsed) {
  cuda::Prefetched loader{points()};
  std::vector<CudaTensor> doubled;
  std::vector<std::vector<float>> expected;
  for (const auto& batch : loader) doubled.push_back(2.0f * batch.tensor<CudaTensor>());
  for (const auto& batch : points()) {
    expected.emplace_back(batch.values.begin(), batch.values.end());
    for (float& value : expected.back()) value *= 2;
  }
  ASSERT_EQ(doubled.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(doubled[i].to_host(), expected[i]) << i;
}

TEST(CudaPrefetched, RoundsToBfloat16) {
  using Half = BasicCudaTensor<bfloat16>;
  cuda::Prefetched<data::Epoch, bfloat16> loader{points().epoch(0, 5)};
  auto batches = loader.begin();
  const auto own = points().epoch(0, 5).begin();
  const data::Batch& expected = *own;
  const auto values = batches->tensor<Half>().to_host();
  ASSERT_EQ(values.size(), expected.values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i].bits, bfloat16(expected.values[i]).bits);
  ++batches;
  EXPECT_TRUE(batches == loader.end());
}

TEST(CudaPrefetched, PassesErrorsOnAndEndsEarly) {
  cuda::Prefetched loader{points({.unreadable = 7})};
  std::int64_t seen = 0;
  const auto count_all = [&] {
    for (const auto& batch : loader) seen += batch.size();
  };
  EXPECT_THROW(count_all(), Error);
  EXPECT_LT(seen, 22);
  EXPECT_EQ(seen % 4, 0) << "the batches before are whole";
  cuda::Prefetched whole{points({}, 0), 1};
  for (const auto& batch : whole) {
    EXPECT_EQ(batch.size(), 4);
    break;
  }
  EXPECT_THROW(cuda::Prefetched(points(), 0), Error);
}

TEST(CudaPrefetched, TrainsAsWithout) {
  static_assert(train::Loader<cuda::Prefetched<data::DataLoader<Points>>>);
  const auto trained = [](auto loader) {
    Rng rng{1};
    auto model = nn::Linear<Grad<CudaTensor>>::make(3, 2, rng);
    optim::Sgd sgd{model, {.lr = 0.1, .momentum = 0.9}};
    const auto history = train::fit(model, sgd, loader, {.epochs = 4});
    EXPECT_GT(history.back().train_accuracy, 0.9);
    return model.weight.to_host();
  };
  EXPECT_EQ(trained(cuda::Prefetched{points()}), trained(points()));
}

}  // namespace
}  // namespace taut::test
