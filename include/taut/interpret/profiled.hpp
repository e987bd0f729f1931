#pragma once
// `Profiled<T>`: computes as T does and books the time and the work of each operator under its name.

#include <cstdint>
#include <string_view>

#include "profile.hpp"
#include "profile_report.hpp"
#include "shape_tensor.hpp"
#include "trace.hpp"
#include "wrapper.hpp"

namespace taut {

namespace detail {

/// How many conversions of layouts the leaf has counted so far.
template <class Leaf> std::int64_t layout_conversions() {
  if constexpr (requires { Leaf::layout_conversions(); })
    return Leaf::layout_conversions();
  else
    return 0;
}

template <class Leaf> class Stopwatch {
 public:
  explicit Stopwatch(const Work& work) : work_(work) {}
  void book() { detail::book(work_, begin_, TraceClock::now(), layout_conversions<Leaf>() - conversions_); }

 private:
  Work work_;
  std::int64_t conversions_ = layout_conversions<Leaf>();
  TraceClock::time_point begin_ = TraceClock::now();
};

template <class X>
inline constexpr auto element_size = static_cast<std::int64_t>(sizeof(typename X::Element));

}  // namespace detail

/// A T whose operators are timed.
template <class T> class Profiled : public Wrapper<Profiled<T>, T> {
 public:
  using Wrapper<Profiled<T>, T>::Wrapper;

  /// Runs what is no operator, such as an optimizer's pass over all parameters, and books its time and the
  /// given work under a name.
  template <class F>
  static void timed(std::string_view name, const Shape& operand, std::int64_t flops, std::int64_t bytes,
                    const F& run) {
    detail::Stopwatch<detail::LeafOf<T>> watch({name, {&operand, 1}, flops, bytes});
    run();
    watch.book();
  }
};

template <class X> inline constexpr bool is_profiled = false;
template <class T> inline constexpr bool is_profiled<Profiled<T>> = true;

/// The meaning of every operator for `Profiled<T>`: T's, timed.
template <class Op, class... Xs>
requires is_profiled<OutermostOf<Xs...>>
auto eval(const Op& op, Xs&&... xs) -> WrappedResult<OutermostOf<Xs...>, Op, Xs...> {
  using P = OutermostOf<Xs...>;
  using Result = WrappedResult<P, Op, Xs...>;
  const Shape shapes[] = {Shape(xs.shape())...};
  const auto bytes = count_bytes(op, detail::element_size<Result>,
                                 DenseSize{xs.shape(), detail::element_size<std::remove_cvref_t<Xs>>}...);
  detail::Stopwatch<detail::LeafOf<P>> watch(
      {Op::name, shapes, count_flops(op, Shape(xs.shape())...), bytes});
  auto result = eval(op, unwrap_operand<P>(std::forward<Xs>(xs))...);
  watch.book();
  return Result(std::move(result));
}

}  // namespace taut
