#pragma once
// What sessions run on: the processor or, where Taut is built with CUDA, a GPU.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session.hpp"

namespace bench {

class Device {
 public:
  virtual ~Device() = default;

  /// A session of a rung, a way to run Taut. Throws `taut::Error` if there is none of that name, or if the
  /// device is not there.
  virtual std::unique_ptr<Session> open(const std::string& rung, Start start) const = 0;

  /// Waits until all work is done, before the clock is read.
  virtual void finish() const {}

  /// The most memory that was in use, in bytes: the largest resident set, or what tensors and workspaces took
  /// on a GPU.
  virtual double peak_bytes() const = 0;

  /// What it is, for reports.
  virtual std::vector<std::pair<std::string, std::string>> about() const = 0;
};

/// Rungs f32, folded (normalisation is folded into convolutions for inference), f64 and profiled.
const Device& cpu_device();

/// Rungs f32, tf32 and bf16, all also with +folded, and with +graph, where training steps are replayed. There
/// only where Taut is built with CUDA.
const Device& cuda_device();

}  // namespace bench
