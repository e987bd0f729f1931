// What a tensor on the device is by itself: how it is made, brought back, laid out and shared; and that it is
// all that programs ask of one.

#include <gtest/gtest.h>
#include <taut/concepts.hpp>
#include <taut/cpu/cpu.hpp>
#include <taut/cuda/cuda.hpp>
#include <taut/interpret/grad.hpp>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <thread>

namespace taut::test {
namespace {

static_assert(DifferentiableImageTensor<CudaTensor>);
static_assert(DifferentiableImageTensor<BasicCudaTensor<bfloat16>>);
static_assert(ImageTensor<Grad<CudaTensor>> && ImageTensor<Grad<Grad<CudaTensor>>>);

using Half = BasicCudaTensor<bfloat16>;

std::vector<float> counted(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// Lengths around those of vectors and blocks.
constexpr std::int64_t lengths[] = {0, 1, 3, 4, 5, 31, 32, 33, 1023, 1025, 70001};

TEST(CudaTensor, IsFilled) {
  for (const auto n : lengths) {
    const auto size = static_cast<std::size_t>(n);
    EXPECT_EQ(CudaTensor::full({n}, 2.5f).to_host(), std::vector<float>(size, 2.5f));
    EXPECT_EQ(CudaTensor::zeros({n}).to_host(), std::vector<float>(size, 0.0f));
    EXPECT_EQ(CudaTensor::ones({n}).to_host(), std::vector<float>(size, 1.0f));
    EXPECT_EQ(CudaTensor::Index::full({n}, -7).to_host(), std::vector<std::int64_t>(size, -7));
    for (const auto value : Half::full({n}, bfloat16(1.5f)).to_host()) EXPECT_EQ(float(value), 1.5f);
  }
}

TEST(CudaTensor, ComesFromTheHostAndGoesBack) {
  for (const auto n : {std::int64_t{0}, std::int64_t{5}, std::int64_t{3} << 20}) {
    const auto values = counted(n);
    EXPECT_EQ(CudaTensor::from_host(values, {n}).to_host(), values);
  }
  EXPECT_EQ(CudaTensor::full({}, 4.0f).item(), 4.0f);
  EXPECT_THROW(CudaTensor::ones({2}).item(), ShapeError);
  EXPECT_THROW(CudaTensor::from_host(counted(3), {2}), ShapeError);
  EXPECT_THROW(CudaTensor::zeros({-1}), ShapeError);
}

TEST(CudaTensor, DrawsTheNumbersOfTheCpu) {
  for (const auto n : lengths) {
    Rng here{11}, there{11};
    (void)here.uniform(), (void)there.uniform();
    EXPECT_EQ(CudaTensor::uniform({n}, 0, 1, here).to_host(), CpuArray::uniform({n}, 0, 1, there).to_host());
    EXPECT_EQ(CudaTensor::normal({n}, 0, 1, here).to_host(), CpuArray::normal({n}, 0, 1, there).to_host());
    EXPECT_EQ(here, there);
    const auto halves = Half::normal({n}, bfloat16(0.0f), bfloat16(1.0f), here).to_host();
    const auto floats = CpuArray::normal({n}, 0, 1, there).to_host();
    for (std::size_t i = 0; i < halves.size(); ++i) EXPECT_EQ(halves[i].bits, bfloat16(floats[i]).bits);
  }
}

TEST(CudaTensor, DrawsTheNumbersOfTheCpuFromOtherRanges) {
  // Numbers that bfloat16 has; the widths are no powers of two, by which all would be exact.
  constexpr float low = -0.375f, high = 0.8125f, mean = 0.3125f, deviation = 0.7109375f;
  for (const auto n : lengths) {
    Rng here{13}, there{13};
    const auto uniform = CpuArray::uniform({n}, low, high, there).to_host();
    const auto normal = CpuArray::normal({n}, mean, deviation, there).to_host();
    Rng halves = here;
    EXPECT_EQ(CudaTensor::uniform({n}, low, high, here).to_host(), uniform);
    EXPECT_EQ(CudaTensor::normal({n}, mean, deviation, here).to_host(), normal);
    const auto expect_rounded = [](const Half& got, const std::vector<float>& expected) {
      const auto values = got.to_host();
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i].bits, bfloat16(expected[i]).bits);
    };
    expect_rounded(Half::uniform({n}, bfloat16(low), bfloat16(high), halves), uniform);
    expect_rounded(Half::normal({n}, bfloat16(mean), bfloat16(deviation), halves), normal);

    const auto numbers = Rng{13}.draw(static_cast<std::uint64_t>(n));
    for (std::size_t i = 0; i < uniform.size(); ++i)
      ASSERT_EQ(uniform[i], std::fma(high - low, numbers.uniform<float>(i), low)) << "is rounded once";
  }
}

TEST(CudaTensor, ChangesItsLayout) {
  for (const Shape& shape :
       {Shape{2, 3, 4, 5}, Shape{1, 64, 7, 9}, Shape{3, 1, 2, 2}, Shape{2, 33, 1, 1}, Shape{0, 3, 2, 2}}) {
    const auto values = counted(shape.size());
    const auto x = CudaTensor::from_host(values, shape);
    const auto last = x.in_layout(cuda::Layout::channels_last);
    EXPECT_EQ(last.layout(), cuda::Layout::channels_last);
    EXPECT_EQ(last.to_host(), values) << shape;
    EXPECT_EQ(last.dense().layout(), cuda::Layout::dense);
    EXPECT_EQ(reshape(last, {shape.size()}).to_host(), values) << shape;
    if (shape.size() == 0) continue;
    // As it lies in memory, it is the permuted tensor.
    std::vector<float> memory(values.size());
    cuda::copy_to_host(memory.data(), last.data(), last.bytes(), cuda::current_stream());
    cuda::synchronize(cuda::current_stream());
    EXPECT_EQ(memory, permute(x, {0, 2, 3, 1}).to_host()) << shape;
  }
}

TEST(CudaTensor, SharesItsMemory) {
  auto x = CudaTensor::ones({4});
  EXPECT_TRUE(x.unique());
  const auto copy = x;
  EXPECT_FALSE(x.unique());
  EXPECT_EQ(copy.data(), x.data());
  const auto* const data = reshape(x, {2, 2}).data();
  EXPECT_EQ(data, x.data());
}

TEST(CudaTensor, KeepsTheLayoutOfImages) {
  const auto x = CudaTensor::from_host(counted(120), {2, 3, 4, 5});
  const auto last = x.in_layout(cuda::Layout::channels_last);
  const auto bias = CudaTensor::from_host(counted(3), {3, 1, 1});
  for (const auto& y : {last + 1.0f, x + last, last * bias, concat(1, last, x), slice(last, 1, 1, 3)})
    EXPECT_EQ(y.layout(), cuda::Layout::channels_last);
  EXPECT_EQ((last * bias).to_host(), (x * bias).to_host());
  EXPECT_EQ(concat(1, last, x).to_host(), concat(1, x, x).to_host());
  EXPECT_EQ(sum(last, {0, 2, 3}).to_host(), sum(x, {0, 2, 3}).to_host());
}

TEST(CudaTensor, ComputesInBfloat16) {
  const std::vector<float> values{1, -2.5f, 0.375f, 1e30f, -0.0f, 3.14159f};
  std::vector<bfloat16> halves;
  for (const float value : values) halves.push_back(bfloat16(value));
  const auto x = Half::from_host(halves, {6});
  const auto squares = square(x).to_host();
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(squares[i].bits, bfloat16(float(halves[i]) * float(halves[i])).bits);
  EXPECT_EQ(float(sum(Half::ones({1000})).item()), 1000.0f) << "sums are accumulated in float";
  EXPECT_EQ(argmax(x).item(), 3);
}

TEST(CudaTensor, SumsManyFloats) {
  // 2^25 ones, which one float after the other would not be counted beyond 2^24.
  EXPECT_EQ(sum(CudaTensor::ones({std::int64_t{1} << 25})).item(), 0x1p25f);
}

TEST(CudaTensor, SaysThatThereIsNoDevice) {
  if (!cuda::memory_is_on_host()) GTEST_SKIP() << "only the emulator can be without a device";
  setenv("TAUT_EMULATOR_DEVICES", "0", 1);
  EXPECT_EQ(cuda::device_count(), 0);
  try {
    (void)CudaTensor::ones({2});
    ADD_FAILURE() << "there is no device";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda: no device was found, run with --device cpu"),
              std::string::npos)
        << error.what();
  }
  unsetenv("TAUT_EMULATOR_DEVICES");
}

TEST(CudaTensor, HasAStreamForEachThread) {
  const auto own = cuda::current_stream();
  EXPECT_EQ(cuda::current_stream(), own);
  cuda::Stream first = nullptr, second = nullptr;
  std::thread([&] { first = cuda::current_stream(); }).join();
  std::thread([&] { second = cuda::current_stream(); }).join();
  EXPECT_NE(first, own);
  EXPECT_EQ(second, first) << "the stream of a thread that has ended is used again";
  {
    const cuda::StreamScope scope(first);
    EXPECT_EQ(cuda::current_stream(), first);
  }
  EXPECT_EQ(cuda::current_stream(), own);
}

}  // namespace
}  // namespace taut::test
