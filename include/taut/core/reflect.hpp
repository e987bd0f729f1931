#pragma once
// The fields of plain aggregates, and their names, without registration: what the walks over models stand on.
//
//   struct Model { Linear hidden, out; float scale; };
//   field_count<Model> == 3
//   auto [hidden, out, scale] = fields(model);    // references
//   field_name<Model, 1> == "out"
//
// Fields are counted by trying how many arguments initialize the aggregate, bound by structured bindings, and
// named by what the compiler prints for a pointer to them.

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reflect_bind.hpp"

namespace taut {

namespace detail {

// Probes stand for the initializers of fields, in unevaluated expressions. They convert to anything but the
// aggregate `A` itself, which would be a copy. Three are needed because a field's type may have constructor
// templates that compete with the conversion.

/// Works for nearly all types; a constructor from `U&&` (of `std::optional`, say) is preferred to the
/// conversion.
template <class A> struct ConstProbe {
  template <class U>
  requires(!std::same_as<U, A>) operator U() const noexcept { __builtin_unreachable(); }
};

/// The conversion is preferred to a constructor from `const U&`.
template <class A> struct RvalueProbe {
  template <class U>
  requires(!std::same_as<U, A>) operator U() && noexcept { __builtin_unreachable(); }
};

/// Only a constructor from any `U` is left, if the field is of class type.
template <class A> struct ScalarProbe {
  template <class U>
  requires(!std::is_class_v<U>) operator U() const noexcept { __builtin_unreachable(); }
};

/// Converts to lvalues: initializes fields that are references.
template <class A> struct LvalueProbe {
  template <class U>
  requires(!std::same_as<U, A>) operator U&() const noexcept { __builtin_unreachable(); }
};

/// Converts to base classes.
template <class A> struct BaseProbe {
  template <class U>
  requires(std::is_base_of_v<U, A> && !std::same_as<U, A>) operator U() const noexcept {
    __builtin_unreachable();
  }
};

template <class Probe, std::size_t> using Repeat = Probe;

/// Whether `A` can be initialized from these arguments. With parentheses, because braces may reach into a
/// field for the fields of that ("brace elision").
template <class A, class... Probes>
concept InitializableFrom = requires {
  A(Probes{}...);
};

template <class A, class Last, std::size_t... I> constexpr bool takes(std::index_sequence<I...>) {
  return InitializableFrom<A, Repeat<ConstProbe<A>, I>..., Last>;
}
template <class A, class First, std::size_t... I> constexpr bool takes_after(std::index_sequence<I...>) {
  return InitializableFrom<A, First, Repeat<ConstProbe<A>, I>...>;
}
template <class A, std::size_t... I> constexpr bool takes_in_braces(std::index_sequence<I...>) {
  return requires { A{Repeat<ConstProbe<A>, I>{}...}; };
}

/// Whether `n` arguments, the last of which is of type `Last`, initialize `A`.
template <class A, std::size_t n, class Last = ConstProbe<A>> constexpr bool takes() {
  if constexpr (n == 0) {
    return InitializableFrom<A>;
  } else {
    return takes<A, Last>(std::make_index_sequence<n - 1>{});
  }
}

/// The largest n in [low, high) that `A` takes: it takes `low` arguments, but not `high`.
template <class A, std::size_t low, std::size_t high> constexpr std::size_t bisect_count() {
  constexpr std::size_t middle = (low + high) / 2;
  if constexpr (middle == low) {
    return low;
  } else if constexpr (takes<A, middle>()) {
    return bisect_count<A, middle, high>();
  } else {
    return bisect_count<A, low, middle>();
  }
}

/// How many `ConstProbe`s initialize `A`, if its fields can be omitted: logarithmic in the count.
template <class A, std::size_t tried = 1> constexpr std::size_t count_omissible() {
  if constexpr (takes<A, tried>()) {
    return count_omissible<A, 2 * tried>();
  } else {
    return bisect_count<A, tried / 2, tried>();
  }
}

inline constexpr std::size_t no_count = ~std::size_t{0};

/// The same if some field must not be omitted, for want of a default constructor.
template <class A, std::size_t tried = 1> constexpr std::size_t count_required() {
  if constexpr (takes<A, tried>() && !takes<A, tried + 1>()) {
    return tried;
  } else if constexpr (tried > max_fields) {
    return no_count;
  } else {
    return count_required<A, tried + 1>();
  }
}

/// Goes on to count one by one with other probes where `ConstProbe` does not initialize the next field.
template <class A, class... Probes> constexpr std::size_t count_onwards() {
  if constexpr (InitializableFrom<A, Probes..., ConstProbe<A>>) {
    return count_onwards<A, Probes..., ConstProbe<A>>();
  } else if constexpr (InitializableFrom<A, Probes..., RvalueProbe<A>>) {
    return count_onwards<A, Probes..., RvalueProbe<A>>();
  } else if constexpr (InitializableFrom<A, Probes..., ScalarProbe<A>>) {
    return count_onwards<A, Probes..., ScalarProbe<A>>();
  } else {
    return sizeof...(Probes);
  }
}

template <class A, std::size_t... I> constexpr std::size_t count_after(std::index_sequence<I...>) {
  return count_onwards<A, Repeat<ConstProbe<A>, I>...>();
}

template <class A> constexpr std::size_t count_initializers() {
  if constexpr (std::is_empty_v<A> && !takes<A, 1>()) {
    return 0;
  } else if constexpr (!takes<A, 0>()) {
    return count_required<A>();
  } else {
    constexpr std::size_t n = count_omissible<A>();
    if constexpr (takes<A, n + 1, RvalueProbe<A>>() || takes<A, n + 1, ScalarProbe<A>>()) {
      return count_after<A>(std::make_index_sequence<n>{});
    } else {
      return n;
    }
  }
}

template <class A> inline constexpr std::size_t initializer_count = count_initializers<A>();

template <class A> constexpr bool has_base_class() {
  constexpr std::size_t n = initializer_count<A>;
  if constexpr (n == 0 || n == no_count) {
    return false;
  } else {
    return InitializableFrom<A, BaseProbe<A>> ||
           takes_after<A, BaseProbe<A>>(std::make_index_sequence<n - 1>{});
  }
}

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

}  // namespace detail

/// A struct whose fields can be listed: `std::is_aggregate`, but no array, union, `std::array` or derived
/// class.
template <class T>
concept Aggregate = std::is_class_v<std::remove_cv_t<T>> && std::is_aggregate_v<std::remove_cv_t<T>> &&
                    !detail::TupleLike<std::remove_cv_t<T>> &&
                    !detail::has_base_class<std::remove_cv_t<T>>();

namespace detail {

template <class A> constexpr std::size_t checked_field_count() {
  constexpr bool aggregate = std::is_class_v<A> && std::is_aggregate_v<A> && !TupleLike<A>;
  static_assert(aggregate,
                "fields: this type is not a plain aggregate: it has constructors, private members or virtual "
                "functions");
  if constexpr (aggregate) {
    constexpr std::size_t n = initializer_count<A>;
    constexpr bool derived = has_base_class<A>();
    constexpr bool countable = n != no_count && !takes<A, n + 1, LvalueProbe<A>>();
    constexpr bool arrays = n != no_count && takes_in_braces<A>(std::make_index_sequence<n + 1>{});
    static_assert(!derived, "fields: an aggregate with a base class is not supported: make the base a field");
    static_assert(!arrays, "fields: an aggregate with a C array is not supported: use std::array");
    static_assert(
        countable,
        "fields: a field is a reference, or of a type that can neither be default-constructed nor copied");
    static_assert(n <= max_fields || !countable,
                  "fields: an aggregate can have at most 32 fields: group some in a struct");
    if constexpr (!derived && !arrays && countable && n <= max_fields) return n;
  }
  return 0;
}

}  // namespace detail

/// The number of fields of the aggregate `A`.
template <class A>
inline constexpr std::size_t field_count = detail::checked_field_count<std::remove_cv_t<A>>();

/// References to the fields of the aggregate `a` in the order of their declaration, as a `std::tuple`. The
/// references are const if `a` is.
template <class A> constexpr auto fields(A& a) {
  if constexpr (field_count<A> == 0) {
    return std::tuple<>{};
  } else {
    return detail::bind_fields<field_count<A>>(a);
  }
}

namespace detail {

/// Room for an `A` that is never constructed, so that there are fields to point to in constant expressions.
template <class A> union Unconstructed {
  char nothing = 0;
  A value;
  constexpr Unconstructed() noexcept {}
  constexpr ~Unconstructed() {}
};
template <class A> inline constexpr Unconstructed<A> unconstructed{};

/// A pointer in a class, because compilers print, and not all accept, a bare pointer to a field as an
/// argument.
struct FieldPointer {
  const volatile void* pointer;
};

/// The compiler's text for a function with this template argument, for instance
/// `constexpr auto f() [with auto field = FieldPointer{((const volatile void*)(&
/// x<Model>.value.Model::out))}]`.
template <auto field> constexpr auto function_text() { return std::string_view(__PRETTY_FUNCTION__); }

constexpr bool is_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The last identifier before the closing brace of the template argument.
constexpr std::string_view name_in(std::string_view text) {
  std::size_t end = text.rfind('}');
  while (end > 0 && !is_identifier(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_identifier(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

template <class A, std::size_t I> constexpr std::string_view text_of_field() {
  return function_text<FieldPointer{&std::get<I>(fields(unconstructed<A>.value))}>();
}

/// A copy of the name, so that programs do not contain the compiler's long texts.
template <class A, std::size_t I>
inline constexpr auto stored_name = [] {
  constexpr std::string_view name = name_in(text_of_field<A, I>());
  static_assert(!name.empty());
  std::array<char, name.size()> characters{};
  for (std::size_t i = 0; i < name.size(); ++i) characters[i] = name[i];
  return characters;
}();

}  // namespace detail

/// The name of field `I` of the aggregate `A`, as declared.
template <class A, std::size_t I>
inline constexpr std::string_view field_name{detail::stored_name<std::remove_cv_t<A>, I>.data(),
                                             detail::stored_name<std::remove_cv_t<A>, I>.size()};

}  // namespace taut
