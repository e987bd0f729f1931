#pragma once
// What libraries' functions make of NaN, which a ReLU by max(x, 0) turns into 0. They do not say, so it is
// tried.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "taut/cuda/buffer.hpp"

namespace taut::cuda {

/// What a trial needs to know of a result: where it is, and of what elements, and how many of them a bias
/// has.
struct TrialResult {
  const void* at = nullptr;
  bool narrow = false;  ///< bfloat16 instead of float
  std::int64_t bias = 0;
};

/// Drops the candidates that lose NaN, which is tried by a bias of nothing else, and those that throw a
/// `DeviceError`; whether there were any of the former. run(candidate, bias) puts the work of one into the
/// stream, which overwrites the result. The host waits for the work.
template <class Candidate, class Run>
bool drop_what_loses_nan(std::vector<Candidate>& candidates, const TrialResult& result, Stream stream,
                         const Run& run) {
  const std::size_t element = result.narrow ? 2 : 4;
  const auto bytes = static_cast<std::size_t>(result.bias) * element;
  const Buffer bias = Buffer::allocate(bytes);
  fill_bytes(bias.mutable_data(stream), 0xff, bytes, stream);  // NaN in both types
  bool lost = false;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    try {
      run(candidate, bias.data(stream));
      std::uint32_t first = 0;
      copy_to_host(&first, result.at, element, stream);
      synchronize(stream);
      if (std::isnan(std::bit_cast<float>(result.narrow ? first << 16 : first))) return false;
      return lost = true;
    } catch (const DeviceError&) {
      return true;
    }
  });
  return lost;
}

}  // namespace taut::cuda
