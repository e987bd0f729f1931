// Taut's whole idea in one file, without the library: a tensor program is written once, and the type it runs
// on decides what it means. Read it from top to bottom. It needs nothing but a C++20 compiler:
//
//     g++ -std=c++20 tutorial.cpp -o tutorial && ./tutorial
//
// Picture a table. Each row is an operator (add, matmul, ...), each column an interpretation (compute it,
// infer its shape, record its gradient, ...). Written naively, every cell is code: many operators times many
// interpretations. Here a row holds what is true of an operator everywhere, and most columns are a single
// template for all rows. Only a column that computes has a cell a row: its kernels. This style is known as
// "tagless final": a program is a function over an interface, and every type that satisfies the interface is
// one interpretation of the program.

#include <array>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lesson {

// ---- 1. Shapes ----
// Every tensor in this lesson is a matrix; a scalar is a [1, 1]. All of this is constexpr; section 6 shows
// what for.

struct Shape {
  int rows = 1, cols = 1;
  constexpr bool operator==(const Shape&) const = default;
};

std::string to_string(Shape s) {
  return std::string("[") + std::to_string(s.rows) + ", " + std::to_string(s.cols) + "]";
}

// A broken rule throws. In a constant expression that is a compile error, so one line serves both times.
constexpr void require(bool ok, const char* rule, Shape a, Shape b) {
  if (!ok) throw std::invalid_argument(rule + (": " + to_string(a)) + " and " + to_string(b));
}

// Extents of one stretch to fit: [64, 10] + [1, 10] adds the one row to each row.
constexpr Shape broadcast(Shape a, Shape b) {
  const auto fits = [](int m, int n) { return m == n || m == 1 || n == 1; };
  require(fits(a.rows, b.rows) && fits(a.cols, b.cols), "the operands do not broadcast", a, b);
  return {a.rows == 1 ? b.rows : a.rows, a.cols == 1 ? b.cols : a.cols};
}

// ---- 2. Dual numbers ----
// A dual number carries a value and the slope with which that value changes. Calculus is the rules below and
// nothing more: run any scalar function on `Dual{x, 1}` instead of `x`, and out comes its value at x and,
// beside it, its derivative.

template <class S> struct Dual {
  S value, slope;
  constexpr Dual(double constant) : value(constant), slope(0.0) {}  // implicit: constants mix with duals
  constexpr Dual(S value_, S slope_) : value(value_), slope(slope_) {}

  friend constexpr Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend constexpr Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend constexpr Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Dual tanh(Dual a) {
    using std::tanh;
    const S t = tanh(a.value);
    return {t, (1.0 - t * t) * a.slope};
  }
};

// The I-th partial derivative of `f`, times an incoming gradient. It is a scalar function again, built of the
// same arithmetic. So it can be given duals in its turn, and there are derivatives of every order.
template <class F, std::size_t I> struct Partial {
  F f;
  template <class S, class... Xs> constexpr S operator()(S gradient, Xs... xs) const {
    const auto seeded = [&]<std::size_t... K>(std::index_sequence<K...>) {
      return f(Dual<S>{xs, S(K == I ? 1.0 : 0.0)}...);  // only x_I moves
    };
    return gradient * seeded(std::index_sequence_for<Xs...>{}).slope;
  }
};

// ---- 3. Operators: the rows of the table ----
// An operator is a small struct of two rules. The shape rule says which operands fit and what comes out. The
// gradient rule turns the gradient of the output into those of the operands. It is written in the operators
// of T itself, whatever T is, and that makes second derivatives free in section 9. No operator knows of any
// interpretation.

// Every elementwise operator is one scalar function `f`, and dual numbers find its derivative. Where an
// operand was stretched, several elements of the output depend on the same number, so their gradients are
// summed.
template <class F> struct Map {
  F f;
  static constexpr Shape shape(const auto&... operands) {
    Shape result;
    ((result = broadcast(result, operands)), ...);
    return result;
  }
  template <class T, std::same_as<T>... Xs>
  std::array<T, sizeof...(Xs)> gradient(const T& g, const Xs&... xs) const {
    const auto all = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array{sum_to(eval(Map<Partial<F, I>>{{f}}, g, xs...), xs.shape())...};
    };
    return all(std::index_sequence_for<Xs...>{});
  }
};

struct Matmul {
  static constexpr Shape shape(Shape a, Shape b) {
    require(a.cols == b.rows, "matmul: the inner dimensions differ", a, b);
    return {a.rows, b.cols};
  }
  template <class T> static std::array<T, 2> gradient(const T& g, const T& a, const T& b) {
    return {matmul(g, transpose(b)), matmul(transpose(a), g)};
  }
};

struct Transpose {
  static constexpr Shape shape(Shape x) { return {x.cols, x.rows}; }
  template <class T> static std::array<T, 1> gradient(const T& g, const T&) { return {transpose(g)}; }
};

// Summing is undone by stretching, and stretching is nothing but adding zeros of the wanted shape.
struct SumTo {
  Shape to;
  constexpr Shape shape(Shape x) const {
    require(broadcast(x, to) == x, "sum_to: the operand cannot be summed to that shape", x, to);
    return to;
  }
  template <class T> static std::array<T, 1> gradient(const T& g, const T& x) {
    return {g + T::full(x.shape(), 0.0)};
  }
};

// The scalar functions of this lesson. The standard library has the first three.
using Plus = std::plus<>;
using Minus = std::minus<>;
using Times = std::multiplies<>;
struct Scale {
  double factor;
  constexpr auto operator()(auto x) const { return factor * x; }
};
struct Tanh {
  auto operator()(auto x) const {
    using std::tanh;
    return tanh(x);
  }
};

// ---- 4. The interface ----
// A `Tensor` is anything that can evaluate the operators. `eval(operator, operands...)` is the one
// customization point: an interpretation provides overloads of it, which the compiler finds by the type of
// the operands.

template <class T>
concept Tensor = std::copyable<T> && requires(const T& x) {
  { x.shape() } -> std::same_as<Shape>;
  { T::full(Shape{}, 1.0) } -> std::same_as<T>;
  { eval(Map<Plus>{}, x, x) } -> std::same_as<T>;
  { eval(Map<Tanh>{}, x) } -> std::same_as<T>;
  { eval(Matmul{}, x, x) } -> std::same_as<T>;
  { eval(Transpose{}, x) } -> std::same_as<T>;
  { eval(SumTo{}, x) } -> std::same_as<T>;
};

// The vocabulary in which programs are written: each word only passes an operator to `eval`.
template <Tensor T> constexpr T operator+(const T& a, const T& b) { return eval(Map<Plus>{}, a, b); }
template <Tensor T> constexpr T operator-(const T& a, const T& b) { return eval(Map<Minus>{}, a, b); }
template <Tensor T> constexpr T operator*(const T& a, const T& b) { return eval(Map<Times>{}, a, b); }
template <Tensor T> constexpr T operator*(double k, const T& x) { return eval(Map<Scale>{{k}}, x); }
template <Tensor T> constexpr T tanh(const T& x) { return eval(Map<Tanh>{}, x); }
template <Tensor T> constexpr T matmul(const T& a, const T& b) { return eval(Matmul{}, a, b); }
template <Tensor T> constexpr T transpose(const T& x) { return eval(Transpose{}, x); }
template <Tensor T> constexpr T sum_to(const T& x, Shape to) { return eval(SumTo{to}, x); }
template <Tensor T> constexpr T sum(const T& x) { return sum_to(x, {1, 1}); }
template <Tensor T> constexpr T mean(const T& x) { return 1.0 / (x.shape().rows * x.shape().cols) * sum(x); }

// ---- 5. Two programs ----
// Written once, for every T there is and every T to come.

template <Tensor T> struct Linear {
  T weight, bias;
  constexpr T operator()(const T& x) const { return matmul(x, weight) + bias; }
};

template <Tensor T> struct Network {
  Linear<T> hidden, out;
  constexpr T operator()(const T& x) const { return out(tanh(hidden(x))); }
};

// ---- 6. First interpretation: only the shape ----
// One template covers all operators, those that nobody has written yet included. Because it is constexpr, the
// compiler can run a whole model and so check it. Change the 784 in the last line to 783: the error names the
// rule that is broken and walks through the layers to the place.

struct ShapeTensor {
  Shape extent;
  constexpr Shape shape() const { return extent; }
  static constexpr ShapeTensor full(Shape s, double) { return {s}; }
};

template <class Op, std::same_as<ShapeTensor>... Xs>
constexpr ShapeTensor eval(const Op& op, const Xs&... xs) {
  return {op.shape(xs.shape()...)};
}

constexpr Network<ShapeTensor> shapes{{{{784, 128}}, {{1, 128}}}, {{{128, 10}}, {{1, 10}}}};
static_assert(shapes(ShapeTensor{{64, 784}}).shape() == Shape{64, 10});

// ---- 7. Second interpretation: numbers ----
// A naive array. This column computes, so it needs a kernel a row, four in all. Each asks the operator's own
// shape rule for the shape of its result: wrong operands are refused here in the same words as in section 6.

class Array {
 public:
  Array(Shape shape, std::vector<double> values) : shape_(shape), values_(std::move(values)) {}
  static Array full(Shape s, double v) { return {s, std::vector<double>(std::size_t(s.rows * s.cols), v)}; }
  static Array generate(Shape s, auto element) {
    Array result = full(s, 0.0);
    for (int r = 0; r < s.rows; ++r)
      for (int c = 0; c < s.cols; ++c) result.at(r, c) = element(r, c);
    return result;
  }
  Shape shape() const { return shape_; }

  // Reading beyond an extent of one stretches it: that is all there is to broadcasting.
  double& at(int r, int c) { return values_[index(r, c)]; }
  double at(int r, int c) const { return values_[index(r, c)]; }

 private:
  std::size_t index(int r, int c) const {
    return std::size_t((shape_.rows == 1 ? 0 : r) * shape_.cols + (shape_.cols == 1 ? 0 : c));
  }
  Shape shape_;
  std::vector<double> values_;
};

template <class F, std::same_as<Array>... Xs> Array eval(const Map<F>& op, const Xs&... xs) {
  return Array::generate(op.shape(xs.shape()...), [&](int r, int c) { return op.f(xs.at(r, c)...); });
}
Array eval(const Matmul& op, const Array& a, const Array& b) {
  return Array::generate(op.shape(a.shape(), b.shape()), [&](int r, int c) {
    double total = 0.0;
    for (int k = 0; k < a.shape().cols; ++k) total += a.at(r, k) * b.at(k, c);
    return total;
  });
}
Array eval(const Transpose& op, const Array& x) {
  return Array::generate(op.shape(x.shape()), [&](int r, int c) { return x.at(c, r); });
}
Array eval(const SumTo& op, const Array& x) {
  Array result = Array::full(op.shape(x.shape()), 0.0);
  for (int r = 0; r < x.shape().rows; ++r)
    for (int c = 0; c < x.shape().cols; ++c) result.at(r, c) += x.at(r, c);
  return result;
}

// ---- 8. Third interpretation: numbers that remember ----
// `Grad<T>` computes like T, and notes on a tape how to send gradients back. A tape is a list of closures
// that records while it is in scope. Played backwards, it is the chain rule. Without a tape nothing is
// recorded.

template <Tensor T> class Grad;

template <Tensor T> class Tape {
 public:
  Tape() : outer_(std::exchange(current_, this)) {}
  ~Tape() { current_ = outer_; }
  Tape(const Tape&) = delete;

  static Tape* current() { return current_; }
  void record(std::function<void()> step) { steps_.push_back(std::move(step)); }
  void backward(const Grad<T>& loss) {
    loss.accumulate(T::full(loss.shape(), 1.0));  // the derivative of the loss for itself
    for (; !steps_.empty(); steps_.pop_back()) steps_.back()();
  }

 private:
  static inline thread_local Tape* current_ = nullptr;
  Tape* const outer_;
  std::vector<std::function<void()>> steps_;
};

template <Tensor T> class Grad {
 public:
  Grad(T value) : node_(std::make_shared<Node>(Node{std::move(value), {}, false})) {}  // a constant
  static Grad full(Shape s, double v) { return T::full(s, v); }

  Grad track() const {  // makes this a value whose gradient is wanted
    node_->tracked = true;
    return *this;
  }
  bool tracked() const { return node_->tracked; }
  Shape shape() const { return node_->value.shape(); }
  const T& value() const { return node_->value; }
  const std::optional<T>& grad() const { return node_->grad; }
  void accumulate(const T& g) const { node_->grad = node_->grad ? *node_->grad + g : g; }

 private:
  struct Node {
    T value;
    std::optional<T> grad;
    bool tracked;
  };
  std::shared_ptr<Node> node_;  // shared by the program and the tape
};

// All of automatic differentiation: one template for every operator that has a gradient rule.
template <class Op, class T, std::same_as<Grad<T>>... Xs>
Grad<T> eval(const Op& op, const Grad<T>& x, const Xs&... xs) {
  const Grad<T> out{eval(op, x.value(), xs.value()...)};
  if (!Tape<T>::current() || !(x.tracked() || ... || xs.tracked())) return out;
  Tape<T>::current()->record([=] {
    if (!out.grad()) return;  // nothing that the loss depends on
    const std::array operands{x, xs...};
    const auto gradients = op.gradient(*out.grad(), x.value(), xs.value()...);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].tracked()) operands[i].accumulate(gradients[i]);
  });
  return out.track();
}

// ---- 9. Derivatives as functions ----
// `gradient(f)` is the gradient of sum(f). It runs f on `Grad<T>`, for any T. If T is itself a `Grad<U>`, the
// gradient rules, being programs over T like any other, are recorded too, on the tape for U. So
// `gradient(gradient(f))` is the second derivative, and no line above was written for it.

template <class F> auto gradient(F f) {
  return [f]<Tensor T>(const T& at) {
    const Grad<T> x = Grad<T>{at}.track();
    Tape<T> tape;
    tape.backward(f(x));
    return x.grad().value();
  };
}

static_assert(Tensor<ShapeTensor> && Tensor<Array> && Tensor<Grad<Array>> && Tensor<Grad<Grad<Array>>>);
static_assert(Tensor<Grad<ShapeTensor>>);  // columns combine freely: this one checks the shapes of gradients

}  // namespace lesson

// ---- 10. All of it at work ----

using namespace lesson;

bool all_right = true;

void check(const std::string& what, double got, double want, double tolerance = 1e-9) {
  const bool right = std::abs(got - want) <= tolerance;
  std::cout << (right ? "  ok     " : "  WRONG  ") << what << ": " << got << ", expected " << want << '\n';
  all_right = all_right && right;
}

void derivatives() {
  std::cout << "Derivatives at x = 2\n";
  const Array x = Array::full({1, 1}, 2.0);
  const auto cubic = [](const auto& v) { return v * v * v + 2.0 * v; };
  check("x^3 + 2x", cubic(x).at(0, 0), 12.0);
  check("  its slope, 3x^2 + 2", gradient(cubic)(x).at(0, 0), 14.0);
  check("  its curvature, 6x", gradient(gradient(cubic))(x).at(0, 0), 12.0);
  const double t = std::tanh(2.0), slope = 1.0 - t * t;
  const auto saturate = [](const auto& v) { return tanh(v); };
  check("the slope of tanh, by dual numbers", gradient(saturate)(x).at(0, 0), slope);
  check("  its curvature, by dual numbers of dual numbers", gradient(gradient(saturate))(x).at(0, 0),
        -2.0 * t * slope);
}

// The gradient of a whole network, against what a small change of one weight really does.
void network() {
  std::cout << "A network's gradient against finite differences\n";
  const auto wave = [](int r, int c) { return std::sin(1.0 + 2.0 * r + 3.0 * c); };
  const Array x = Array::generate({4, 3}, wave), weight = Array::generate({3, 5}, wave);
  const auto loss = [&]<Tensor T>(const T& w) {
    const Network<T> net{{w, T::full({1, 5}, 0.1)}, {T::full({5, 2}, 0.3), T::full({1, 2}, 0.0)}};
    const T y = net(T{x});  // the data are constants of every interpretation
    return mean(y * y);
  };
  const Array by_tape = gradient(loss)(weight);
  for (const int c : {0, 4}) {
    Array up = weight, down = weight;
    up.at(1, c) += 1e-5, down.at(1, c) -= 1e-5;
    const double by_difference = (loss(up).at(0, 0) - loss(down).at(0, 0)) / 2e-5;
    check("dloss/dweight[1, " + std::to_string(c) + "]", by_tape.at(1, c), by_difference, 1e-8);
  }
}

// Least squares by gradient descent: y = 2 x0 - 3 x1 + 1, learned from eight points.
void regression() {
  std::cout << "Linear regression\n";
  const Array x = Array::generate({8, 2}, [](int r, int c) { return std::cos(1.0 + 5.0 * r + 2.0 * c * r); });
  const Array y =
      Array::generate({8, 1}, [&](int r, int) { return 2.0 * x.at(r, 0) - 3.0 * x.at(r, 1) + 1.0; });
  using G = Grad<Array>;
  Linear<G> line{G::full({2, 1}, 0.0).track(), G::full({1, 1}, 0.0).track()};
  for (int step = 0; step <= 300; ++step) {
    Tape<Array> tape;  // one a step: it goes out of scope, and with it all that was recorded
    const G error = line(x) - G{y}, loss = mean(error * error);
    tape.backward(loss);
    for (G* parameter : {&line.weight, &line.bias})
      *parameter = G{parameter->value() - 0.2 * parameter->grad().value()}.track();
    if (step % 100 == 0) std::cout << "  step " << step << "  loss " << loss.value().at(0, 0) << '\n';
  }
  check("weight 0", line.weight.value().at(0, 0), 2.0, 1e-3);
  check("weight 1", line.weight.value().at(1, 0), -3.0, 1e-3);
  check("bias", line.bias.value().at(0, 0), 1.0, 1e-3);
}

int main() {
  derivatives();
  network();
  regression();
  std::cout << (all_right ? "All results are right.\n" : "Some results are WRONG.\n");
  return all_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
