#pragma once
// A workload ready to run: what the benchmarks time. The network's type is hidden, so that each element type
// is compiled once, in session_<type>.cpp.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exchange.hpp"
#include "images.hpp"

namespace bench {

struct Pass {
  std::int64_t samples = 0;
  double loss = 0, accuracy = 0;
};

class Session {
 public:
  virtual ~Session() = default;

  /// One step on the next of the batches, which come in turn: forward, loss, backward, clipping, update.
  /// Returns the loss before the update.
  virtual double train_step() = 0;

  /// The logits of the first `count` samples of the batches, repeated as needed, with the weights at the
  /// start, are computed and kept.
  virtual void infer(std::int64_t count) = 0;
  /// What `infer` has kept.
  virtual std::vector<double> logits() const = 0;

  /// Trains for one epoch on images in random order, read by a `DataLoader`.
  virtual Pass train(const Images& images) = 0;
  /// Measures the network.
  virtual Pass evaluate(const Images& images) = 0;
};

/// What a session starts from. Without weights the network's own first ones.
struct Start {
  const Workload& workload;
  std::string weights;
  std::vector<Batch> batches;
  bool folded = false;    ///< fold normalisation into convolutions for inference
  bool captured = false;  ///< have the device replay training steps as a graph
  int workers = 0;        ///< threads that read images; without, the one that trains does
};

/// Instantiated for `CpuArray`, `BasicCpuArray<double>`, `Profiled<CpuArray>` and, where Taut is built with
/// CUDA, `CudaTensor` and `BasicCudaTensor<bfloat16>`.
template <class T> std::unique_ptr<Session> make_session(Start start);

}  // namespace bench
