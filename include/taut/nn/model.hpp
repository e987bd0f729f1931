#pragma once
// Models are plain aggregates. One walk over their fields, which reflection finds with their names, gives
// parameters, names, counts and conversions; there is nothing to register or to derive from.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "../core/reflect.hpp"
#include "../interpret/grad.hpp"
#include "../interpret/shape_tensor.hpp"
#include "../op/convert.hpp"

namespace taut {

/// A tensor of a model that is saved with it but not trained, such as running statistics. Mutable, because a
/// model that is run in `Mode::train` may move them; two threads must not do so with one model at once.
template <class T> struct Buffer { mutable T value; };
/// Shapes do not move, and constant expressions may not read what is mutable.
template <> struct Buffer<ShapeTensor> { ShapeTensor value; };

namespace detail {

template <class X> inline constexpr bool is_buffer = false;
template <class T> inline constexpr bool is_buffer<Buffer<T>> = true;

template <class X> inline constexpr bool is_optional = false;
template <class X> inline constexpr bool is_optional<std::optional<X>> = true;

template <class X> inline constexpr bool is_pair = false;
template <class A, class B> inline constexpr bool is_pair<std::pair<A, B>> = true;

template <class X> inline constexpr bool is_sequence = false;
template <class X, class A> inline constexpr bool is_sequence<std::vector<X, A>> = true;
template <class X, std::size_t N> inline constexpr bool is_sequence<std::array<X, N>> = true;

/// The tensor type that a model is made of: the first that the walk would meet, or void.
template <class X> struct FindTensor { using type = void; };
template <AnyTensor X> struct FindTensor<X> { using type = X; };
template <class T> struct FindTensor<Buffer<T>> : FindTensor<T> {};
template <class X> struct FindTensor<std::optional<X>> : FindTensor<X> {};
template <class X, class A> struct FindTensor<std::vector<X, A>> : FindTensor<X> {};
template <class X, std::size_t N> struct FindTensor<std::array<X, N>> : FindTensor<X> {};
template <class A, class B>
struct FindTensor<std::pair<A, B>>
    : std::conditional_t<std::is_void_v<typename FindTensor<A>::type>, FindTensor<B>, FindTensor<A>> {};
template <> struct FindTensor<std::tuple<>> { using type = void; };
template <class X, class... Rest>
struct FindTensor<std::tuple<X&, Rest...>>
    : std::conditional_t<std::is_void_v<typename FindTensor<std::remove_const_t<X>>::type>,
                         FindTensor<std::tuple<Rest...>>, FindTensor<std::remove_const_t<X>>> {};
template <class X>
requires(Aggregate<X> && !AnyTensor<X> && !is_buffer<X> && !is_sequence<X>) struct FindTensor<X>
    : FindTensor<decltype(fields(std::declval<X&>()))> {
};

/// Whether a type that the walk does not enter is a class template over a tensor or a model.
template <class X> inline constexpr bool hides_tensors = false;
template <template <class...> class C, class... Xs>
inline constexpr bool hides_tensors<C<Xs...>> =
    ((AnyTensor<Xs> || !std::is_void_v<typename FindTensor<Xs>::type>) || ...);

/// The way from a model to one of its fields, kept on the stack of the walk.
struct FieldPath {
  const FieldPath* parent = nullptr;
  std::string_view name{};
  std::int64_t index = -1;

  /// PyTorch's spelling, such as `layers.0.weight`.
  std::string str() const {
    std::string text = parent ? parent->str() : "";
    if (!text.empty()) text += '.';
    return text + (index >= 0 ? std::to_string(index) : std::string(name));
  }
};

/// Calls `visit(path, tensor, trained)` for each tensor of a model, in the order of its fields, where
/// `trained` is a `std::bool_constant`.
template <class M, class Visit>
constexpr void walk(M& model, const Visit& visit, const FieldPath* path = nullptr) {
  using Field = std::remove_const_t<M>;
  if constexpr (AnyTensor<Field>) {
    visit(path, model, std::true_type{});
  } else if constexpr (is_buffer<Field>) {
    visit(path, model.value, std::false_type{});
  } else if constexpr (is_optional<Field>) {
    if (model) walk(*model, visit, path);
  } else if constexpr (is_pair<Field>) {
    const FieldPath first{path, {}, 0}, second{path, {}, 1};
    walk(model.first, visit, &first);
    walk(model.second, visit, &second);
  } else if constexpr (is_sequence<Field>) {
    std::int64_t index = 0;
    for (auto& item : model) {
      const FieldPath at{path, {}, index++};
      walk(item, visit, &at);
    }
  } else if constexpr (std::is_class_v<Field> && Aggregate<Field>) {
    std::apply(
        [&](auto&... field) {
          [&]<std::size_t... I>(std::index_sequence<I...>) {
            (
                [&] {
                  const FieldPath at{path, field_name<Field, I>, -1};
                  walk(field, visit, &at);
                }(),
                ...);
          }
          (std::index_sequence_for<decltype(field)...>{});
        },
        fields(model));
  } else {
    static_assert(
        !hides_tensors<Field>,
        "a field holds tensors where they would be neither trained nor saved; use plain aggregates, "
        "std::vector, std::array, std::pair and std::optional of them");
  }
}

}  // namespace detail

/// The tensor type of a model: `CpuArray` of an `Mlp<CpuArray>`.
template <class M> using TensorOf = typename detail::FindTensor<std::remove_const_t<M>>::type;

/// A plain aggregate that holds tensors.
template <class M>
concept Model = !AnyTensor<M> && !std::is_void_v<TensorOf<M>>;

/// A tensor of a model and its name in PyTorch's spelling, such as `layer1.0.conv1.weight`.
template <class T> struct NamedTensor {
  std::string name;
  T& tensor;
};

/// Calls `visit(name, tensor)` for each tensor of a model, trained ones and buffers. The buffers of a model
/// over a narrow type may be of another type than the rest, its `Widened`.
template <Model M, class Visit> void for_each_tensor(M& model, const Visit& visit) {
  detail::walk(model, [&](const detail::FieldPath* path, auto& tensor, bool) {
    visit(path ? path->str() : std::string(), tensor);
  });
}

/// All tensors of a model, trained ones and buffers, with their names, where they are of one type.
template <Model M> auto named_tensors(M& model) {
  using T = std::conditional_t<std::is_const_v<M>, const TensorOf<M>, TensorOf<M>>;
  std::vector<NamedTensor<T>> result;
  for_each_tensor(model, [&]<class X>(std::string name, X& tensor) {
    static_assert(std::same_as<std::remove_const_t<X>, TensorOf<M>>,
                  "named_tensors: the model has buffers of a wider type; use for_each_tensor");
    result.push_back({std::move(name), tensor});
  });
  return result;
}

/// The tensors of a model that are trained.
template <Model M> auto parameters(M& model) {
  using T = std::conditional_t<std::is_const_v<M>, const TensorOf<M>, TensorOf<M>>;
  std::vector<T*> result;
  detail::walk(model, [&](const detail::FieldPath*, auto& tensor, auto trained) {
    if constexpr (trained) result.push_back(&tensor);
  });
  return result;
}

/// How many numbers of a model are trained; in a constant expression too, of a `Model<ShapeTensor>`.
template <Model M> constexpr std::int64_t parameter_count(const M& model) {
  std::int64_t count = 0;
  detail::walk(model, [&](const detail::FieldPath*, const auto& tensor, bool trained) {
    if (trained) count += tensor.shape().size();
  });
  return count;
}

namespace detail {

/// A tensor of type U with the value of `x`, sharing its buffer where the element type is the same. Leaves
/// that have no operator for the conversion pass through the host.
template <class U, class T> U convert_tensor(const T& x, bool trained) {
  if constexpr (std::same_as<U, T> && !is_grad<T>) {
    return x;
  } else if constexpr (std::same_as<U, T>) {
    return trained ? U(x.value()).track() : U(x.value());
  } else if constexpr (std::same_as<U, ShapeTensor>) {
    return ShapeTensor(x.shape());
  } else if constexpr (requires { typename U::Inner; }) {
    U result(convert_tensor<typename U::Inner>(x, trained));
    if constexpr (is_grad<U>)
      if (trained) result.track();
    return result;
  } else if constexpr (requires { typename T::Inner; }) {
    return convert_tensor<U>(leaf_value(x), trained);
  } else if constexpr (requires { eval(op::Convert<U>{}, x); }) {
    return eval(op::Convert<U>{}, x);
  } else {
    const auto values = x.to_host();
    return U::from_host(std::vector<typename U::Element>(values.begin(), values.end()), x.shape());
  }
}

template <class U, class X> struct Rebound { using type = X; };
template <class U, AnyTensor X> struct Rebound<U, X> { using type = U; };
template <class U, template <class> class M, class X>
requires Aggregate<M<X>>
struct Rebound<U, M<X>> {
  using type = M<typename Rebound<U, X>::type>;
};
template <class U, class X> struct Rebound<U, std::optional<X>> {
  using type = std::optional<typename Rebound<U, X>::type>;
};
template <class U, class A, class B> struct Rebound<U, std::pair<A, B>> {
  using type = std::pair<typename Rebound<U, A>::type, typename Rebound<U, B>::type>;
};
template <class U, class X, class A> struct Rebound<U, std::vector<X, A>> {
  using type = std::vector<typename Rebound<U, X>::type>;
};
template <class U, class X, std::size_t N> struct Rebound<U, std::array<X, N>> {
  using type = std::array<typename Rebound<U, X>::type, N>;
};

/// A model, or a part of one, as one over another tensor type; `To` says which type each field gets.
template <class To, class X> To rebind_to(const X& x, bool trained = true) {
  if constexpr (AnyTensor<To>) {
    return convert_tensor<To>(x, trained);
  } else if constexpr (is_buffer<To>) {
    return {rebind_to<decltype(To::value)>(x.value, false)};
  } else if constexpr (is_optional<To>) {
    return x ? To(rebind_to<typename To::value_type>(*x)) : To();
  } else if constexpr (is_pair<To>) {
    return To(rebind_to<typename To::first_type>(x.first), rebind_to<typename To::second_type>(x.second));
  } else if constexpr (is_sequence<To>) {
    To result;
    if constexpr (requires { result.resize(x.size()); }) result.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) result[i] = rebind_to<typename To::value_type>(x[i]);
    return result;
  } else if constexpr (std::is_void_v<typename FindTensor<X>::type>) {
    return x;  // configuration
  } else {
    using Fields = decltype(fields(std::declval<To&>()));
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto from = fields(x);
      return To{rebind_to<std::remove_cvref_t<std::tuple_element_t<I, Fields>>>(std::get<I>(from))...};
    }
    (std::make_index_sequence<std::tuple_size_v<Fields>>{});
  }
}

}  // namespace detail

/// The same model over another tensor type: `rebind<CpuArray>(model)` of an `Mlp<Grad<CpuArray>>` is an
/// `Mlp<CpuArray>` for inference, with the weights as they are now (shared, not copied; later training steps
/// do not show). To a `Grad` type the parameters become leaves. The model is a class template over its tensor
/// type.
template <AnyTensor U, Model M> auto rebind(const M& model) {
  using Result = typename detail::Rebound<U, M>::type;
  static_assert(std::same_as<TensorOf<Result>, U>,
                "rebind: the model must be a class template over its tensor type alone");
  return detail::rebind_to<Result>(model);
}

}  // namespace taut
