#pragma once
// `DataLoader`: batches of a data set, shuffled by a seed and read ahead by worker threads.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/shape.hpp"
#include "batch_stream.hpp"
#include "dataset.hpp"

namespace taut::data {

struct DataLoaderOptions {
  std::int64_t batch_size = 64;  ///< samples a batch; the last batch of an epoch may have fewer
  bool shuffle = true;           ///< a new random order each epoch; otherwise the data set's order
  std::uint64_t seed = 0;        ///< of the order and of the samples' randomness
  int workers = 2;               ///< threads that read ahead; 0 reads in the consumer's own thread
  int prefetch = 4;              ///< batches read ahead at most; has no effect without workers
  std::int64_t first_epoch = 0;  ///< the number of the epoch that the first loop over the loader is
  bool drop_last = false;        ///< leave out the last batch if it has fewer samples than the others
};

/// Steps through the batches of an epoch: an input iterator, which can be moved but not copied. It owns the
/// worker threads and the buffers, so destroying it, in mid-epoch too, ends and frees them. Where the
/// batches end it compares equal to `std::default_sentinel`.
class BatchIterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  explicit BatchIterator(std::shared_ptr<const detail::BatchPlan> plan)
      : stream_(std::make_unique<detail::BatchStream>(std::move(plan))) {
    ++*this;
  }

  const Batch& operator*() const { return batch_; }
  const Batch* operator->() const { return &batch_; }

  /// Goes to the next batch; the one before is no longer valid. Rethrows an exception that reading a
  /// sample of the next batch has thrown, after which the iterator is at the end.
  BatchIterator& operator++() {
    at_end_ = true;
    at_end_ = !stream_->next(batch_);
    return *this;
  }
  void operator++(int) { ++*this; }

  bool operator==(std::default_sentinel_t) const { return at_end_; }

 private:
  std::unique_ptr<detail::BatchStream> stream_;
  Batch batch_;
  bool at_end_ = false;
};

/// The batches of one epoch, or of the rest of one: a range that can be gone through any number of times,
/// always with the same batches. It may outlive its loader.
class Epoch {
 public:
  explicit Epoch(std::shared_ptr<const detail::BatchPlan> plan) : plan_(std::move(plan)) {}

  BatchIterator begin() const { return BatchIterator(plan_); }
  std::default_sentinel_t end() const { return {}; }

  /// The number of batches.
  std::int64_t size() const { return plan_->batch_count - plan_->start_batch; }

 private:
  std::shared_ptr<const detail::BatchPlan> plan_;
};

/// Gives a data set as batches while worker threads read ahead:
///
///     data::DataLoader loader{data::Mnist::load("data/mnist", data::Split::train), {.batch_size = 64}};
///     for (int epoch = 0; epoch < 10; ++epoch) {
///       for (const auto& batch : loader) train(batch.tensor<T>(), batch.targets<T>());
///     }
///
/// Every loop over the loader is the next epoch, in a new order. Order, samples and their random
/// augmentation depend on the seed and the epoch only, never on the number of workers. Leaving a loop by
/// `break` or by an exception ends the workers. What the data set throws comes out of the loop at the batch
/// where it happened. The loader is used by one thread; different loaders are independent.
template <Dataset D> class DataLoader {
 public:
  /// Throws `Error` if an option is out of its range, and `ShapeError` if batches would have a rank above
  /// `max_rank`. The data set is moved or copied in; sets like `Mnist` share their data between copies.
  explicit DataLoader(D dataset, DataLoaderOptions options = {})
      : dataset_(std::make_shared<const D>(std::move(dataset))), options_(options) {
    require_at_least("batch_size", options.batch_size, 1);
    require_at_least("workers", options.workers, 0);
    require_at_least("prefetch", options.prefetch, 1);
    require_at_least("first_epoch", options.first_epoch, 0);
    next_epoch_ = options.first_epoch;
    require(Shape(dataset_->sample_shape()).rank() < max_rank,
            "DataLoader: the samples' rank leaves no room for a batch dimension",
            Shape(dataset_->sample_shape()));
  }

  DataLoader(DataLoader&&) = default;
  DataLoader& operator=(DataLoader&&) = default;

  /// Starts the next epoch. Throws `std::system_error` if the system has no threads left.
  BatchIterator begin() { return epoch(next_epoch_++).begin(); }
  std::default_sentinel_t end() const { return {}; }

  /// Epoch number `index`, from 0, as the loops over the loader would give it, but from its batch
  /// `start_batch` on. To resume training, loop over these. Throws `Error` if there is no such batch.
  Epoch epoch(std::int64_t index, std::int64_t start_batch = 0) const {
    require_at_least("epoch", index, 0);
    require_at_least("start_batch", start_batch, 0);
    if (start_batch > batches_per_epoch()) {
      throw Error("DataLoader: expected a start_batch of at most " + std::to_string(batches_per_epoch()) +
                  ", the batches of an epoch, got " + std::to_string(start_batch));
    }
    const Rng rng = Rng{options_.seed}.fork(static_cast<std::uint64_t>(index));
    detail::BatchPlan plan;
    plan.read = reader(rng.fork(sample_stream));
    plan.order = order(rng.fork(order_stream));
    plan.sample_shape = dataset_->sample_shape();
    plan.batch_size = options_.batch_size;
    plan.batch_count = batches_per_epoch();
    plan.start_batch = start_batch;
    plan.workers = options_.workers;
    plan.prefetch = options_.prefetch;
    return Epoch(std::make_shared<const detail::BatchPlan>(std::move(plan)));
  }

  /// The number of batches in an epoch.
  std::int64_t batches_per_epoch() const {
    const std::int64_t samples = dataset_->size();
    const bool partial = samples % options_.batch_size != 0 && !options_.drop_last;
    return samples / options_.batch_size + (partial ? 1 : 0);
  }

  const D& dataset() const { return *dataset_; }
  const DataLoaderOptions& options() const { return options_; }

 private:
  static constexpr std::uint64_t order_stream = 0, sample_stream = 1;

  static void require_at_least(const char* what, std::int64_t value, std::int64_t least) {
    if (value >= least) return;
    throw Error("DataLoader: expected " + std::string(what) + " to be at least " + std::to_string(least) +
                ", got " + std::to_string(value));
  }

  auto reader(Rng rng) const {
    return [dataset = dataset_, rng](std::int64_t index, std::span<float> values) -> std::int64_t {
      Rng own = rng.fork(static_cast<std::uint64_t>(index));
      return dataset->get(index, values, own);
    };
  }

  std::vector<std::int64_t> order(Rng rng) const {
    if (options_.shuffle) return rng.permutation(dataset_->size());
    std::vector<std::int64_t> samples(static_cast<std::size_t>(dataset_->size()));
    std::iota(samples.begin(), samples.end(), 0);
    return samples;
  }

  std::shared_ptr<const D> dataset_;
  DataLoaderOptions options_;
  std::int64_t next_epoch_ = 0;
};

}  // namespace taut::data
