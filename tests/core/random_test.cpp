#include "taut/core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using taut::philox4x32;
using taut::RandomStream;
using taut::Rng;
using Words = std::array<std::uint32_t, 4>;

// ---- Philox: the known answers that its authors publish with Random123

static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, GivesTheKnownAnswersAtRunTime) {
  volatile std::uint32_t c = 0x243f6a88, k = 0xa4093822;
  EXPECT_EQ(philox4x32({c, 0x85a308d3, 0x13198a2e, 0x03707344}, {k, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// ---- RandomStream

static_assert(std::is_aggregate_v<RandomStream> && std::is_trivially_copyable_v<RandomStream>);
static_assert(RandomStream{} == RandomStream{0, 0, 0} && RandomStream{1} != RandomStream{});

template <RandomStream stream> constexpr std::uint32_t first_word = stream.bits(0);
static_assert(first_word<RandomStream{}> == 0x6627e8d5);

// Key, stream and position are Philox's key and counter, low words first.
constexpr RandomStream pi{0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88};
static_assert(pi.block(0) == Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
static_assert(pi.bits(3) == 0x24126ea1 && pi.bits(4) == pi.block(1)[0] &&
              pi.bits(4 * 1000 + 2) == pi.block(1000)[2]);
static_assert(RandomStream{7, 8, 0xffffffff}.block(1) == RandomStream{7, 8, 0x100000000}.block(0));

static_assert(RandomStream::to_uniform(0) == 0.0f && RandomStream::to_uniform(0xffffffff) == 1 - 0x1p-24f);
static_assert(RandomStream::to_uniform(0, 0) == 0.0);
static_assert(RandomStream::to_uniform(0xffffffff, 0xffffffff) == 1 - 0x1p-53);
static_assert(RandomStream::to_uniform(0x80000000, 0) == 0.5 && RandomStream::to_uniform(0x80000000) == 0.5f);

TEST(RandomStream, UniformsAreMadeOfTheirWords) {
  const RandomStream stream = Rng(3).draw(1000);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(stream.uniform<float>(i), RandomStream::to_uniform(stream.bits(i)));
    EXPECT_EQ(stream.uniform<double>(i),
              RandomStream::to_uniform(stream.bits(2 * i), stream.bits(2 * i + 1)));
  }
}

template <class E> class RandomStreamOf : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(RandomStreamOf, Elements);

constexpr std::uint64_t sample_size = 200000;

/// The largest distance between the sample's distribution function and the true one, times sqrt(n).
/// Kolmogorov: above 2.2 with probability 1e-4.
template <class E, class Cdf> double kolmogorov(std::vector<E> sample, Cdf cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double distance = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(static_cast<double>(sample[i])), rank = static_cast<double>(i);
    distance = std::max({distance, p - rank / n, (rank + 1) / n - p});
  }
  return distance * std::sqrt(n);
}

/// The correlation of each value with the next, times sqrt(n): standard normal for independent values.
template <class E> double serial_correlation(const std::vector<E>& sample, double mean, double variance) {
  double sum = 0;
  for (std::size_t i = 1; i < sample.size(); ++i) sum += (sample[i - 1] - mean) * (sample[i] - mean);
  return sum / variance / std::sqrt(static_cast<double>(sample.size()));
}

TYPED_TEST(RandomStreamOf, UniformIsUniform) {
  const RandomStream stream = Rng(1).draw(sample_size);
  std::vector<TypeParam> sample;
  for (std::uint64_t i = 0; i < sample_size; ++i) sample.push_back(stream.uniform<TypeParam>(i));
  EXPECT_GE(*std::min_element(sample.begin(), sample.end()), 0);
  EXPECT_LT(*std::max_element(sample.begin(), sample.end()), 1);
  EXPECT_LT(kolmogorov(sample, [](double x) { return x; }), 2.2);
  EXPECT_LT(std::abs(serial_correlation(sample, 0.5, 1.0 / 12)), 4);
}

TYPED_TEST(RandomStreamOf, NormalIsNormal) {
  const RandomStream stream = Rng(2).draw(sample_size);
  std::vector<TypeParam> sample;
  double fourth = 0;
  for (std::uint64_t i = 0; i < sample_size; ++i) {
    sample.push_back(stream.normal<TypeParam>(i));
    fourth += std::pow(sample.back(), 4);
  }
  EXPECT_LT(kolmogorov(sample, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }), 2.2);
  EXPECT_NEAR(fourth / sample_size, 3, 4 * std::sqrt(96.0 / sample_size));
  EXPECT_LT(std::abs(serial_correlation(sample, 0, 1)), 4);
}

TYPED_TEST(RandomStreamOf, NormalElementsArePairs) {
  const RandomStream stream = Rng(4).draw(100);
  for (std::uint64_t j = 0; j < 50; ++j) {
    const auto pair = stream.normal_pair<TypeParam>(j);
    EXPECT_EQ(stream.normal<TypeParam>(2 * j), pair[0]);
    EXPECT_EQ(stream.normal<TypeParam>(2 * j + 1), pair[1]);
  }
}

TYPED_TEST(RandomStreamOf, NormalElementsOfARangeAreTheSame) {
  const RandomStream stream = Rng(4).draw(400);
  for (const std::uint64_t first : {0, 1, 2, 3, 4, 63, 64, 65})
    for (const std::size_t count : {0, 1, 2, 31, 32, 63, 64, 65, 200}) {
      std::vector<TypeParam> values(count + 1, 7);
      stream.normals(first, count, values.data());
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(values[i], stream.normal<TypeParam>(first + i)) << first << ' ' << i;
      EXPECT_EQ(values.back(), 7) << "beyond the range";
    }
}

TYPED_TEST(RandomStreamOf, NormalFollowsBoxAndMuller) {
  const RandomStream stream = Rng(5).draw(20000);
  const double tolerance = 16 * static_cast<double>(std::numeric_limits<TypeParam>::epsilon());
  for (std::uint64_t j = 0; j < 10000; ++j) {
    double u, v;
    if constexpr (std::is_same_v<TypeParam, float>) {
      u = (stream.bits(2 * j) + 1.0) / 4294967296.0;
      v = stream.bits(2 * j + 1) / 4294967296.0;
    } else {
      u = stream.uniform<double>(2 * j) + 0x1p-53;
      v = stream.uniform<double>(2 * j + 1);
    }
    const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * 3.14159265358979323846 * v;
    EXPECT_NEAR(stream.normal<TypeParam>(2 * j), radius * std::cos(angle), tolerance);
    EXPECT_NEAR(stream.normal<TypeParam>(2 * j + 1), radius * std::sin(angle), tolerance);
  }
}

// Bits fixed once: they must not depend on compiler, options (such as fused multiply-adds) or library.
TEST(RandomStream, NormalHasTheSameBitsEverywhere) {
  const RandomStream stream = Rng(2024).draw(1 << 16);
  std::uint64_t floats = 0, doubles = 0;
  for (std::uint64_t i = 0; i < 1 << 16; ++i) {
    floats = floats * 0x9E3779B97F4A7C15 + std::bit_cast<std::uint32_t>(stream.normal<float>(i));
    doubles = doubles * 0x9E3779B97F4A7C15 + std::bit_cast<std::uint64_t>(stream.normal<double>(i));
  }
  EXPECT_EQ(floats, 3935814551604010764u);
  EXPECT_EQ(doubles, 15160738843825064197u);
}

TEST(ExactLog, IsTheLogarithm) {
  const RandomStream stream = Rng(6).draw(100000);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double u = stream.uniform<double>(i) + 0x1p-53;
    EXPECT_NEAR(taut::detail::exact_log(u) / std::log(u), 1, 5e-16) << u;
  }
}

TEST(ExactLog, HoldsAtTheEndsOfItsUse) {
  using taut::detail::exact_log;
  EXPECT_EQ(exact_log(1.0), 0);
  for (const double u :
       {0x1p-53, 0x1p-32, 0.5, 1 - 0x1p-53, 1 - 0x1p-32, 0.70710678118654746, 0.70710678118654757})
    EXPECT_NEAR(exact_log(u) / std::log(u), 1, 5e-16) << u;
  // the longest normal numbers
  EXPECT_NEAR(std::sqrt(-2 * exact_log(0x1p-32)), 6.6604, 1e-3);
  EXPECT_NEAR(std::sqrt(-2 * exact_log(0x1p-53)), 8.5717, 1e-3);
}

TEST(ExactCircle, HasTheCosineAndTheSine) {
  for (int i = 0; i < 4096; ++i) {
    const double u = i / 4096.0, angle = 2 * 3.14159265358979323846 * u;
    const auto [cosine, sine] = taut::detail::exact_circle(u);
    EXPECT_NEAR(cosine, std::cos(angle), 1e-15) << u;
    EXPECT_NEAR(sine, std::sin(angle), 1e-15) << u;
  }
  EXPECT_EQ(taut::detail::exact_circle(0.25)[0], 0);
  EXPECT_EQ(taut::detail::exact_circle(0.5)[0], -1);
  const auto [cosine, sine] = taut::detail::exact_circle(1 - 0x1p-53);
  EXPECT_EQ(cosine, 1);
  EXPECT_NEAR(sine, -6.283185307179586 * 0x1p-53, 1e-30);
}

// ---- Rng

TEST(Rng, SameSeedSameNumbers) {
  Rng a(42), b(42);
  EXPECT_EQ(a, b);
  EXPECT_NE(a.uniform(), Rng(43).uniform());
  b.uniform();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(a.uniform(), b.uniform());
    EXPECT_EQ(a.normal(), b.normal());
    EXPECT_EQ(a.integer(1000000007), b.integer(1000000007));
  }
}

TEST(Rng, DrawsDoNotOverlap) {
  Rng rng(1);
  std::set<Words> blocks;
  std::size_t expected = 0;
  for (const std::uint64_t count : {5u, 1u, 0u, 2u, 7u, 64u, 3u}) {
    const RandomStream stream = rng.draw(count);
    const std::uint64_t used = (count + 1) / 2;  // what doubles, the larger kind, take
    for (std::uint64_t j = 0; j < used; ++j) blocks.insert(stream.block(j));
    expected += used;
  }
  EXPECT_EQ(blocks.size(), expected);
}

TEST(Rng, DrawsAreReproducedByCopies) {
  Rng rng(8);
  rng.draw(13);
  Rng copy = rng;
  EXPECT_EQ(rng.draw(10), copy.draw(10));
  EXPECT_EQ(rng.uniform(), copy.uniform());
  EXPECT_EQ(rng, copy);
}

TEST(Rng, ContinuesFromItsState) {
  Rng rng = Rng(9).fork(5);
  rng.permutation(17);
  const auto [key, stream, first_block] = rng.state();
  Rng restored(RandomStream{key, stream, first_block});
  EXPECT_EQ(restored, rng);
  EXPECT_EQ(restored.permutation(50), rng.permutation(50));
}

TEST(Rng, WorksInConstantExpressions) {
  constexpr std::uint64_t value = [] {
    Rng rng(1);
    return rng.integer(10) + static_cast<std::uint64_t>(rng.uniform() * 10) + rng.fork(3).split().integer(5);
  }();
  Rng rng(1);
  EXPECT_EQ(value, rng.integer(10) + static_cast<std::uint64_t>(rng.uniform() * 10) +
                       rng.fork(3).split().integer(5));
}

TEST(Rng, ForksDependOnTheNumberButNotOnThePosition) {
  Rng rng(10);
  const Rng before = rng.fork(7);
  rng.draw(1000);
  EXPECT_EQ(rng.fork(7), before);
  EXPECT_NE(rng.fork(8), before);
  EXPECT_NE(Rng(11).fork(7), before);
  EXPECT_NE(rng.fork(7).fork(8), rng.fork(8).fork(7));
}

TEST(Rng, ForksAndSplitsAreIndependent) {
  // All first numbers of many generators derived from one seed differ and are uniform together.
  Rng rng(12);
  std::vector<double> firsts;
  for (std::uint64_t epoch = 0; epoch < 100; ++epoch) {
    firsts.push_back(rng.split().uniform());
    for (std::uint64_t sample = 0; sample < 100; ++sample)
      firsts.push_back(rng.fork(epoch).fork(sample).uniform());
  }
  for (int i = 0; i < 1000; ++i) firsts.push_back(rng.uniform());
  EXPECT_EQ(std::set<double>(firsts.begin(), firsts.end()).size(), firsts.size());
  EXPECT_LT(kolmogorov(firsts, [](double x) { return x; }), 2.2);
  EXPECT_LT(std::abs(serial_correlation(firsts, 0.5, 1.0 / 12)), 4);
}

TEST(Rng, SplitsDiffer) {
  Rng rng(13);
  const Rng first = rng.split(), second = rng.split();
  EXPECT_NE(first, second);
  Rng again(13);
  EXPECT_EQ(again.split(), first);
  EXPECT_NE(Rng(13).fork(0), first);  // though both are made of block 0
}

TEST(Rng, IntegersAreUniform) {
  Rng rng(14);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(rng.integer(7));
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - 10000.0) * (count - 10000.0) / 10000;
  EXPECT_LT(chi_squared, 27.9);  // 6 degrees of freedom, probability 1e-4
}

// Of a bound of 3/4 of 2^64, a remainder without rejection would give the lowest third twice as often.
TEST(Rng, IntegersOfLargeBoundsAreUnbiased) {
  Rng rng(15);
  const std::uint64_t bound = 3ull << 62;
  int lowest = 0;
  for (int i = 0; i < 30000; ++i) {
    const std::uint64_t value = rng.integer(bound);
    ASSERT_LT(value, bound);
    lowest += value < (1ull << 62);
  }
  EXPECT_NEAR(lowest, 10000, 350);
}

TEST(Rng, IntegersAtTheEdges) {
  Rng rng(16);
  EXPECT_EQ(rng.integer(1), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_LT(rng.integer(2), 2u);
  EXPECT_LT(rng.integer(~std::uint64_t{0}), ~std::uint64_t{0});
  try {
    rng.integer(0);
    FAIL();
  } catch (const taut::Error& error) {
    EXPECT_STREQ(error.what(), "Rng::integer: the bound must be positive, it is 0");
  }
}

TEST(Rng, PermutationsHoldEachNumberOnce) {
  Rng rng(17);
  auto order = rng.permutation(1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_TRUE(rng.permutation(0).empty());
  EXPECT_EQ(rng.permutation(1), std::vector<std::int64_t>{0});
  EXPECT_THROW(rng.permutation(-1), taut::Error);
}

TEST(Rng, PermutationsAreEquallyLikely) {
  Rng rng(18);
  std::array<int, 27> counts{};
  for (int i = 0; i < 60000; ++i) {
    const auto p = rng.permutation(3);
    ++counts.at(static_cast<std::size_t>(9 * p[0] + 3 * p[1] + p[2]));
  }
  double chi_squared = 0;
  for (const int index : {5, 7, 11, 15, 19, 21}) {
    const double difference = counts[static_cast<std::size_t>(index)] - 10000.0;
    chi_squared += difference * difference / 10000;
  }
  EXPECT_LT(chi_squared, 25.7);  // 5 degrees of freedom, probability 1e-4
}

TEST(Rng, PermutationIsFixedByTheSeed) {
  EXPECT_EQ(Rng(0).permutation(10), (std::vector<std::int64_t>{8, 2, 7, 4, 3, 0, 5, 6, 1, 9}));
}

}  // namespace
