#pragma once
// What the suite has to know of each leaf that it tests: its name, how it can be set to compute, how exact it
// is, and how tensors come to it and back.

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "case.hpp"

namespace taut::test {

template <class T> struct Leaf;

/// The CPU leaf computes with and without oneDNN, on one thread and on two.
template <class E> struct Leaf<BasicCpuArray<E>> {
  static constexpr const char* name = std::is_same_v<E, float> ? "float" : "double";

  /// How many times as far as a CPU's results its own may be off.
  static constexpr double tolerance = 1;

  struct Setting {
    bool onednn;
    int threads;

    std::string describe() const {
      return std::string(onednn ? "oneDNN" : "portable") + ", threads " + std::to_string(threads);
    }
  };

  static const std::vector<Setting>& settings(const Shapes&) {
    static const std::vector<Setting> all{{true, 1}, {true, 2}, {false, 1}, {false, 2}};
    return all;
  }

  /// Those under which second derivatives are tried.
  static const std::vector<Setting>& few_settings(const Shapes&) {
    static const std::vector<Setting> few{{true, 2}, {false, 1}};
    return few;
  }

  /// Holds a setting while in scope.
  class Using {
   public:
    explicit Using(const Setting& setting) : threads_(threads()) {
      cpu::use_onednn(setting.onednn);
      set_threads(setting.threads);
    }
    ~Using() {
      cpu::use_onednn(true);
      set_threads(threads_);
    }
    Using(const Using&) = delete;
    Using& operator=(const Using&) = delete;

   private:
    int threads_;
  };

  /// Operand k as the setting wants it.
  static BasicCpuArray<E> placed(BasicCpuArray<E> x, std::size_t) { return x; }
};

/// The relative precision of a type of elements, and its smallest positive number.
template <class E> struct Precision {
  static constexpr double epsilon = static_cast<double>(std::numeric_limits<E>::epsilon());
  static constexpr double smallest = static_cast<double>(std::numeric_limits<E>::denorm_min());
};

#if TAUT_TEST_CUDA
template <> struct Precision<bfloat16> { static constexpr double epsilon = 0x1p-7, smallest = 0x1p-133; };

/// The CUDA leaf computes on images of each layout. The elementary functions of GPUs have errors of up to 4
/// units in the last place, and sums are accumulated in float.
template <class E> struct Leaf<BasicCudaTensor<E>> {
  using T = BasicCudaTensor<E>;
  static constexpr bool half = std::is_same_v<E, bfloat16>;
  static constexpr const char* name = half ? "bfloat16 on CUDA" : "float on CUDA";
  static constexpr double tolerance = half ? 1 : 4;

  /// Of how many operands one has its channels last; none if 0.
  struct Setting {
    std::size_t every = 0;

    std::string describe() const {
      return every == 0 ? "dense" : every == 1 ? "channels last" : "every other operand channels last";
    }
  };

  static const std::vector<Setting>& settings(const Shapes& shapes) {
    static const std::vector<Setting> all{{0}, {1}, {2}}, dense{{0}};
    const bool images =
        std::any_of(shapes.begin(), shapes.end(), [](const Shape& shape) { return shape.rank() == 4; });
    return images ? all : dense;
  }

  static const std::vector<Setting>& few_settings(const Shapes& shapes) { return settings(shapes); }

  class Using {
   public:
    explicit Using(const Setting& setting) { every_ = setting.every; }
    ~Using() { every_ = 0; }
    Using(const Using&) = delete;
    Using& operator=(const Using&) = delete;

   private:
    friend struct Leaf;
    static inline std::size_t every_ = 0;
  };

  static T placed(const T& x, std::size_t k) {
    const bool last = Using::every_ > 0 && k % Using::every_ == 0 && x.shape().rank() == 4;
    return last ? x.in_layout(cuda::Layout::channels_last) : x;
  }
};
#endif

}  // namespace taut::test
