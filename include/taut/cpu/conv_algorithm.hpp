#pragma once
// Which algorithm convolutions use.

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../core/error.hpp"

namespace taut::cpu {

/// How convolutions of 3 x 3 with stride 1 are computed. Winograd's algorithm takes less than half of the
/// multiplications, with rounding errors a few times larger. `automatic` takes the faster one, for small
/// batches as timed at the first use of each shape; so bitwise repeatable runs take one of the others.
enum class ConvAlgorithm { automatic, direct, winograd };

namespace detail {

inline ConvAlgorithm algorithm_from_environment() {
  const char* const name = std::getenv("TAUT_CONV_ALGORITHM");
  const std::string_view text = name ? name : "auto";
  if (text == "auto" || text.empty()) return ConvAlgorithm::automatic;
  if (text == "direct") return ConvAlgorithm::direct;
  if (text == "winograd") return ConvAlgorithm::winograd;
  throw Error("TAUT_CONV_ALGORITHM: expected auto, direct or winograd, got " + std::string(text));
}

inline std::atomic<ConvAlgorithm>& algorithm_setting() {
  static std::atomic<ConvAlgorithm> setting{algorithm_from_environment()};
  return setting;
}

}  // namespace detail

/// The algorithm that convolutions use: what `set_conv_algorithm` said last, else the environment variable
/// TAUT_CONV_ALGORITHM (auto, direct or winograd). Throws `Error` if that has another value.
inline ConvAlgorithm conv_algorithm() { return detail::algorithm_setting(); }

/// Sets the algorithm for the whole program. Where Winograd's does not apply the direct one is
/// used.
inline void set_conv_algorithm(ConvAlgorithm algorithm) { detail::algorithm_setting() = algorithm; }

}  // namespace taut::cpu
