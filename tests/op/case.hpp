#pragma once
// How a test describes an operator to the suite: a `Case` says how to call it, what it should give, and what
// it is to be tried on.

#include <taut/cpu/cpu.hpp>
#if TAUT_TEST_CUDA
#include <taut/cuda/cuda.hpp>
#endif
#include <taut/interpret/grad.hpp>
#include <taut/interpret/shape_tensor.hpp>

#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "reference.hpp"

/// A free function or operator as an object that forwards its arguments.
#define TAUT_FUNCTION(function) \
  [](auto&&... operands) { return function(std::forward<decltype(operands)>(operands)...); }

namespace taut::test {

using Float = BasicCpuArray<float>;
using Double = BasicCpuArray<double>;
#if TAUT_TEST_CUDA
using CudaHalf = BasicCudaTensor<bfloat16>;
#endif

/// An operator applied to operands of type T: to lvalues, and to rvalues.
template <class T> struct Program {
  std::function<T(const std::vector<T>&)> by_reference;
  std::function<T(std::vector<T>&)> by_move;
};

/// The same operator for every interpretation that the suite runs it on. With TAUT_TEST_CUDA that is the CUDA
/// leaf; of the others only what its derivatives are compared with is there then.
struct Programs {
  Program<Grad<Double>> grad;
  Program<Grad<Grad<Double>>> grad_grad;
#if TAUT_TEST_CUDA
  Program<CudaTensor> cuda;
  Program<CudaHalf> cuda_half;
  Program<Grad<CudaTensor>> grad_cuda;
  Program<Grad<CudaHalf>> grad_cuda_half;
  Program<Grad<Grad<CudaTensor>>> grad_grad_cuda;
#else
  Program<Float> single;
  Program<Double> plain;
  Program<ShapeTensor> shapes;
  Program<Grad<Float>> grad_single;
#endif
};

template <class T, int N, class F> Program<T> program(const F& f) {
  using Sequence = std::make_integer_sequence<std::size_t, N>;
  return {[f](const std::vector<T>& xs) -> T {
            return [&]<std::size_t... I>(std::integer_sequence<std::size_t, I...>)->T { return f(xs[I]...); }
            (Sequence{});
          },
          [f](std::vector<T>& xs) -> T {
            return [&]<std::size_t... I>(std::integer_sequence<std::size_t, I...>)->T {
              return f(std::move(xs[I])...);
            }
            (Sequence{});
          }};
}

/// The programs that apply a function of N tensors which `Grad` does not have.
template <int N, class F> Programs programs_without_gradient(const F& f) {
  Programs all;
#if TAUT_TEST_CUDA
  all.cuda = program<CudaTensor, N>(f);
  all.cuda_half = program<CudaHalf, N>(f);
#else
  all.single = program<Float, N>(f);
  all.plain = program<Double, N>(f);
  all.shapes = program<ShapeTensor, N>(f);
#endif
  return all;
}

/// The programs that apply a function of N tensors.
template <int N, class F> Programs programs(const F& f) {
  Programs all = programs_without_gradient<N>(f);
  all.grad = program<Grad<Double>, N>(f);
  all.grad_grad = program<Grad<Grad<Double>>, N>(f);
#if TAUT_TEST_CUDA
  all.grad_cuda = program<Grad<CudaTensor>, N>(f);
  all.grad_cuda_half = program<Grad<CudaHalf>, N>(f);
  all.grad_grad_cuda = program<Grad<Grad<CudaTensor>>, N>(f);
#else
  all.grad_single = program<Grad<Float>, N>(f);
#endif
  return all;
}

using Generator = std::mt19937_64;

inline double uniform(Generator& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}

/// Makes the n elements of an operand.
using Fill = std::function<std::vector<double>(std::size_t n, Generator&)>;

/// Uniform in [low, high).
inline Fill between(double low, double high) {
  return [=](std::size_t n, Generator& random) {
    std::vector<double> values(n);
    for (double& value : values) value = uniform(random, low, high);
    return values;
  };
}

/// Of either sign, with a size in [low, high): for functions with a kink or a pole at 0.
inline Fill away_from_zero(double low = 0.2, double high = 2) {
  return [=](std::size_t n, Generator& random) {
    std::vector<double> values(n);
    for (double& value : values) value = uniform(random, low, high) * (random() % 2 ? 1 : -1);
    return values;
  };
}

/// Near the points (k + phase) / 4 for integers k in [-8, 8): operands with different phases are never equal.
inline Fill lattice(double phase) {
  return [=](std::size_t n, Generator& random) {
    std::vector<double> values(n);
    for (double& value : values)
      value = (static_cast<double>(random() % 16) - 8 + phase + uniform(random, -0.1, 0.1)) / 4;
    return values;
  };
}

/// A random order of n values that are at least 3/(2n) apart, in [-1.5, 1.5).
inline Fill distinct() {
  return [](std::size_t n, Generator& random) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i)
      values[i] = 3 * (static_cast<double>(i) + uniform(random, 0.25, 0.75)) / static_cast<double>(n) - 1.5;
    for (std::size_t i = n; i > 1; --i) std::swap(values[i - 1], values[random() % i]);
    return values;
  };
}

/// Zeros and ones.
inline Fill bits() {
  return [](std::size_t n, Generator& random) {
    std::vector<double> values(n);
    for (double& value : values) value = static_cast<double>(random() % 2);
    return values;
  };
}

/// What the suite has to know of one operand.
struct Operand {
  Fill fill = between(-2, 2);
  bool differentiable = true;  ///< false: no gradient may arrive
  bool curved = true;          ///< false: the second derivatives by this operand and any other vanish
};

using Shapes = std::vector<Shape>;

/// An operator as the suite tests it.
struct Case {
  std::string name;  ///< of the case; messages of errors begin with `error`, or with this if that is empty
  Programs call;
  Oracle oracle;
  std::vector<Operand> operands;
  std::vector<Shapes> shapes;               ///< of the operands, as often as the operator is to be tried
  std::vector<Shapes> forward_shapes = {};  ///< the same where no gradient is to be compared
  std::vector<Shapes> rejected = {};        ///< shapes that must throw a `ShapeError`
  double ulps = 2;            ///< the rounding error allowed, relative to the result or its scale
  double gradient_ulps = 16;  ///< the same for the gradients of floats, relative to the largest
  bool reuses = false;        ///< the result takes the buffer of a unique rvalue of its shape
  bool has_gradient = true;   ///< false: `call` has no programs for `Grad`
  std::string error = {};

  std::vector<Shapes> all_shapes() const {
    auto all = shapes;
    all.insert(all.end(), forward_shapes.begin(), forward_shapes.end());
    return all;
  }
};

/// How test reports show a case.
inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

/// A length that elementwise kernels spread over two threads, none of whose parts fills its SIMD registers.
inline constexpr std::int64_t threaded = 2 * cpu::default_grain + 7;

/// Lengths around those of SIMD registers, cache lines and tiles, the scalar, empty tensors, and one that is
/// spread over threads; not for AddressSanitizer, under which that takes minutes and finds nothing that
/// shorter ones do not.
inline std::vector<Shapes> unary_shapes() {
  std::vector<Shapes> shapes{{{}},
                             {{0}},
                             {{0, 3}},
                             {{2, 0}},
                             {{1}},
                             {{7}},
                             {{31}},
                             {{32}},
                             {{33}},
                             {{3, 5}},
                             {{1023}},
                             {{1025}},
                             {{2, 3, 1, 2, 2, 2}}};
  if (!TAUT_ADDRESS_SANITIZER) shapes.push_back({{threaded}});
  return shapes;
}

/// The same for two operands, of equal shapes and of such as broadcast.
inline std::vector<Shapes> binary_shapes() {
  std::vector<Shapes> shapes;
  for (const auto& one : unary_shapes()) shapes.push_back({one[0], one[0]});
  for (const auto& [a, b] :
       std::initializer_list<std::pair<Shape, Shape>>{{{}, {7}},
                                                      {{33}, {}},
                                                      {{1}, {31}},
                                                      {{3}, {2, 3}},
                                                      {{2, 3}, {1, 3}},
                                                      {{4, 1}, {1, 5}},
                                                      {{5, 1, 7}, {3, 1}},
                                                      {{2, 1, 3}, {2, 4, 3}},
                                                      {{1, 2, 1, 2, 1, 2}, {2, 1, 2, 1, 2, 1}},
                                                      {{0}, {1}},
                                                      {{2, 0, 3}, {1, 3}},
                                                      {{1, 1}, {}},
                                                      {{12, 1}, {300}},
                                                      {{1025}, {3, 1}},
                                                      {{130, 257}, {257}},
                                                      {{}, {threaded}}})
    shapes.push_back({a, b});
  return shapes;
}

/// Pairs of shapes that do not broadcast.
inline std::vector<Shapes> binary_rejected() {
  return {{{2}, {3}}, {{2, 3}, {3, 2}}, {{4, 1, 5}, {2, 3}}, {{0}, {2}}};
}

}  // namespace taut::test
