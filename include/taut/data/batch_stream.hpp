#pragma once
// The engine of the `DataLoader`, for any data set: worker threads that fill a ring of batch buffers in
// order, ahead of the one thread that consumes them.
//
// Batch b lives in slot b mod S. Workers take the batches one by one and in order; the one that took b waits
// until the consumer has left batch b - S, fills the slot without holding the lock, and marks it full. The
// consumer waits for exactly the batch that comes next. So the order does not depend on the number of
// workers; and nobody waits for ever, since the batch that the consumer waits for always has a free slot.

#include <algorithm>
#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "../core/shape.hpp"

namespace taut::data {

/// A batch of B samples. Its spans are views into a buffer of the loader, and are valid until the iterator
/// that gave the batch advances or is destroyed.
struct Batch {
  std::span<const float> values;          ///< `shape.size()` values in row-major order, 64-byte aligned
  Shape shape;                            ///< [B, sample shape...]
  std::span<const std::int64_t> labels;   ///< B labels
  std::span<const std::int64_t> samples;  ///< the B indices of the samples in the data set
  std::int64_t index = 0;                 ///< the number of this batch in its epoch, from 0

  /// B, the number of samples.
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }

  /// The values as a tensor of shape [B, sample shape...] and of `T`'s element type. It owns its data.
  template <class T> T tensor() const {
    using Element = typename T::Element;
    if constexpr (std::same_as<Element, float>) {
      return T::from_host(values, shape);
    } else {
      return T::from_host(std::vector<Element>(values.begin(), values.end()), shape);
    }
  }

  /// The labels as a tensor of integers, `T::Index`, of shape [B]. It owns its data.
  template <class T> typename T::Index targets() const { return T::Index::from_host(labels, Shape{size()}); }
};

namespace detail {

// What a pass over a data set does, with the type of the data set erased.
struct BatchPlan {
  std::function<std::int64_t(std::int64_t sample, std::span<float> values)> read;  // returns the label
  std::vector<std::int64_t> order;  // the samples, in the order in which they come
  Shape sample_shape;
  std::int64_t batch_size = 1, batch_count = 0, start_batch = 0;
  int workers = 0, prefetch = 1;

  std::span<const std::int64_t> samples_of(std::int64_t batch) const {
    const auto all = std::span(order);
    const auto begin = static_cast<std::size_t>(batch * batch_size);
    return all.subspan(begin, std::min(static_cast<std::size_t>(batch_size), all.size() - begin));
  }
};

// The memory of a batch: room for `capacity` samples of `sample_size` values.
class BatchBuffer {
 public:
  BatchBuffer(std::int64_t capacity, std::int64_t sample_size)
      : values_(static_cast<float*>(
            ::operator new(static_cast<std::size_t>(capacity* sample_size) * sizeof(float), alignment))),
        labels_(static_cast<std::size_t>(capacity)),
        sample_size_(static_cast<std::size_t>(sample_size)) {}

  std::span<float> values_of(std::size_t row) { return {values_.get() + row * sample_size_, sample_size_}; }
  std::int64_t& label_of(std::size_t row) { return labels_[row]; }

  std::span<const float> values(std::size_t rows) const { return {values_.get(), rows * sample_size_}; }
  std::span<const std::int64_t> labels(std::size_t rows) const { return std::span(labels_).first(rows); }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Delete {
    void operator()(float* memory) const { ::operator delete(memory, alignment); }
  };

  std::unique_ptr<float[], Delete> values_;
  std::vector<std::int64_t> labels_;
  std::size_t sample_size_;
};

// One pass over a data set. Belongs to one consumer, who calls `next` until it returns false or throws.
class BatchStream {
 public:
  explicit BatchStream(std::shared_ptr<const BatchPlan> plan)
      : plan_(std::move(plan)),
        next_(plan_->start_batch),
        taken_(plan_->start_batch),
        wanted_(plan_->start_batch) {
    const auto batches = plan_->batch_count - plan_->start_batch;
    make_slots(batches);
    start(std::min<std::int64_t>(plan_->workers, batches));
  }

  // Does not wait for the batches in the making: a worker stops after the sample that it is reading.
  ~BatchStream() { stop(); }

  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // Releases the batch given before and sets `batch` to the next one; returns false if there is none.
  // Rethrows what was thrown while that batch was filled, and then there are no more batches.
  bool next(Batch& batch) {
    if (next_ == plan_->batch_count) return false;
    const auto index = next_++;
    auto& slot = slot_of(index);
    if (threads_.empty()) {
      fill(slot, index);
    } else {
      await(slot, index);
    }
    if (slot.error) {
      next_ = plan_->batch_count;
      stop();
      std::rethrow_exception(slot.error);
    }
    batch = view(slot, index);
    return true;
  }

 private:
  static constexpr std::int64_t no_batch = -1;

  struct Slot {
    BatchBuffer buffer;
    std::int64_t full_with = no_batch;  // the batch in it, set when that is complete
    std::exception_ptr error = nullptr;
  };

  void make_slots(std::int64_t batches) {
    // One more than are prefetched: the one that the consumer is looking at.
    const auto wanted = plan_->workers == 0 ? 1 : std::int64_t{plan_->prefetch} + 1;
    const auto count = std::min(wanted, batches);
    const auto rows = std::min(plan_->batch_size, static_cast<std::int64_t>(plan_->order.size()));
    slots_.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      slots_.push_back({BatchBuffer(rows, plan_->sample_shape.size())});
  }

  void start(std::int64_t workers) {
    try {
      for (std::int64_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {  // the system has no more threads to give
      stop();
      throw;
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    slot_freed_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  // The life of a worker.
  void work() {
    while (const auto batch = take()) {
      auto& slot = slot_of(*batch);
      fill(slot, *batch);
      {
        const std::lock_guard lock(mutex_);
        slot.full_with = *batch;
      }
      slot_filled_.notify_one();
    }
  }

  // The batch that the calling worker is to fill, once its slot is free.
  std::optional<std::int64_t> take() {
    std::unique_lock lock(mutex_);
    if (taken_ == plan_->batch_count) return std::nullopt;
    const auto batch = taken_++;
    const auto slots = static_cast<std::int64_t>(slots_.size());
    slot_freed_.wait(lock, [&] { return stopping_ || batch < wanted_ + slots; });
    return stopping_ ? std::nullopt : std::optional(batch);
  }

  // Lets the consumer leave the batch that it has, and wait until `batch` is in its slot.
  void await(const Slot& slot, std::int64_t batch) {
    std::unique_lock lock(mutex_);
    wanted_ = batch;
    slot_freed_.notify_all();
    slot_filled_.wait(lock, [&] { return slot.full_with == batch; });
  }

  void fill(Slot& slot, std::int64_t batch) noexcept {
    try {
      const auto samples = plan_->samples_of(batch);
      for (std::size_t row = 0; row < samples.size() && !stopping_; ++row) {
        slot.buffer.label_of(row) = plan_->read(samples[row], slot.buffer.values_of(row));
      }
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  Slot& slot_of(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }

  Batch view(const Slot& slot, std::int64_t index) const {
    const auto samples = plan_->samples_of(index);
    Shape shape{static_cast<std::int64_t>(samples.size())};
    for (const auto extent : plan_->sample_shape) shape.push_back(extent);
    return {slot.buffer.values(samples.size()), shape, slot.buffer.labels(samples.size()), samples, index};
  }

  std::shared_ptr<const BatchPlan> plan_;
  std::vector<Slot> slots_;
  std::int64_t next_;  // what the consumer gets next; its own

  std::mutex mutex_;  // guards the following, and `full_with` of every slot
  std::condition_variable slot_freed_, slot_filled_;
  std::int64_t taken_;                  // what the next free worker fills
  std::int64_t wanted_;                 // what the consumer has or waits for
  std::atomic<bool> stopping_ = false;  // written under the lock; read between samples without it
  std::vector<std::thread> threads_;    // the consumer's own
};

}  // namespace detail
}  // namespace taut::data
