// Matrix products of the CPU backend against a triple loop in double, with and without oneDNN.

#include <taut/cpu/gemm.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using taut::cpu::Gemm;

/// What computes a product: `gemm`'s own choice among its engines, or one of them for every size.
enum class Engine { chosen, portable, onednn };

/// Restores the engine and the thread count that a test changes.
class GemmTest : public testing::Test {
 protected:
  void TearDown() override {
    taut::cpu::use_onednn(true);
    taut::set_threads(threads_);
  }

 private:
  int threads_ = taut::threads();
};

/// Values in (-1, 1) without a pattern that a wrong index could hide in.
template <class E> std::vector<E> random_values(std::int64_t n, std::uint32_t seed) {
  std::vector<E> values(static_cast<std::size_t>(n));
  std::uint32_t state = seed * 2654435761u + 1;
  for (E& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<E>(static_cast<double>(state >> 8) / (1 << 23) - 1.0);
  }
  return values;
}

std::string describe(const Gemm& g) {
  return "batch " + std::to_string(g.batch) + ", " + std::to_string(g.m) + " x " + std::to_string(g.k) +
         " x " + std::to_string(g.n) + (g.transpose_a ? ", A transposed" : "") +
         (g.transpose_b ? ", B transposed" : "") + (g.stride_a == 0 ? ", A shared" : "") +
         (g.stride_b == 0 ? ", B shared" : "");
}

/// A product with operands of its own; `shared_a` and `shared_b` give the whole batch one operand.
template <class E> struct Problem {
  Gemm g;
  bool with_bias = false;
  std::vector<E> a, b, bias, c;

  Problem(Gemm shape, bool shared_a, bool shared_b, bool add_bias) : g(shape), with_bias(add_bias) {
    g.stride_a = shared_a ? 0 : g.m * g.k;
    g.stride_b = shared_b ? 0 : g.k * g.n;
    a = random_values<E>((shared_a ? 1 : g.batch) * g.m * g.k, 1);
    b = random_values<E>((shared_b ? 1 : g.batch) * g.k * g.n, 2);
    bias = random_values<E>(g.n, 3);
    // C must be overwritten whatever it holds.
    c.assign(static_cast<std::size_t>(g.batch * g.m * g.n), std::numeric_limits<E>::quiet_NaN());
  }

  /// Returns whether that took care of the ReLU.
  bool run(Engine engine) {
    const E* const row = with_bias ? bias.data() : nullptr;
    if (engine == Engine::portable)
      return taut::cpu::gemm_portable(g, a.data(), b.data(), row, c.data()), true;
#if TAUT_HAS_ONEDNN
    // oneDNN itself knows neither double nor empty products, nor a batch of one product only.
    if constexpr (std::is_same_v<E, float>)
      if (engine == Engine::onednn && g.k > 0 && !c.empty() &&
          !(g.batch > 1 && g.stride_a == 0 && g.stride_b == 0))
        return taut::cpu::gemm_onednn(g, a.data(), b.data(), row, c.data()), false;
#endif
    return taut::cpu::gemm(g, a.data(), b.data(), row, c.data());
  }

  /// Runs again, with ReLU where the engine has it, and compares with what there is now.
  void expect_relu(Engine engine) {
    auto expected = std::exchange(c, std::vector<E>(c.size(), std::numeric_limits<E>::quiet_NaN()));
    g.relu = engine != Engine::onednn;
    if (run(engine) && g.relu)
      for (E& value : expected) value = value <= E(0) ? E(0) : value;
    g.relu = false;
    EXPECT_EQ(c, expected) << describe(g);
  }

  /// Runs the portable kernel with B packed beforehand.
  void expect_packed() {
    const auto plain = std::exchange(c, std::vector<E>(c.size(), std::numeric_limits<E>::quiet_NaN()));
    std::vector<E> packed(static_cast<std::size_t>(taut::cpu::packed_size<E>(g)));
    taut::cpu::pack_columns(g, b.data(), packed.data());
    g.packed_b = true;
    taut::cpu::gemm_portable(g, a.data(), packed.data(), with_bias ? bias.data() : nullptr, c.data());
    g.packed_b = false;
    EXPECT_EQ(first_fault(), "");
    if (!taut::cpu::blocked::takes_dots(g)) {
      EXPECT_EQ(c, plain) << describe(g);
    }
  }

  /// The first element that is off by more than rounding of k products can explain; empty if there is none.
  std::string first_fault() {
    if (expected_.empty()) compute_expected();
    const double tolerance = double(std::numeric_limits<E>::epsilon()) * (4 + 2 * double(g.k));
    for (std::size_t i = 0; i < c.size(); ++i)
      if (!(std::abs(double(c[i]) - expected_[i]) <= tolerance))
        return describe(g) + (with_bias ? ", bias" : "") + ": C[" + std::to_string(i) + "] is " +
               std::to_string(c[i]) + ", expected " + std::to_string(expected_[i]);
    return {};
  }

 private:
  void compute_expected() {
    const std::int64_t a_row = g.transpose_a ? 1 : g.k, a_column = g.transpose_a ? g.m : 1;
    const std::int64_t b_row = g.transpose_b ? 1 : g.n, b_column = g.transpose_b ? g.k : 1;
    for (std::int64_t item = 0; item < g.batch; ++item)
      for (std::int64_t i = 0; i < g.m; ++i)
        for (std::int64_t j = 0; j < g.n; ++j) {
          const E* const row = a.data() + item * g.stride_a + i * a_row;
          const E* const column = b.data() + item * g.stride_b + j * b_column;
          double sum = with_bias ? double(bias[std::size_t(j)]) : 0.0;
          for (std::int64_t p = 0; p < g.k; ++p) sum += double(row[p * a_column]) * double(column[p * b_row]);
          expected_.push_back(sum);
        }
  }

  std::vector<double> expected_;
};

template <class F> void for_each_engine_and_thread_count(F&& body) {
  for (const Engine engine : {Engine::chosen, Engine::portable, Engine::onednn}) {
    if (engine == Engine::onednn && !TAUT_HAS_ONEDNN) continue;
    for (const int threads : {1, 2}) {
      taut::set_threads(threads);
      SCOPED_TRACE("engine " + std::to_string(int(engine)) + ", " + std::to_string(taut::threads()) +
                   " thread(s)");
      body(engine);
    }
  }
}

template <class E>
void check_all_layouts(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (int bits = 0; bits < (batch > 1 ? 32 : 8); ++bits) {
    const Gemm g{
        .batch = batch, .m = m, .n = n, .k = k, .transpose_a = bool(bits & 1), .transpose_b = bool(bits & 2)};
    Problem<E> problem(g, bits & 8, bits & 16, bits & 4);
    for_each_engine_and_thread_count([&](Engine engine) {
      problem.c.assign(problem.c.size(), std::numeric_limits<E>::quiet_NaN());
      problem.run(engine);
      EXPECT_EQ(problem.first_fault(), "");
      problem.expect_relu(engine);
      if (engine == Engine::portable && batch == 1) {
        problem.run(engine);
        problem.expect_packed();
      }
    });
  }
}

TEST_F(GemmTest, SmallShapesOfEveryRemainder) {
  for (const std::int64_t m : {1, 3, 4, 13, 25})
    for (const std::int64_t n : {1, 8, 16, 17, 33})
      for (const std::int64_t k : {1, 7, 16, 35}) {
        check_all_layouts<float>(1, m, n, k);
        check_all_layouts<double>(1, m, n, k);
      }
}

TEST_F(GemmTest, ShapesThatCrossBlocks) {
  struct Case {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Case{64, 128, 784}, Case{64, 10, 64}, Case{10, 64, 64}, Case{128, 784, 64}, Case{1, 300, 600},
        Case{300, 1, 600}, Case{97, 101, 103}, Case{130, 67, 290}, Case{5, 5, 1000}, Case{250, 70, 33},
        // few rows, long and just long enough for dot products
        Case{1, 17, 64}, Case{2, 9, 131}, Case{3, 33, 199}, Case{4, 20, 256},
        // odd numbers of half panels for two threads
        Case{64, 96, 100}, Case{16, 160, 128}}) {
    check_all_layouts<float>(1, m, n, k);
    check_all_layouts<double>(1, m, n, k);
  }
}

TEST_F(GemmTest, Batches) {
  struct Case {
    std::int64_t batch, m, n, k;
  };
  for (const auto& [batch, m, n, k] : {Case{2, 3, 5, 7}, Case{3, 64, 33, 50}, Case{9, 17, 16, 40},
                                       Case{5, 1, 64, 100}, Case{2, 70, 66, 60}}) {
    check_all_layouts<float>(batch, m, n, k);
    check_all_layouts<double>(batch, m, n, k);
  }
}

TEST_F(GemmTest, EmptySumsGiveTheBiasOrZeros) {
  for_each_engine_and_thread_count([](Engine engine) {
    for (const bool bias : {false, true}) {
      Problem<float> problem({.batch = 2, .m = 3, .n = 4, .k = 0}, false, false, bias);
      problem.run(engine);
      EXPECT_EQ(problem.first_fault(), "");
      problem.expect_relu(engine);
    }
    for (const Gemm& g : {Gemm{.m = 0, .n = 4, .k = 3}, Gemm{.m = 4, .n = 0, .k = 3},
                          Gemm{.batch = 0, .m = 4, .n = 4, .k = 3}}) {
      Problem<float> problem(g, false, false, true);
      problem.run(engine);
      EXPECT_TRUE(problem.c.empty());
    }
  });
}

TEST_F(GemmTest, NanAndInfinityPropagateThroughZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for_each_engine_and_thread_count([&](Engine engine) {
    struct Case {
      std::int64_t m, size;
    };
    for (const auto& [m, size] : {Case{3, 3}, Case{20, 20}, Case{150, 150}, Case{3, 200}})
      for (const int bits : {0, 1, 2, 3}) {
        Problem<float> problem(
            {.m = m, .n = size, .k = size, .transpose_a = bool(bits & 1), .transpose_b = bool(bits & 2)},
            false, false, false);
        problem.a.assign(problem.a.size(), 0.0f);
        problem.b[0] = nan;                          // B[0, 0]: column 0 of C
        problem.b[problem.b.size() - 1] = infinity;  // B[size - 1, size - 1]: the last column
        for (const bool relu : {false, true}) {
          problem.g.relu = relu && engine != Engine::onednn;
          problem.run(engine);
          for (std::int64_t i = 0; i < m; ++i) {
            EXPECT_TRUE(std::isnan(problem.c[std::size_t(i * size)]));
            EXPECT_TRUE(std::isnan(problem.c[std::size_t(i * size + size - 1)]));
            EXPECT_EQ(problem.c[std::size_t(i * size + 1)], 0.0f);
          }
        }
      }
  });
}

TEST_F(GemmTest, PortableResultsDoNotDependOnTheThreads) {
  for (const std::int64_t m : {3, 130}) {
    Problem<float> problem({.m = m, .n = 150, .k = 2000, .transpose_b = true}, false, false, true);
    taut::set_threads(1);
    problem.run(Engine::portable);
    const std::vector<float> serial = problem.c;
    for (const int threads : {2, 3, 5}) {
      taut::set_threads(threads);
      problem.run(Engine::portable);
      EXPECT_EQ(problem.c, serial) << m << " rows, " << threads << " threads";
    }
  }
}

TEST_F(GemmTest, TheSameProductTwiceIsTheSameBitwise) {
  for_each_engine_and_thread_count([](Engine engine) {
    Problem<float> problem({.m = 64, .n = 128, .k = 784, .transpose_b = true}, false, false, true);
    problem.run(engine);
    const std::vector<float> first = problem.c;
    problem.run(engine);
    EXPECT_EQ(problem.c, first);
  });
}

TEST_F(GemmTest, TwoThreadsAtOnce) {
  for_each_engine_and_thread_count([](Engine engine) {
    std::string faults[2];
    const auto work = [engine](std::string& fault, std::int64_t size) {
      for (std::int64_t step = 0; step < 40 && fault.empty(); ++step) {
        Problem<float> problem({.m = size + step % 3, .n = 64, .k = 100, .transpose_a = step % 2 == 0}, false,
                               false, true);
        problem.run(engine);
        fault = problem.first_fault();
      }
    };
    std::thread other(work, std::ref(faults[1]), 33);
    work(faults[0], 60);
    other.join();
    EXPECT_EQ(faults[0], "");
    EXPECT_EQ(faults[1], "");
  });
}

TEST_F(GemmTest, ManyShapesEvictOneAnother) {
  for (std::int64_t n = 1; n <= 300; ++n) {
    Problem<float> problem({.m = 2, .n = n, .k = 70}, false, false, true);
    problem.run(Engine::onednn);
    ASSERT_EQ(problem.first_fault(), "");
  }
  Problem<float> again({.m = 2, .n = 1, .k = 70}, false, false, true);
  again.run(Engine::onednn);
  EXPECT_EQ(again.first_fault(), "");
}

TEST_F(GemmTest, OneDnnCanBeSwitchedOff) {
  Problem<float> problem({.m = 120, .n = 130, .k = 140, .transpose_b = true}, false, false, true);
  problem.run(Engine::portable);
  const std::vector<float> portable = problem.c;
  taut::cpu::use_onednn(false);
  EXPECT_FALSE(taut::cpu::uses_onednn());
  problem.run(Engine::chosen);
  EXPECT_EQ(problem.c, portable);
  taut::cpu::use_onednn(true);
  EXPECT_EQ(taut::cpu::uses_onednn(), TAUT_HAS_ONEDNN != 0);
}

#if TAUT_HAS_ONEDNN
TEST_F(GemmTest, OneDnnErrorsNameTheCall) {
  try {
    taut::cpu::onednn::Descriptor({-2, 3}, {3, 1});
    FAIL() << "nothing was thrown";
  } catch (const taut::DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("dnnl_memory_desc_"), std::string::npos);
    EXPECT_NE(error.code(), 0);
  }
}
#endif

}  // namespace
