#pragma once
// What a training loop tells its callbacks: a `BatchEvent` after each batch, an `EpochResult` after each
// epoch. A callback is any object with `on_batch(const BatchEvent&)`, `on_epoch(const EpochResult&)` or both.

#include <cstdint>
#include <limits>
#include <vector>

namespace taut::train {

/// The value of a quantity that was not measured.
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// The pass over the data that a batch belongs to.
enum class Phase { train, test };

/// One batch that has just been worked through.
struct BatchEvent {
  Phase phase = Phase::train;
  int epoch = 1;                   ///< counted from 1
  int epochs = 1;                  ///< how many there will be
  std::int64_t batch = 1;          ///< the batch's number in this pass, counted from 1
  std::int64_t batches = 0;        ///< how many the pass has; 0 if that is not known
  std::int64_t samples = 0;        ///< in this batch
  double loss = not_measured;      ///< mean over this batch's samples
  double accuracy = not_measured;  ///< the fraction of this batch's samples that were classified rightly
};

/// One epoch that has just ended. Losses are means over samples, accuracies fractions from 0 to 1; what was
/// not measured is NaN.
struct EpochResult {
  int epoch = 0;  ///< counted from 1
  double train_loss = not_measured;
  double train_accuracy = not_measured;
  double test_loss = not_measured;
  double test_accuracy = not_measured;
  double learning_rate = not_measured;       ///< of the epoch's last step
  double seconds = not_measured;             ///< wall time of the training pass
  double samples_per_second = not_measured;  ///< of the training pass
};

/// The epochs of one run, in order.
using History = std::vector<EpochResult>;

/// A mean over samples, gathered batch by batch in double precision. Batches without a measurement (NaN)
/// count like any other, so a loss that diverges shows.
class RunningMean {
 public:
  /// Adds a batch whose mean is `mean` and which has `samples` samples.
  constexpr void add(double mean, std::int64_t samples) {
    total_ += mean * static_cast<double>(samples);
    samples_ += samples;
  }

  constexpr std::int64_t samples() const { return samples_; }

  /// The mean over all samples so far, NaN if there are none.
  constexpr double value() const {
    return samples_ == 0 ? not_measured : total_ / static_cast<double>(samples_);
  }

 private:
  double total_ = 0.0;
  std::int64_t samples_ = 0;
};

}  // namespace taut::train
