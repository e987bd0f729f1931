#pragma once
// Counter-based random numbers. A value is a pure function of a seed, a stream and a position, so kernels on
// any backend compute any part of a sequence, in any order, on any number of threads, and get the same
// numbers.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"

namespace taut {

/// Philox4x32 with 10 rounds: a bijection of 128-bit counters for each 64-bit key, whose outputs for
/// successive counters pass the usual statistical tests. Source: Salmon, Moraes, Dror and Shaw, "Parallel
/// random numbers: as easy as 1, 2, 3", SC'11.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The element types that random numbers are made in.
template <class E>
concept RandomElement = std::same_as<E, float> || std::same_as<E, double>;

namespace detail {

// The standard functions differ in their last bits between libraries and devices. These are made of
// operations that IEEE 754 rounds in one way only, with every multiply-add explicit, so they give the same
// bits everywhere. They are `constexpr`, although they call functions that are not, so that kernels on
// devices can call them; only templates may be both.

/// The polynomial in z with these coefficients, the highest power's first. Unrolled: vectors are made of
/// loops without loops inside.
template <std::size_t n> constexpr double polynomial(const double (&coefficients)[n], double z) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    double value = coefficients[0];
    ((value = std::fma(value, z, coefficients[I + 1])), ...);
    return value;
  }
  (std::make_index_sequence<n - 1>{});
}

/// log(x) for a positive normal `x`, within 2 units in the last place.
template <std::same_as<double> D> constexpr D exact_log(D x) {
  // log m = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...) with |s| <= 0.172
  constexpr double series[] = {1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13,
                               1. / 11, 1. / 9,  1. / 7,  1. / 5,  1. / 3};
  const auto pattern = std::bit_cast<std::uint64_t>(x);
  const double mantissa = std::bit_cast<double>((pattern & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000);
  const bool high = mantissa > 1.4142135623730951;
  const double m = high ? mantissa * 0.5 : mantissa;
  const int exponent = static_cast<int>(pattern >> 52) - (high ? 1022 : 1023);
  const double s = (m - 1) / (m + 1), z = s * s;
  const double log_m = std::fma(2 * s, z * polynomial(series, z), 2 * s);
  return std::fma(static_cast<double>(exponent), 0.6931471805599453, log_m);
}

/// {cos(2 pi u), sin(2 pi u)} for u in [0, 1), within 1e-15.
template <std::same_as<double> D> constexpr std::array<D, 2> exact_circle(D u) {
  // Taylor's series: the reciprocals of 16!, 14!, ..., 0! and of 17!, 15!, ..., 1!, with alternating signs
  constexpr double cosine_series[] = {1. / 20922789888000,
                                      -1. / 87178291200,
                                      1. / 479001600,
                                      -1. / 3628800,
                                      1. / 40320,
                                      -1. / 720,
                                      1. / 24,
                                      -1. / 2,
                                      1.};
  constexpr double sine_series[] = {1. / 355687428096000,
                                    -1. / 1307674368000,
                                    1. / 6227020800,
                                    -1. / 39916800,
                                    1. / 362880,
                                    -1. / 5040,
                                    1. / 120,
                                    -1. / 6,
                                    1.};
  const int quarter = static_cast<int>(std::fma(u, 4.0, 0.5));
  const double x = 6.283185307179586 * std::fma(static_cast<double>(quarter), -0.25, u);  // |x| <= pi/4
  const double z = x * x;
  const double cosine = polynomial(cosine_series, z), sine = x * polynomial(sine_series, z);
  // Without branches, so that compilers can make vectors of it.
  const double first = quarter % 2 == 0 ? cosine : sine, second = quarter % 2 == 0 ? sine : cosine;
  return {(quarter + 1) % 4 < 2 ? first : -first, quarter % 4 < 2 ? second : -second};
}

}  // namespace detail

/// A sequence of random numbers with random access: element `i` is computed, not stored, so a stream is
/// passed to kernels by value. Obtained from `Rng::draw`. The functions are views of the same underlying
/// bits: a kernel uses one of them.
struct RandomStream {
  std::uint64_t key = 0;          ///< Philox's key: the seed
  std::uint64_t stream = 0;       ///< the upper half of Philox's counter
  std::uint64_t first_block = 0;  ///< the lower half of the counter at which the sequence starts

  constexpr bool operator==(const RandomStream&) const = default;

  /// The 32-bit words 4j to 4j + 3. Computing long ranges by blocks is four times cheaper than by `bits`.
  constexpr std::array<std::uint32_t, 4> block(std::uint64_t j) const {
    const std::uint64_t position = first_block + j;
    return philox4x32({low(position), high(position), low(stream), high(stream)}, {low(key), high(key)});
  }

  /// 32 random bits: lane i % 4 of block i / 4.
  constexpr std::uint32_t bits(std::uint64_t i) const { return block(i / 4)[i % 4]; }

  /// Uniform in [0, 1). As float: the upper 24 bits of word i. As double: the upper 53 bits of words 2i,
  /// 2i+1.
  template <RandomElement E> constexpr E uniform(std::uint64_t i) const {
    if constexpr (std::same_as<E, float>) {
      return to_uniform(bits(i));
    } else {
      const auto words = block(i / 2);
      return i % 2 ? to_uniform(words[2], words[3]) : to_uniform(words[0], words[1]);
    }
  }

  /// 24 bits of a word as a float in [0, 1): what `uniform<float>` makes of each word.
  static constexpr float to_uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

  /// 53 bits of two words as a double in [0, 1): what `uniform<double>` makes of each pair of words.
  static constexpr double to_uniform(std::uint32_t upper, std::uint32_t lower) {
    return static_cast<double>((std::uint64_t{upper} << 32 | lower) >> 11) * 0x1p-53;
  }

  /// offset + scale x, rounded once: how numbers x of the distributions here become those of others, with the
  /// same bits on every backend.
  template <RandomElement E> static constexpr E affine(E x, E offset, E scale) {
    return std::fma(scale, x, offset);
  }

  /// Standard normal, always finite. Elements 2j and 2j + 1 are `normal_pair<E>(j)`.
  template <RandomElement E> constexpr E normal(std::uint64_t i) const {
    return normal_pair<E>(i / 2)[i % 2];
  }

  /// Two independent standard normal numbers by Box and Muller's transform, sqrt(-2 log u) {cos, sin}(2 pi v)
  /// with u in (0, 1]. For float u and v are 32-bit words, for double 53 bits of two words. |result| is at
  /// most 6.67 for float and 8.58 for double. The same bits on every backend (unless compiled with
  /// -ffast-math).
  template <RandomElement E> constexpr std::array<E, 2> normal_pair(std::uint64_t j) const {
    constexpr std::uint64_t pairs = std::same_as<E, float> ? 2 : 1;
    const auto [u, v] = to_unit_square<E>(block(j / pairs), j % pairs);
    const double radius = std::sqrt(-2 * detail::exact_log(u));
    const auto [cosine, sine] = detail::exact_circle(v);
    return {static_cast<E>(radius * cosine), static_cast<E>(radius * sine)};
  }

  /// Elements [first, first + count) of `normal<E>`, to `to`. Compilers make vectors of the loops: it takes a
  /// tenth of the time of asking for each.
  template <RandomElement E> void normals(std::uint64_t first, std::size_t count, E* to) const {
    constexpr std::uint64_t blocks = 16, per_block = std::same_as<E, float> ? 4 : 2;
    E part[blocks * per_block];
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t from = (first + done) / per_block, skipped = (first + done) % per_block;
      normals_of_blocks<E, blocks>(from, part);
      const auto taken = std::min<std::uint64_t>(blocks * per_block - skipped, count - done);
      std::copy_n(part + skipped, taken, to + done);
      done += taken;
    }
  }

 private:
  /// The elements of n successive blocks. Square roots, which may set `errno` and so are no vectors to
  /// compilers, have a loop of their own.
  template <RandomElement E, std::size_t n> void normals_of_blocks(std::uint64_t first, E* to) const {
    constexpr std::size_t pairs = std::same_as<E, float> ? 2 : 1;
    double u[pairs * n], v[pairs * n], radius[pairs * n];
    for (std::size_t k = 0; k < n; ++k) {
      const auto words = block(first + k);
      for (std::size_t pair = 0; pair < pairs; ++pair) {
        const auto [a, b] = to_unit_square<E>(words, pair);
        u[k * pairs + pair] = a, v[k * pairs + pair] = b;
      }
    }
    for (std::size_t k = 0; k < pairs * n; ++k) radius[k] = -2 * detail::exact_log(u[k]);
    for (std::size_t k = 0; k < pairs * n; ++k) radius[k] = std::sqrt(radius[k]);
    for (std::size_t k = 0; k < pairs * n; ++k) {
      const auto [cosine, sine] = detail::exact_circle(v[k]);
      to[2 * k] = static_cast<E>(radius[k] * cosine);
      to[2 * k + 1] = static_cast<E>(radius[k] * sine);
    }
  }

  /// What Box and Muller's transform takes for a block's first or second pair: u in (0, 1] and v in [0, 1).
  template <RandomElement E>
  static constexpr std::array<double, 2> to_unit_square(const std::array<std::uint32_t, 4>& words,
                                                        std::size_t pair) {
    if constexpr (std::same_as<E, float>)
      return {(words[2 * pair] + 1.0) * 0x1p-32, words[2 * pair + 1] * 0x1p-32};
    else
      return {to_uniform(words[0], words[1]) + 0x1p-53, to_uniform(words[2], words[3])};
  }

  static constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
};

/// A random number generator: a seed and a position. The same seed gives the same numbers on every machine
/// and backend. Copies continue independently with the same numbers; `fork` and `split` give other ones.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) : next_{seed, 0, 0} {}

  /// The generator that continues at a `state()` read earlier, for instance from a checkpoint.
  explicit constexpr Rng(const RandomStream& state) : next_(state) {}

  /// Where the generator stands: three integers to save and to continue from.
  constexpr const RandomStream& state() const { return next_; }

  constexpr bool operator==(const Rng&) const = default;

  /// Reserves `count` values, of whichever kind, and returns the stream whose elements [0, count) they are.
  constexpr RandomStream draw(std::uint64_t count) {
    const RandomStream reserved = next_;
    next_.first_block += count / 2 + count % 2;  // a double takes half a block
    return reserved;
  }

  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() { return draw(1).uniform<double>(0); }

  /// Standard normal.
  double normal() { return draw(1).normal<double>(0); }

  /// Uniform in [0, bound), without bias. Throws `Error` if `bound` is 0.
  constexpr std::uint64_t integer(std::uint64_t bound) {
    if (bound == 0) throw Error("Rng::integer: the bound must be positive, it is 0");
    // The 2^64 words split evenly among the results once the first 2^64 mod bound words are left out.
    const std::uint64_t excess = (0 - bound) % bound;
    for (;;) {
      const auto words = draw(1).block(0);
      const std::uint64_t word = std::uint64_t{words[0]} << 32 | words[1];
      if (word >= excess) return word % bound;
    }
  }

  /// An independent generator numbered `id`: `rng.fork(epoch).fork(sample)`. Depends on the seed and on
  /// earlier forks, not on how many values have been drawn.
  constexpr Rng fork(std::uint64_t id) const {
    constexpr std::uint64_t fork_domain = 0x7461757420666F72;  // keeps forks apart from draws
    return from_block(RandomStream{next_.key ^ fork_domain, next_.stream, id}.block(0));
  }

  /// An independent generator, another one at each call.
  constexpr Rng split() { return from_block(draw(1).block(0)); }

  /// The integers [0, n) in random order (Fisher and Yates' shuffle). Throws `Error` if `n` is negative.
  std::vector<std::int64_t> permutation(std::int64_t n) {
    if (n < 0) throw Error("Rng::permutation: the length must not be negative, it is " + std::to_string(n));
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[integer(i)]);
    return order;
  }

 private:
  static constexpr Rng from_block(const std::array<std::uint32_t, 4>& words) {
    return Rng{
        RandomStream{std::uint64_t{words[0]} << 32 | words[1], std::uint64_t{words[2]} << 32 | words[3], 0}};
  }

  RandomStream next_;
};

}  // namespace taut
