// The emulator itself: what kernels can do on it, that it runs them in every order, and that it stops those
// that are wrong. Kernels stand beside what is expected of them. Overruns are planted in
// planted_overruns.cpp.

#include "emulator.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "taut/cuda/kernel/block.cuh"
#include "taut/cuda/kernel/vector.cuh"

namespace taut::cuda {
namespace {

using emulator::Order;
constexpr Order orders[] = {Order::forward, Order::reverse, Order::shuffled};

/// Sets the order of threads while in scope.
class InOrder {
 public:
  explicit InOrder(Order order) : before_(emulator::order()) { emulator::set_order(order); }
  ~InOrder() { emulator::set_order(before_); }

 private:
  Order before_;
};

/// What a kernel of one block of `threads` gives in each thread.
template <class T>
std::vector<T> outputs(void (*kernel)(T*), unsigned threads, std::size_t shared_bytes = 0) {
  std::vector<T> values(threads);
  launch(kernel, 1, threads, shared_bytes, nullptr, values.data());
  return values;
}

/// f(0) … f(count - 1)
template <class T, class F> std::vector<T> expected(unsigned count, const F& f) {
  std::vector<T> values;
  for (unsigned i = 0; i < count; ++i) values.push_back(static_cast<T>(f(i)));
  return values;
}

// Where threads are

__global__ void number_threads(unsigned* to) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread;
}

TEST(Emulator, RunsEveryThreadOfEveryBlockOnce) {
  for (const Order order : orders) {
    const InOrder scope(order);
    std::vector<unsigned> values(24 * 30);
    launch(number_threads, dim3(2, 3, 4), dim3(5, 3, 2), 0, nullptr, values.data());
    EXPECT_EQ(values, expected<unsigned>(24 * 30, [](unsigned i) { return i / 30 * 1000 + i % 30; }));
  }
}

__global__ void note_turn(unsigned* turns, unsigned* next) {
  turns[blockIdx.x * blockDim.x + threadIdx.x] = (*next)++;
}

TEST(Emulator, RunsBlocksAndThreadsInTheOrderAskedFor) {
  const auto turns = [](Order order) {
    const InOrder scope(order);
    std::vector<unsigned> of_threads(64);
    unsigned next = 0;
    launch(note_turn, 8, 8, 0, nullptr, of_threads.data(), &next);
    return of_threads;
  };
  EXPECT_EQ(turns(Order::forward), expected<unsigned>(64, [](unsigned i) { return i; }));
  EXPECT_EQ(turns(Order::reverse), expected<unsigned>(64, [](unsigned i) { return 63 - i; }));
  const auto first = turns(Order::shuffled), second = turns(Order::shuffled);
  EXPECT_NE(first, second);
  EXPECT_NE(first, turns(Order::forward));
}

// Warps

__global__ void shuffle_from_lane(int* to) {
  to[threadIdx.x] = __shfl_sync(all_lanes, static_cast<int>(threadIdx.x), 5);
}
__global__ void shuffle_from_lane_of_eight(int* to) {
  to[threadIdx.x] = __shfl_sync(all_lanes, static_cast<int>(threadIdx.x), 5, 8);
}
__global__ void shuffle_xor(int* to) {
  to[threadIdx.x] = __shfl_xor_sync(all_lanes, static_cast<int>(threadIdx.x), 17);
}
__global__ void shuffle_xor_of_four(int* to) {
  to[threadIdx.x] = __shfl_xor_sync(all_lanes, static_cast<int>(threadIdx.x), 6, 4);
}
__global__ void shuffle_down(int* to) {
  to[threadIdx.x] = __shfl_down_sync(all_lanes, static_cast<int>(threadIdx.x), 3);
}
__global__ void shuffle_up_of_sixteen(int* to) {
  to[threadIdx.x] = __shfl_up_sync(all_lanes, static_cast<int>(threadIdx.x), 3, 16);
}

TEST(Emulator, ShufflesReadTheLanesThatCudaDefines) {
  for (const Order order : orders) {
    const InOrder scope(order);
    EXPECT_EQ(outputs(shuffle_from_lane, 64), expected<int>(64, [](unsigned i) { return i / 32 * 32 + 5; }));
    EXPECT_EQ(outputs(shuffle_from_lane_of_eight, 64),
              expected<int>(64, [](unsigned i) { return i / 8 * 8 + 5; }));
    EXPECT_EQ(outputs(shuffle_xor, 64), expected<int>(64, [](unsigned i) { return i ^ 17; }));
    // Lanes of later groups are out of reach, those of earlier ones are not.
    EXPECT_EQ(outputs(shuffle_xor_of_four, 32),
              expected<int>(32, [](unsigned i) { return (i ^ 6) > (i | 3) ? i : i ^ 6; }));
    EXPECT_EQ(outputs(shuffle_down, 64),
              expected<int>(64, [](unsigned i) { return i % 32 < 29 ? i + 3 : i; }));
    EXPECT_EQ(outputs(shuffle_up_of_sixteen, 64),
              expected<int>(64, [](unsigned i) { return i % 16 < 3 ? i : i - 3; }));
  }
}

__global__ void vote(unsigned* to) {
  const int odd = threadIdx.x % 2, below = threadIdx.x < 100;
  const unsigned odds = __ballot_sync(all_lanes, odd);
  to[threadIdx.x] = (odds == 0xAAAAAAAAu) + 2u * static_cast<unsigned>(__any_sync(all_lanes, odd)) +
                    4u * static_cast<unsigned>(__all_sync(all_lanes, odd)) +
                    8u * static_cast<unsigned>(__all_sync(all_lanes, below));
}

TEST(Emulator, VotesCountTheLanesOfTheWarp) {
  for (const Order order : orders) {
    const InOrder scope(order);
    EXPECT_EQ(outputs(vote, 128), expected<unsigned>(128, [](unsigned i) { return i < 96 ? 11 : 3; }));
  }
}

__global__ void sum_halves_apart(int* to) {
  const bool low = threadIdx.x < 16;
  const unsigned mask = low ? 0x0000FFFFu : 0xFFFF0000u;
  int value = 1;
  for (int distance = 8; distance > 0; distance /= 2) {
    if (low)
      value += __shfl_xor_sync(mask, value, distance);
    else
      value *= 2 * __shfl_xor_sync(mask, value, distance);
  }
  __syncwarp();
  to[threadIdx.x] = value;
}

TEST(Emulator, PartsOfAWarpExchangeOnTheirOwn) {
  for (const Order order : orders) {
    const InOrder scope(order);
    EXPECT_EQ(outputs(sum_halves_apart, 32),
              expected<int>(32, [](unsigned i) { return i < 16 ? 16 : 32768; }));
  }
}

__global__ void shuffle_wide(double* to) {
  struct Pair {
    double first, second;
  };
  const double own = threadIdx.x;
  const Pair other = __shfl_xor_sync(all_lanes, Pair{own, 2 * own}, 1);
  to[threadIdx.x] = other.first + other.second;
}

TEST(Emulator, ShufflesValuesOfUpTo16Bytes) {
  EXPECT_EQ(outputs(shuffle_wide, 32), expected<double>(32, [](unsigned i) { return 3.0 * (i ^ 1); }));
}

// Blocks

template <bool with_barrier> __global__ void reverse_in_shared(int* to) {
  __shared__ int values[96];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncthreads();
  to[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

TEST(Emulator, BarriersMakeWritesVisible) {
  for (const Order order : orders) {
    const InOrder scope(order);
    EXPECT_EQ(outputs(reverse_in_shared<true>, 96), expected<int>(96, [](unsigned i) { return 95 - i; }));
  }
}

TEST(Emulator, AMissingBarrierGivesWrongResultsInSomeOrder) {
  int wrong = 0;
  for (const Order order : orders) {
    const InOrder scope(order);
    wrong += outputs(reverse_in_shared<false>, 96) != expected<int>(96, [](unsigned i) { return 95 - i; });
  }
  EXPECT_GT(wrong, 0);
}

/// What the threads of the next warp had in the first of two rounds, which begin at once if not
/// `with_barrier`.
template <bool with_barrier> __global__ void exchange_twice(int* to) {
  __shared__ int values[96];
  for (int round = 0; round < 2; ++round) {
    values[threadIdx.x] = static_cast<int>(threadIdx.x) + 1000 * round;
    __syncthreads();
    const int other = values[(threadIdx.x + 32) % 96];
    if (round == 0) to[threadIdx.x] = other;
    __syncwarp();
    if (with_barrier) __syncthreads();
  }
}

TEST(Emulator, AWarpThatRunsAheadOverwritesWhatOthersHaveYetToRead) {
  const auto right = expected<int>(96, [](unsigned i) { return (i + 32) % 96; });
  int wrong = 0;
  for (const Order order : orders) {
    const InOrder scope(order);
    EXPECT_EQ(outputs(exchange_twice<true>, 96), right);
    wrong += outputs(exchange_twice<false>, 96) != right;
  }
  EXPECT_GT(wrong, 0);
}

/// The prefix sums of a warp, whose lanes all write before any reads only if `with_barrier`.
template <bool with_barrier> __global__ void prefix_sums(int* to) {
  __shared__ int values[32];
  int value = 1;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    values[threadIdx.x] = value;
    if (with_barrier) __syncwarp();
    if (threadIdx.x >= distance) value += values[threadIdx.x - distance];
    __syncwarp();
  }
  to[threadIdx.x] = value;
}

TEST(Emulator, AMissingBarrierOfAWarpGivesWrongResultsInSomeOrder) {
  const auto right = expected<int>(32, [](unsigned i) { return i + 1; });
  int wrong = 0;
  for (const Order order : orders) {
    const InOrder scope(order);
    EXPECT_EQ(outputs(prefix_sums<true>, 32), right);
    wrong += outputs(prefix_sums<false>, 32) != right;
  }
  EXPECT_GT(wrong, 0);
}

__global__ void read_dynamic_shared(float* to) {
  to[threadIdx.x] = dynamic_shared<float>()[threadIdx.x];
  dynamic_shared<float>()[threadIdx.x] = 1;
}
__global__ void read_static_shared(float* to) {
  __shared__ float values[32];
  to[threadIdx.x] = values[threadIdx.x];
  values[threadIdx.x] = 1;
}

TEST(Emulator, SharedMemoryHoldsNanAtFirst) {
  for (int time = 0; time < 2; ++time) {
    for (const float value : outputs(read_dynamic_shared, 32, 32 * sizeof(float)))
      EXPECT_TRUE(std::isnan(value));
    if (TAUT_ADDRESS_SANITIZER) continue;
    for (const float value : outputs(read_static_shared, 32)) EXPECT_TRUE(std::isnan(value));
  }
}

__global__ void count_atomically(unsigned* to) {
  __shared__ unsigned total, largest, smallest, flags;
  if (threadIdx.x == 0) total = largest = flags = 0, smallest = 1000;
  __syncthreads();
  atomicAdd(&total, 2u);
  atomicMax(&largest, threadIdx.x);
  atomicMin(&smallest, threadIdx.x + 7);
  atomicOr(&flags, 1u << threadIdx.x % 4);
  __syncthreads();
  to[threadIdx.x] = total + largest + smallest + flags;
  __syncthreads();
  if (atomicCAS(&total, 2 * blockDim.x, 0u) == 2 * blockDim.x) to[0] = 1 + atomicExch(&flags, 0u);
}

TEST(Emulator, AtomicOperationsCountEveryThread) {
  for (const Order order : orders) {
    const InOrder scope(order);
    EXPECT_EQ(outputs(count_atomically, 64),
              expected<unsigned>(64, [](unsigned i) { return i == 0 ? 16 : 128 + 63 + 7 + 15; }));
  }
}

TEST(Emulator, HasTheFunctionsOfTheDevice) {
  EXPECT_EQ(__umulhi(0x80000000u, 6), 3u);
  EXPECT_EQ(__umul64hi(1ull << 63, 6), 3ull);
  EXPECT_EQ(__popc(0xF1), 5);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__ffs(8), 4);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_FLOAT_EQ(rsqrtf(4), 0.5f);
  EXPECT_EQ(__uint_as_float(__float_as_uint(-0.0f)), 0.0f);
}

TEST(Emulator, ServesThreadsOfTheHostOneAtATime) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 20; ++k)
        EXPECT_EQ(outputs(reverse_in_shared<true>, 96), expected<int>(96, [](unsigned j) { return 95 - j; }));
    });
  for (auto& thread : threads) thread.join();
}

// What block.cuh and vector.cuh build on all this

template <class T, class Combine> __global__ void reduce_threads(T* to) {
  to[threadIdx.x] = block_reduce(static_cast<T>(threadIdx.x % 7) + T(blockIdx.x), Combine{});
  to[threadIdx.x] += block_reduce(T(1), Sum{});  // at once again
}

TEST(BlockReduce, CombinesAllThreadsForAllOfThem) {
  for (const Order order : orders) {
    const InOrder scope(order);
    for (const unsigned threads : {32u, 64u, 96u, 256u, 1024u}) {
      float sum = 0;
      for (unsigned i = 0; i < threads; ++i) sum += static_cast<float>(i % 7);
      const auto number = static_cast<float>(threads);
      EXPECT_EQ(outputs(reduce_threads<float, Sum>, threads), std::vector<float>(threads, sum + number));
      EXPECT_EQ(outputs(reduce_threads<double, Largest>, threads), std::vector<double>(threads, 6 + number));
      EXPECT_EQ(outputs(reduce_threads<float, Smallest>, threads), std::vector<float>(threads, number));
    }
  }
}

template <class Combine> __global__ void reduce_with_nan(float* to) {
  to[threadIdx.x] = block_reduce(threadIdx.x == 40 ? NAN : 1.0f, Combine{});
}

TEST(BlockReduce, ExtremesPropagateNan) {
  for (const float value : outputs(reduce_with_nan<Largest>, 64)) EXPECT_TRUE(std::isnan(value));
  for (const float value : outputs(reduce_with_nan<Smallest>, 64)) EXPECT_TRUE(std::isnan(value));
}

template <class E> __global__ void copy_by_vectors(const E* from, std::int64_t n, E* to) {
  const bool aligned = vector_aligned(from, to);
  for (auto i = grid_thread() * vector_size<E>; i < n; i += grid_threads() * vector_size<E>)
    store_vector(to + i, load_vector(from + i, n - i, aligned), n - i, aligned);
}

template <class E> void check_copies() {
  for (const std::int64_t n : {1, 3, 4, 7, 8, 9, 31, 32, 33, 1023, 1025})
    for (const std::int64_t skipped : {0, 1}) {
      std::vector<E> from, to(static_cast<std::size_t>(n + skipped));
      for (std::int64_t i = 0; i < n + skipped; ++i) from.push_back(E(static_cast<float>(i % 200 + 1)));
      launch(copy_by_vectors<E>, 2, 32, 0, nullptr, from.data() + skipped, n, to.data() + skipped);
      for (std::int64_t i = 0; i < n + skipped; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(float(to[at]), i < skipped ? 0 : float(from[at])) << n << ", skipped " << skipped;
      }
    }
}

TEST(Vector, CopiesWholeVectorsTailsAndUnalignedArrays) {
  check_copies<float>();
  check_copies<bfloat16>();
}

// Launches that a device refuses

__global__ void do_nothing() {}

int code_of(dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
  try {
    launch(do_nothing, grid, block, shared_bytes, nullptr);
  } catch (const DeviceError& error) {
    return error.code();
  }
  return 0;
}

TEST(Launch, ThrowsWhereADeviceRefusesTheConfiguration) {
  EXPECT_EQ(code_of(1, 1024), 0);
  EXPECT_EQ(code_of(1, dim3(32, 8, 4), most_shared_bytes), 0);
  EXPECT_EQ(code_of(0, 32), emulator::invalid_configuration);
  EXPECT_EQ(code_of(1, 0), emulator::invalid_configuration);
  EXPECT_EQ(code_of(1, 1025), emulator::invalid_configuration);
  EXPECT_EQ(code_of(1, dim3(32, 33)), emulator::invalid_configuration);
  EXPECT_EQ(code_of(1, dim3(1, 1, 65)), emulator::invalid_configuration);
  EXPECT_EQ(code_of(dim3(1, 65536), 1), emulator::invalid_configuration);
  EXPECT_EQ(code_of(1, 1, most_shared_bytes + 1), emulator::invalid_value);
}

TEST(Launch, SaysWhatTheDeviceSaysOfTheConfiguration) {
  try {
    launch(do_nothing, 0, 1, 0, nullptr);
    ADD_FAILURE() << "the grid is empty";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(),
                 "cuda: invalid configuration argument (launch of a kernel failed with code 9)");
  }
}

// Streams that are captured

TEST(Launch, IsKeptWhileItsStreamIsCaptured) {
  char stream = 0, other = 0;  // streams are known by their addresses
  std::vector<unsigned> values(4);
  const auto number = [&](char& in) { launch(number_threads, 1, 4, 0, &in, values.data()); };
  emulator::begin_capture(&stream);
  number(stream);
  EXPECT_THROW(launch(do_nothing, 0, 1, 0, &stream), DeviceError) << "is refused at once";
  EXPECT_EQ(values, std::vector<unsigned>(4)) << "nothing has run";
  number(other);
  EXPECT_EQ(values[3], 3u) << "another stream is none of the capture's";
  const auto work = emulator::end_capture(&stream);
  ASSERT_EQ(work.size(), 1u);
  for (int run = 0; run < 2; ++run) work[0]();
  EXPECT_EQ(values[3], 9u);
  number(stream);
  EXPECT_EQ(values[3], 12u) << "the capture is over";
}

// Kernels that are stopped

__global__ void barrier_for_some() {
  if (threadIdx.x < 16) __syncthreads();
}
__global__ void barriers_apart() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void shuffle_for_some() {
  if (threadIdx.x < 16) __shfl_xor_sync(all_lanes, 1, 1);
}
__global__ void shuffle_beside_barrier() {
  if (threadIdx.x < 16)
    __shfl_xor_sync(all_lanes, 1, 1);
  else
    __syncthreads();
}
__global__ void masks_disagree() { __syncwarp(threadIdx.x < 16 ? all_lanes : 0xFFFF8000u); }
__global__ void mask_without_itself() { __syncwarp(0xFFFF0000u); }
__global__ void mask_beyond_block() { __syncwarp(); }
__global__ void shuffle_reads_outside_of_mask() {
  if (threadIdx.x < 16) __shfl_sync(0x0000FFFFu, 1, 20);
}
__global__ void exchanges_apart() {
  if (threadIdx.x < 16)
    __syncwarp();
  else
    __syncwarp();
}

void run(void (*kernel)(), unsigned threads) { launch(kernel, 1, threads, 0, nullptr); }

TEST(EmulatorDeathTest, StopsWrongKernelsAndSaysWhy) {
  EXPECT_DEATH(run(barrier_for_some, 32), "emulator_test.cpp:[0-9]* is reached by a part of the block only");
  EXPECT_DEATH(run(barriers_apart, 64), "threads wait in __syncthreads at different places");
  EXPECT_DEATH(run(shuffle_for_some, 32), "for the lanes 0xFFFFFFFF, of which lane 16 has ended");
  EXPECT_DEATH(run(shuffle_beside_barrier, 32), "of which lane 16 waits in __syncthreads");
  EXPECT_DEATH(run(masks_disagree, 32), "of which lane 16 waits at .* for other lanes, 0xFFFF8000");
  EXPECT_DEATH(run(mask_without_itself, 32), "the mask does not name the lane itself");
  EXPECT_DEATH(run(mask_beyond_block, 48), "the mask names lanes that the block does not have");
  EXPECT_DEATH(run(shuffle_reads_outside_of_mask, 32), "reads a lane that its mask does not name");
  EXPECT_DEATH(run(exchanges_apart, 32), "lanes of one mask are at different places");
}

}  // namespace
}  // namespace taut::cuda
