#pragma once
// The one door to xsimd: `Pack<E>` is the machine's SIMD register of E, or E itself where there is none.

#ifndef TAUT_HAS_XSIMD
#if __has_include(<xsimd/xsimd.hpp>)
#define TAUT_HAS_XSIMD 1
#else
#define TAUT_HAS_XSIMD 0
#endif
#endif

#if TAUT_HAS_XSIMD
// g++ 12 takes its own AVX-512 intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xsimd/xsimd.hpp>
#pragma GCC diagnostic pop
#endif

#include <cstdint>
#include <type_traits>

namespace taut::cpu {

namespace detail {
template <class E> struct PackOf { using type = E; };
#if TAUT_HAS_XSIMD
template <class E>
requires std::is_floating_point_v<E>
struct PackOf<E> {
  using type = xsimd::batch<E>;
};
#endif
}  // namespace detail

template <class E> using Pack = typename detail::PackOf<E>::type;

/// How many elements a pack holds.
template <class E>
inline constexpr std::int64_t pack_size = static_cast<std::int64_t>(sizeof(Pack<E>) / sizeof(E));

/// An S from memory: a pack of E, or one E.
template <class S, class E> S load_as(const E* from) {
  if constexpr (std::is_same_v<S, E>)
    return *from;
  else
    return S::load_unaligned(from);
}

template <class S, class E> void store_as(E* to, const S& value) {
  if constexpr (std::is_same_v<S, E>)
    *to = value;
  else
    value.store_unaligned(to);
}

template <class E> Pack<E> load(const E* from) { return load_as<Pack<E>>(from); }

template <class E> void store(E* to, const Pack<E>& value) { store_as<Pack<E>>(to, value); }

}  // namespace taut::cpu
