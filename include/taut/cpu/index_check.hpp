#pragma once
// The check of indices that kernels look up by.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "../core/error.hpp"

namespace taut::cpu {

/// Throws `Error` unless all indices are from 0 to count - 1. The message calls an index `index`, such as
/// "label", and what it is one of `all`, such as "classes".
inline void check_indices(std::string_view op, const std::string& index, const std::string& all,
                          std::span<const std::int64_t> indices, std::int64_t count) {
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= count)
      throw Error(std::string(op) + ": " + index + " " + std::to_string(indices[i]) + " at position " +
                  std::to_string(i) + " is not one of the " + all + " 0 to " + std::to_string(count - 1));
}

}  // namespace taut::cpu
