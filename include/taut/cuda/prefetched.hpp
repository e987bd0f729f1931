#pragma once
// `Prefetched`: a loader whose batches are on their way to the device before the program asks for them.
//
// A thread of its own takes the batches from the loader that it wraps and uploads them, as tensors do: part
// after part through pinned memory, in the thread's own stream. So neither the program nor the stream that it
// computes in waits for an upload, unless that takes longer than the steps before. The device makes the
// program's stream wait until a batch is complete; the host doesn't.

#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensor.hpp"

namespace taut::cuda {

/// A batch with its tensors on the device, or on their way. It owns all that it has.
template <class E> class DeviceBatch {
 public:
  std::vector<std::int64_t> labels;  ///< on the host

  /// Takes the tensors and labels of a batch of a loader; the copies are put into the current stream.
  template <class Batch>
  explicit DeviceBatch(const Batch& batch)
      : labels(batch.labels.begin(), batch.labels.end()),
        values_(batch.template tensor<BasicCudaTensor<E>>()),
        targets_(batch.template targets<BasicCudaTensor<E>>()) {}

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }

  /// The values [B, sample shape...] as a `BasicCudaTensor<E>`, or what is made of one.
  template <class T>
  requires std::constructible_from<T, BasicCudaTensor<E>> T tensor()
  const { return T(values_); }

  /// The labels [B].
  template <class T>
  requires std::same_as<typename T::Index, CudaTensor::Index>
  typename T::Index targets() const { return targets_; }

 private:
  BasicCudaTensor<E> values_;
  CudaTensor::Index targets_;
};

namespace detail {

struct DestroyEvent {
  void operator()(Event event) const { destroy_event(event); }
};
using OwnedEvent = std::unique_ptr<OpaqueEvent, DestroyEvent>;

/// Uploads one pass over a loader in a thread of its own, `most` batches ahead of the consumer at most.
template <class Iterator, class End, class Batch> class Uploads {
 public:
  Uploads(Iterator next, End end, std::size_t most)
      : next_(std::move(next)), end_(std::move(end)), most_(most), device_(current_device()) {
    thread_ = std::thread([this] { work(); });
  }
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;
  ~Uploads() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// The next batch, for work that is put into the current stream from now on; none at the end. Rethrows what
  /// the loader has thrown.
  std::optional<Batch> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || ended_; });
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
      return std::nullopt;
    }
    Uploaded uploaded = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    wait(current_stream(), uploaded.complete.get());
    return std::move(uploaded.batch);
  }

 private:
  struct Uploaded {
    Batch batch;
    OwnedEvent complete;
  };

  void work() noexcept {
    std::exception_ptr error;
    try {
      set_current_device(device_);
      for (; next_ != end_ && has_room(); ++next_) add(upload(*next_));
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      error_ = error;
    }
    changed_.notify_all();
  }

  /// Waits until another batch may be uploaded; false if no more are wanted.
  bool has_room() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || ready_.size() < most_; });
    return !stopping_;
  }

  template <class From> static Uploaded upload(const From& from) {
    Uploaded uploaded{Batch(from), OwnedEvent(create_event())};
    record(uploaded.complete.get(), current_stream());
    return uploaded;
  }

  void add(Uploaded uploaded) {
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(uploaded));
    }
    changed_.notify_all();
  }

  Iterator next_;  // the thread's
  End end_;
  const std::size_t most_;
  const int device_;

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::deque<Uploaded> ready_;
  bool stopping_ = false, ended_ = false;
  std::exception_ptr error_;

  std::thread thread_;
};

/// Steps through the batches of one pass: an input iterator, which can be moved but not copied.
template <class Iterator, class End, class Batch> class PrefetchIterator {
 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  PrefetchIterator(Iterator begin, End end, std::size_t ahead)
      : uploads_(std::make_unique<Uploads<Iterator, End, Batch>>(std::move(begin), std::move(end), ahead)),
        batch_(uploads_->take()) {}

  const Batch& operator*() const { return *batch_; }
  const Batch* operator->() const { return &*batch_; }

  PrefetchIterator& operator++() {
    batch_.reset();
    batch_ = uploads_->take();
    return *this;
  }
  void operator++(int) { ++*this; }

  bool operator==(std::default_sentinel_t) const { return !batch_; }

 private:
  std::unique_ptr<Uploads<Iterator, End, Batch>> uploads_;
  std::optional<Batch> batch_;
};

}  // namespace detail

/// The batches of a loader, uploaded ahead:
///
///     cuda::Prefetched loader{data::DataLoader{data::Mnist::load("data/mnist", data::Split::train)}};
///     train::fit(model, sgd, loader);
///
/// The loader, or the rest of an epoch as `loader.epoch(2, 100)`, is moved in; the order of the batches is
/// its own. Its batches have `tensor<T>()`, `targets<T>()` and `labels`. Each loop is a pass over it, to
/// which one thread belongs; leaving it by `break` or an exception ends that. What the loader throws comes
/// out of the loop at the batch where it happened. A batch takes memory of the device, and `ahead + 1` do at
/// most beside the one that the program has. E is the type of the tensors' elements, float or bfloat16.
template <class L, class E = float> class Prefetched {
 public:
  /// Throws `Error` unless `ahead` is at least 1.
  explicit Prefetched(L loader, int ahead = 2) : loader_(std::move(loader)), ahead_(ahead) {
    if (ahead < 1) throw Error("Prefetched: expected ahead to be at least 1, got " + std::to_string(ahead));
  }

  auto begin() {
    using Iterator = decltype(loader_.begin());
    using End = decltype(loader_.end());
    return detail::PrefetchIterator<Iterator, End, DeviceBatch<E>>(loader_.begin(), loader_.end(),
                                                                   static_cast<std::size_t>(ahead_));
  }
  std::default_sentinel_t end() const { return {}; }

  /// The number of batches of an epoch, if the loader knows it.
  std::int64_t batches_per_epoch() const requires requires(const L& loader) { loader.batches_per_epoch(); }
  { return loader_.batches_per_epoch(); }

 private:
  L loader_;
  int ahead_;
};

}  // namespace taut::cuda
