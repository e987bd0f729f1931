// Training asks the device for memory during its first epoch only: later ones find in the pool all that they
// need, by themselves and captured, with batches that are uploaded ahead.

#include <gtest/gtest.h>
#include <taut/cuda/cuda.hpp>
#include <taut/data/data_loader.hpp>
#include <taut/optim/sgd.hpp>
#include <taut/train/fit.hpp>

#include <vector>

#include "small_net.hpp"

namespace taut::test {
namespace {

constexpr int epochs = 3;

/// Noisy images of three classes, each brighter in a channel of its own; as large as activations are, so that
/// uploads that take new memory show. The last of four batches of an epoch is smaller.
struct Images {
  std::int64_t batch;

  std::int64_t size() const { return 3 * batch + 8; }
  Shape sample_shape() const { return {3, 32, 32}; }
  std::int64_t get(std::int64_t index, std::span<float> values, Rng& rng) const {
    const auto label = static_cast<std::size_t>(index % 3), pixels = values.size() / 3;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(rng.uniform()) + (i / pixels == label ? 1.0f : 0.0f);
    return index % 3;
  }
};

/// Writes down what the pool has after each epoch.
struct Recorder {
  std::vector<cuda::PoolStatistics> pool;

  void on_epoch(const train::EpochResult&) { pool.push_back(cuda::pool().statistics()); }
};

template <class E> class CudaSteadyMemory : public testing::Test {
 protected:
  using T = BasicCudaTensor<E>;

  void SetUp() override {
    cuda::pool().trim();
    cuda::pool().reset_peak();
  }

  /// The epochs after the first take nothing more.
  void expect_steady() const {
    ASSERT_EQ(recorder.pool.size(), static_cast<std::size_t>(epochs));
    const auto &warm = recorder.pool.front(), &last = recorder.pool.back();
    EXPECT_EQ(last.allocations, warm.allocations);
    EXPECT_EQ(last.live, warm.live);
    EXPECT_GT(last.peak, cuda::PoolSizes::small_segment) << "or one segment is enough for all steps";
  }

  /// So many that a step fills more than one of the pool's segments.
  static constexpr std::int64_t batch_size = 144 / sizeof(E);
  cuda::Prefetched<data::DataLoader<Images>, E> loader{
      data::DataLoader{Images{batch_size}, {.batch_size = batch_size}}};
  Rng rng{1};
  SmallNet<Grad<T>> model = SmallNet<Grad<T>>::make(3, 16, 3, 2, rng);
  optim::Sgd sgd{model, {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4}};
  Recorder recorder;
};

using Elements = testing::Types<float, bfloat16>;
TYPED_TEST_SUITE(CudaSteadyMemory, Elements);

TYPED_TEST(CudaSteadyMemory, OfFit) {
  this->sgd.set_clip_norm(0.5);
  const auto history = train::fit(this->model, this->sgd, this->loader, {.epochs = epochs}, this->recorder);
  EXPECT_GT(history.back().train_accuracy, 0.9);
  this->expect_steady();
}

TYPED_TEST(CudaSteadyMemory, OfACapturedStep) {
  using Tensor = typename TestFixture::T;
  this->sgd.set_clip_norm(0.5);
  auto step = cuda::capture(
      [this](const Tensor& x, const CudaTensor::Index& labels) {
        Tape<Tensor> tape;
        const auto loss = cross_entropy(this->model(Grad<Tensor>(x), Mode::train), labels);
        tape.backward(loss);
        this->sgd.step();
        return loss.value();
      },
      this->sgd);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const auto& batch : this->loader)
      (void)step(batch.template tensor<Tensor>(), batch.template targets<Tensor>());
    this->recorder.on_epoch({});
  }
  EXPECT_TRUE(step.captured()) << step.reason();
  this->expect_steady();
}

}  // namespace
}  // namespace taut::test
