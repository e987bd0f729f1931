#include "taut/cuda/pool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mock_device.hpp"
#include "taut/cuda/buffer.hpp"
#include "taut/cuda/graph_memory.hpp"

namespace {

using taut::DeviceError;
using taut::cuda::Buffer;
using taut::cuda::GraphMemory;
using taut::cuda::Pool;

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

/// A pool over a model of a device, and a tenant's number for whatever uses memory.
class CudaPool : public testing::Test {
 protected:
  Buffer take(std::size_t bytes, int stream = 0) {
    return Buffer::allocate(bytes, pool_, mock::stream(stream));
  }

  /// Queues work that uses the buffer.
  void use(const Buffer& buffer, int stream = 0) {
    std::byte* const memory = buffer.data(mock::stream(stream));
    device_.use(stream, {mock::range_of(memory, buffer.bytes()), reinterpret_cast<std::uintptr_t>(memory)});
  }

  std::byte* address(const Buffer& buffer) { return buffer.data(mock::stream(0)); }

  void TearDown() override {
    EXPECT_EQ(pool_.statistics().live, 0u);
    pool_.trim();
    EXPECT_EQ(pool_.statistics().cached, 0u);
    EXPECT_EQ(device_.bytes(), 0u);
    EXPECT_EQ(device_.events(), 0u);
  }

  mock::Device device_{GiB};
  Pool pool_{device_};
};

TEST_F(CudaPool, HandsOutWhatWasAskedFor) {
  const Buffer none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.data(mock::stream(0)), nullptr);
  EXPECT_EQ(none.bytes(), 0u);
  std::vector<Buffer> buffers;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, 511 * std::size_t{1}, 512 * std::size_t{1},
                                  513 * std::size_t{1}, MiB, MiB + 1, 40 * MiB}) {
    buffers.push_back(take(bytes));
    EXPECT_EQ(buffers.back().bytes(), bytes);
    EXPECT_TRUE(buffers.back().unique());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address(buffers.back())) % 256, 0u);
    use(buffers.back());
  }
}

TEST_F(CudaPool, CopiesShareAndMovesPassOn) {
  Buffer a = take(10);
  std::byte* const memory = address(a);
  Buffer b = a;
  EXPECT_FALSE(a.unique());
  EXPECT_EQ(address(b), memory);
  Buffer c = std::move(a);
  EXPECT_FALSE(a);  // NOLINT: what a moved-from buffer is, is specified
  b = {};
  EXPECT_TRUE(c.unique());
  Buffer& same = c;
  c = same;
  EXPECT_EQ(address(c), memory);
}

TEST_F(CudaPool, GivesTheSameStreamItsMemoryBackAtOnce) {
  Buffer a = take(100 * KiB);
  std::byte* const memory = address(a);
  use(a);
  a = {};
  a = take(90 * KiB);
  EXPECT_EQ(address(a), memory);
  EXPECT_EQ(device_.allocations, 1);
  EXPECT_EQ(device_.events(), 0u) << "one stream needs no events";
}

TEST_F(CudaPool, GivesAnotherStreamMemoryOnceItsEventHasPassed) {
  Buffer a = take(30 * MiB, 0);
  std::byte* const memory = address(a);
  use(a, 0);
  a = {};
  Buffer b = take(30 * MiB, 1);
  EXPECT_NE(b.data(mock::stream(1)), memory) << "the first stream's work is still queued";
  device_.advance(0);
  const Buffer c = take(30 * MiB, 1);
  EXPECT_EQ(c.data(mock::stream(1)), memory);
}

TEST_F(CudaPool, WaitsForOtherStreamsThatUseABuffer) {
  Buffer a = take(30 * MiB, 0);
  std::byte* const memory = address(a);
  use(a, 1);
  a = {};
  Buffer b = take(30 * MiB, 0);
  EXPECT_NE(address(b), memory) << "another stream still uses it";
  device_.advance(1);
  const Buffer c = take(30 * MiB, 0);
  EXPECT_EQ(address(c), memory);
}

TEST_F(CudaPool, SplitsSegmentsAndMergesBlocks) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 16; ++i) buffers.push_back(take(2 * MiB));
  EXPECT_EQ(device_.allocations, 1);
  for (int i = 0; i < 16; i += 2) buffers[i] = {};
  for (int i = 1; i < 16; i += 2) buffers[i] = {};
  buffers[0] = take(32 * MiB);
  EXPECT_EQ(device_.allocations, 1) << "all parts are one again";
}

TEST_F(CudaPool, KeepsSmallRequestsApart) {
  const Buffer small = take(100), large = take(3 * MiB), other = take(200);
  EXPECT_EQ(device_.allocations, 2);
  EXPECT_EQ(address(other), address(small) + Pool::granule);
}

TEST_F(CudaPool, Counts) {
  Buffer a = take(600), b = take(2 * MiB + 1);
  const std::size_t live = 1024 + 2 * MiB + Pool::large_granule;
  const auto full = pool_.statistics();
  EXPECT_EQ(full.live, live);
  EXPECT_EQ(full.cached, Pool::small_segment + Pool::large_segment - live);
  EXPECT_EQ(full.allocations, 2u);
  b = {};
  const auto less = pool_.statistics();
  EXPECT_EQ(less.live, 1024u);
  EXPECT_EQ(less.peak, live);
  EXPECT_EQ(less.live + less.cached, device_.bytes());
  pool_.reset_peak();
  EXPECT_EQ(pool_.statistics().peak, 1024u);
  pool_.trim();
  EXPECT_EQ(device_.bytes(), Pool::small_segment);
  EXPECT_EQ(pool_.statistics().releases, 1u);
}

// ---- out of memory

TEST_F(CudaPool, TrimsBeforeItGivesUp) {
  for (int i = 0; i < 20; ++i) {
    const Buffer a = take((40 + i) * MiB, i % 2);  // fills the device with segments that do not fit
    use(a, i % 2);
  }
  const Buffer large = take(900 * MiB);
  EXPECT_EQ(device_.bytes(), 900 * MiB);
}

TEST_F(CudaPool, BorrowsFromAnotherStreamWithoutWaiting) {
  Buffer a = take(900 * MiB, 0);
  use(a, 0);
  a = {};
  const Buffer b = take(900 * MiB, 1);
  use(b, 1);
  EXPECT_EQ(device_.bytes(), 900 * MiB);
  device_.advance(1);
}

TEST_F(CudaPool, SaysWhatThereIsIfThereIsNotEnough) {
  const Buffer live = take(600 * MiB);
  take(100 * MiB);
  for (const std::size_t bytes : {600 * MiB, Pool::max_bytes + 1, ~std::size_t{0}}) {
    try {
      take(bytes);
      FAIL() << bytes;
    } catch (const DeviceError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("asked for " + std::to_string(bytes) + " bytes while " +
                             std::to_string(600 * MiB) + " are live and "),
                std::string::npos)
          << message;
      EXPECT_EQ(error.code(), 2);
    }
  }
  EXPECT_EQ(pool_.statistics().live, 600 * MiB);
  const Buffer rest = take(400 * MiB);
}

TEST_F(CudaPool, TakesLessThanASegmentIfThatIsAllThereIs) {
  const Buffer most = take(GiB - 8 * MiB), more = take(6 * MiB), small = take(1);
  EXPECT_EQ(device_.bytes(), GiB);
}

// ---- training

/// Allocates as a training step does: activations forward, gradients backward, and new parameters.
struct Training {
  Pool& pool;
  std::vector<std::size_t> sizes;
  std::vector<Buffer> parameters;

  Training(Pool& p, std::size_t scale) : pool(p) {
    for (std::size_t i = 0; i < 30; ++i) sizes.push_back((i * 7919 % 31 + 1) * scale / (1 + i % 4));
    for (const std::size_t bytes : sizes) parameters.push_back(take(bytes / 16));
  }
  Buffer take(std::size_t bytes) { return Buffer::allocate(bytes, pool, mock::stream(0)); }

  void step() {
    std::vector<Buffer> activations, gradients;
    for (const std::size_t bytes : sizes) {
      const Buffer temporary = take(bytes / 3);
      activations.push_back(take(bytes));
    }
    Buffer gradient = take(sizes.back());
    while (!activations.empty()) {
      gradients.push_back(take(sizes[activations.size() - 1] / 16));
      gradient = take(activations.back().bytes());
      activations.pop_back();
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Buffer updated = take(parameters[i].bytes());
      parameters[i] = std::move(updated);
    }
  }
};

TEST_F(CudaPool, ASteadyStepAsksTheDeviceForNothing) {
  for (const std::size_t scale : {KiB, 64 * KiB, MiB}) {
    Training training(pool_, scale);
    for (int i = 0; i < 15; ++i) training.step();
    const int before = device_.allocations;
    for (int i = 0; i < 500; ++i) training.step();
    EXPECT_EQ(device_.allocations, before) << scale;
  }
}

TEST_F(CudaPool, ALoaderOnAStreamOfItsOwnReusesItsBuffers) {
  int before = 0;
  for (int step = 0; step < 50; ++step) {
    const Buffer batch = take(2 * MiB, 1);
    use(batch, 1);
    use(batch, 0);
    device_.advance(1);
    if (step >= 2) device_.advance(0);  // the device is two steps behind
    if (step == 5) before = device_.allocations;
  }
  EXPECT_EQ(device_.allocations, before);
}

// ---- graphs

TEST_F(CudaPool, AGraphKeepsWhatItsCaptureUsed) {
  Buffer outside = take(2 * MiB);
  std::byte* const old = address(outside);
  auto memory = std::make_unique<GraphMemory>(pool_, mock::stream(0));
  device_.capture[0] = 1;
  device_.graphs[1] = {};
  Buffer temporary = take(3 * MiB);
  std::byte* const first = address(temporary);
  temporary = {};
  Buffer result = take(3 * MiB);
  EXPECT_EQ(address(result), first) << "within the capture, memory is reused";
  EXPECT_EQ(address(outside), old);
  outside = {};
  const Buffer other = take(2 * MiB);
  EXPECT_NE(address(other), old) << "the replays need it";
  device_.capture[0] = 0;
  memory->end_capture();
  result = {};
  EXPECT_EQ(memory->bytes(), 5 * MiB);
  EXPECT_EQ(pool_.statistics().graphs, 5 * MiB);
  const Buffer later = take(3 * MiB), smaller = take(2 * MiB);
  for (const Buffer* buffer : {&later, &smaller}) {
    EXPECT_NE(address(*buffer), first);
    EXPECT_NE(address(*buffer), old);
  }
  device_.graphs.clear();
  memory = nullptr;
  EXPECT_EQ(pool_.statistics().graphs, 0u);
  const Buffer a = take(2 * MiB), b = take(3 * MiB);
  EXPECT_TRUE(address(a) == old || address(b) == first) << "and then it is anybody's";
}

TEST_F(CudaPool, AGraphKnowsWhetherItsMemoryIsIntact) {
  Buffer read = take(MiB), written = take(MiB), unused = take(MiB);
  GraphMemory memory(pool_, mock::stream(0));
  Buffer made = take(MiB);
  EXPECT_EQ(memory.live(), 1u);
  use(read, 0);
  EXPECT_EQ(written.mutable_data(mock::stream(0)), written.data(mock::stream(0)));
  memory.end_capture();
  made = {};
  EXPECT_EQ(memory.live(), 0u);
  EXPECT_TRUE(memory.is_intact());
  {
    const Buffer shared = read, also = unused;
    EXPECT_TRUE(memory.is_intact()) << "what is only read may be shared";
  }
  {
    const Buffer shared = written;
    EXPECT_FALSE(memory.is_intact()) << "others would see what replays write";
  }
  unused = {};
  EXPECT_TRUE(memory.is_intact());
  read = {};
  EXPECT_FALSE(memory.is_intact()) << "replays would read what the program does not mean";
}

TEST_F(CudaPool, RefusesToCaptureAStreamTwice) {
  GraphMemory memory(pool_, mock::stream(0));
  EXPECT_THROW(GraphMemory(pool_, mock::stream(0)), taut::Error);
  GraphMemory other(pool_, mock::stream(1));
}

// ---- streams that end

TEST_F(CudaPool, ForgetsAStream) {
  Buffer freed = take(4 * MiB, 2), held = take(4 * MiB, 2);
  use(freed, 2);
  freed = {};
  pool_.forget(mock::stream(2));
  EXPECT_EQ(device_.events(), 0u);
  held = {};
  const Buffer whole = take(32 * MiB, 1);
  EXPECT_EQ(device_.allocations, 1);
}

// ---- all at once

/// A sequence of random numbers, the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

/// Allocates, uses, drops, captures and replays at random, and checks the pool after each step.
class RandomUse {
 public:
  RandomUse(std::uint64_t seed, std::size_t limit) : random_(seed), device_(limit) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
    finish();
  }

  static constexpr int no_stream = -1;
  int refusals = 0;  ///< how often there was not enough memory

 private:
  struct Tenant {
    std::uint64_t number;
    int stream;
    Buffer buffer;
  };

  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return allocate();
      case 5:
      case 6:
      case 7:
        return use();
      case 8:
      case 9:
      case 10:
        return drop(1);
      case 11:
      case 12:
        return device_.advance(static_cast<int>(random_.below(mock::streams)));
      case 13:
        return random_.one_in(10) ? begin_or_end_capture() : use();
      case 14:
        return replay_or_destroy();
      case 15:
        if (random_.one_in(50)) pool_.trim();
        if (random_.one_in(50)) drop(random_.below(tenants_.size() + 1));
        if (random_.one_in(50)) forget();
        return;
    }
  }

  std::size_t random_size() {
    if (random_.one_in(30)) return random_.below(device_.limit());
    const std::size_t magnitude = std::size_t{1} << random_.below(26);
    return random_.one_in(3) ? magnitude : random_.below(magnitude + 1);
  }

  void allocate() {
    const int stream = static_cast<int>(random_.below(mock::streams));
    const std::size_t bytes = random_size();
    try {
      Tenant tenant{++last_tenant_, stream, Buffer::allocate(bytes, pool_, mock::stream(stream))};
      if (const auto graph = device_.capture[stream]) device_.graphs.at(graph).born.insert(tenant.number);
      tenants_.push_back(std::move(tenant));
      expect_apart(tenants_.back());
      use(tenants_.back(), stream);
    } catch (const DeviceError&) {
      ++refusals;
      // Everything that nobody needs has been given back. (A capture cannot wait for other streams.)
      EXPECT_GT(device_.bytes() + bytes + 2 * MiB, device_.limit());
      drop(tenants_.size() / 2);
    }
  }

  void use() {
    if (tenants_.empty()) return;
    const Tenant& tenant = tenants_[random_.below(tenants_.size())];
    const int stream = random_.one_in(5) ? static_cast<int>(random_.below(mock::streams)) : tenant.stream;
    // Other streams get to see what is in the buffer once its own stream has computed it.
    if (stream != tenant.stream && device_.capture[tenant.stream] != 0) return;
    if (stream != tenant.stream) device_.follow(stream, tenant.stream);
    use(tenant, stream);
  }
  void use(const Tenant& tenant, int stream) {
    const std::byte* const memory = tenant.buffer.data(mock::stream(stream));
    device_.use(stream, {mock::range_of(memory, tenant.buffer.bytes()), tenant.number});
  }

  void drop(std::size_t count) {
    for (; count > 0 && !tenants_.empty(); --count) {
      std::swap(tenants_[random_.below(tenants_.size())], tenants_.back());
      if (random_.one_in(4)) const Buffer copy = tenants_.back().buffer;
      tenants_.pop_back();
    }
  }

  void begin_or_end_capture() {
    const int stream = static_cast<int>(random_.below(mock::streams));
    if (const auto graph = std::exchange(device_.capture[stream], 0)) {
      memories_.at(graph)->end_capture();
    } else {
      const auto number = ++last_graph_;
      memories_[number] = std::make_unique<GraphMemory>(pool_, mock::stream(stream));
      device_.graphs[number].stream = stream;
      device_.capture[stream] = number;
    }
  }

  void replay_or_destroy() {
    if (memories_.empty()) return;
    const auto number =
        std::next(memories_.begin(), static_cast<long>(random_.below(memories_.size())))->first;
    const int stream = device_.graphs.at(number).stream;
    if (stream != no_stream && device_.capture[stream] != 0) return;  // nothing else gets in meanwhile
    if (random_.one_in(4))
      destroy(number);
    else if (stream != no_stream)
      device_.replay(device_.graphs.at(number));
  }

  void destroy(std::uint64_t graph) {
    device_.graphs.erase(graph);
    memories_.erase(graph);
  }

  void forget() {
    const int stream = static_cast<int>(random_.below(mock::streams));
    if (device_.capture[stream] != 0) return;
    pool_.forget(mock::stream(stream));
    for (auto& [number, graph] : device_.graphs)
      if (graph.stream == stream) graph.stream = no_stream;
  }

  void expect_apart(const Tenant& tenant) {
    const auto range = [](const Tenant& t) {
      return mock::range_of(t.buffer.data(mock::stream(t.stream)), t.buffer.bytes());
    };
    for (const Tenant& other : tenants_)
      EXPECT_TRUE(&other == &tenant || !range(other).overlaps(range(tenant))) << "live buffers overlap";
  }

  void check() {
    std::size_t live = 0;
    for (const Tenant& tenant : tenants_) {
      const std::size_t bytes = std::max<std::size_t>(tenant.buffer.bytes(), 1);
      const std::size_t unit = bytes <= Pool::small_limit ? Pool::granule : Pool::large_granule;
      live += (bytes + unit - 1) / unit * unit;
    }
    const auto statistics = pool_.statistics();
    EXPECT_EQ(statistics.live, live);
    EXPECT_EQ(statistics.live + statistics.cached, device_.bytes());
    EXPECT_GE(statistics.peak, live);
    std::size_t graphs = 0;
    for (const auto& [number, memory] : memories_) graphs += memory->bytes();
    EXPECT_EQ(statistics.graphs, graphs);
  }

  /// When nothing is used any more, everything is whole again and goes back.
  void finish() {
    for (int stream = 0; stream < mock::streams; ++stream) {
      if (const auto graph = std::exchange(device_.capture[stream], 0)) memories_.at(graph)->end_capture();
    }
    while (!memories_.empty()) destroy(memories_.begin()->first);
    tenants_.clear();
    check();
    pool_.trim();
    EXPECT_EQ(pool_.statistics().cached, 0u);
    EXPECT_EQ(device_.bytes(), 0u);
    EXPECT_EQ(device_.events(), 0u);
  }

  Random random_;
  mock::Device device_;
  Pool pool_{device_};
  std::vector<Tenant> tenants_;
  std::map<std::uint64_t, std::unique_ptr<GraphMemory>> memories_;
  std::uint64_t last_tenant_ = 0, last_graph_ = 0;
};

TEST(CudaPoolAtRandom, KeepsItsInvariants) {
  int refusals = 0;
  for (std::uint64_t seed = 0; seed < 200 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomUse use(seed, seed % 3 == 0 ? 8 * GiB : 300 * MiB);
    use.run(1500);
    refusals += use.refusals;
  }
  EXPECT_GT(refusals, 20) << "the test must run out of memory often";
}

TEST(CudaPoolThreads, ShareThePool) {
  mock::Device device(64 * GiB);
  Pool pool(device);
  std::vector<std::thread> threads;
  std::atomic<int> damaged = 0;
  for (int t = 0; t < mock::streams; ++t)
    threads.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t));
      std::vector<Buffer> own;
      for (int i = 0; i < 3000; ++i) {
        if (own.size() < 20) own.push_back(Buffer::allocate(random.below(3 * MiB), pool, mock::stream(t)));
        const Buffer copy = own[random.below(own.size())];
        if (copy.unique()) ++damaged;
        std::swap(own[random.below(own.size())], own.back());
        if (own.size() == 20) own.pop_back();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(pool.statistics().live, 0u);
  pool.trim();
  EXPECT_EQ(device.bytes(), 0u);
}

// ---- memory of the host

/// A device whose memory is the host's.
class HostDevice final : public taut::cuda::DeviceMemory {
 public:
  void* allocate(std::size_t bytes) override { return std::aligned_alloc(256, bytes); }
  void release(void* memory) noexcept override { std::free(memory); }
  taut::cuda::Event record(taut::cuda::Stream) override { return nullptr; }
  void destroy(taut::cuda::Event) noexcept override {}
  bool has_passed(taut::cuda::Event) override { return true; }
  void wait(taut::cuda::Stream, taut::cuda::Event) override {}
  void wait(taut::cuda::Event) override {}
  bool on_host() const override { return true; }
};

TEST(CudaPoolOnHost, HandsOutBytesOfNaN) {
  HostDevice device;
  Pool pool(device);
  for (int i = 0; i < 3; ++i) {
    const Buffer buffer = Buffer::allocate(1000, pool, mock::stream(0));
    for (std::size_t at = 0; at < buffer.bytes(); ++at)
      ASSERT_EQ(std::exchange(buffer.data(mock::stream(0))[at], std::byte{0}), std::byte{0xFF});
  }
}

#if TAUT_ADDRESS_SANITIZER
TEST(CudaPoolOnHost, LetsAddressSanitizerSeeMisuse) {
  HostDevice device;
  Pool pool(device);
  const auto take = [&](std::size_t bytes) { return Buffer::allocate(bytes, pool, mock::stream(0)); };
  EXPECT_DEATH(
      {
        const Buffer buffer = take(100);
        buffer.data(mock::stream(0))[100] = std::byte{1};
      },
      "use-after-poison");
  EXPECT_DEATH(
      {
        std::byte* const data = take(100).data(mock::stream(0));
        data[0] = std::byte{1};
      },
      "use-after-poison");
  EXPECT_DEATH(
      {
        take(2000);
        const Buffer reused = take(65);
        reused.data(mock::stream(0))[65] = std::byte{1};
      },
      "use-after-poison");
}
#endif

}  // namespace
