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
#include <xsimd/xsimd.hpp>
#endif

#include <cstdint>
#include <type_traits>

namespace taut::cpu {

namespace detail {
template <class E>
struct PackOf {
  using type = E;
};
#if TAUT_HAS_XSIMD
template <class E>
  requires std::is_floating_point_v<E>
struct PackOf<E> {
  using type = xsimd::batch<E>;
};
#endif
}  // namespace detail

template <class E>
using Pack = typename detail::PackOf<E>::type;

/// How many elements a pack holds.
template <class E>
inline constexpr std::int64_t pack_size = static_cast<std::int64_t>(sizeof(Pack<E>) / sizeof(E));

template <class E>
Pack<E> load(const E* from) {
  if constexpr (pack_size<E> == 1)
    return *from;
  else
    return Pack<E>::load_unaligned(from);
}

template <class E>
void store(E* to, const Pack<E>& value) {
  if constexpr (pack_size<E> == 1)
    *to = value;
  else
    value.store_unaligned(to);
}

}  // namespace taut::cpu
