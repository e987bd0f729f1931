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
// aggregate `A` itself, which would be a copy. Several are needed because a field's type may have constructor
// templates that compete with the conversion.

template <class U, class A>
concept Other = !std::same_as<std::remove_cv_t<U>, A>;

/// Suits nearly all types. Constructors from any `U&&`, such as `std::optional`'s, win over the conversion.
template <class A> struct ConstProbe {
  template <Other<A> U> operator U() const noexcept { __builtin_unreachable(); }
};

/// The conversion wins over constructors from any `const U&`.
template <class A> struct RvalueProbe {
  template <Other<A> U> operator U() && noexcept { __builtin_unreachable(); }
};

template <class U>
concept Scalar = std::is_scalar_v<U>;

/// Leaves class types only their constructors from any `U`.
template <class A> struct ScalarProbe {
  template <Scalar U> operator U() const noexcept { __builtin_unreachable(); }
};

/// Converts to lvalues, which references need.
template <class A> struct LvalueProbe {
  template <Other<A> U> operator U&() const noexcept { __builtin_unreachable(); }
};

template <class U, class A>
concept BaseOf = std::is_base_of_v<U, A> && Other<U, A>;

/// Converts to base classes.
template <class A> struct BaseProbe {
  template <BaseOf<A> U> operator U() const noexcept { __builtin_unreachable(); }
};

/// Converts to nothing.
template <class A> struct NoProbe {};

/// A list of probes that stand for the initializers of an aggregate.
template <class... P> struct Probes { static constexpr std::size_t count = sizeof...(P); };

/// In place of such a list if none was found.
struct NoProbes {
  static constexpr std::size_t count = ~std::size_t{0};
};

/// Whether `A` can be initialized from these arguments. With parentheses, because braces may reach into a
/// field for the fields of that ("brace elision").
template <class A, class... P>
concept InitializableFrom = requires {
  A(P{}...);
};

template <class A, std::size_t> using IndexedProbe = ConstProbe<A>;

template <class A, std::size_t... I>
constexpr Probes<IndexedProbe<A, I>...> const_probes(std::index_sequence<I...>) {
  return {};
}

template <class A, class... P> constexpr bool takes(Probes<P...>) { return InitializableFrom<A, P...>; }

/// Whether `n` of `ConstProbe` initialize `A`.
template <class A, std::size_t n> constexpr bool takes() {
  return takes<A>(const_probes<A>(std::make_index_sequence<n>{}));
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

/// How many of `ConstProbe` initialize `A`, if any number up to that does. Tries about 2 log2(n) numbers.
template <class A, std::size_t tried = 1> constexpr std::size_t count_optional() {
  if constexpr (takes<A, tried>()) {
    return count_optional<A, 2 * tried>();
  } else {
    return bisect_count<A, tried / 2, tried>();
  }
}

/// The same if some field cannot be left out, for want of a default constructor. Tries all numbers.
template <class A, std::size_t tried = 1> constexpr std::size_t count_required() {
  if constexpr (tried > max_fields + 1) {
    return NoProbes::count;
  } else if constexpr (takes<A, tried>() && !takes<A, tried + 1>()) {
    return tried;
  } else {
    return count_required<A, tried + 1>();
  }
}

/// Extends the list one by one by whichever probe suits the next field.
template <class A, class... P> constexpr auto extend(Probes<P...> probes) {
  if constexpr (InitializableFrom<A, P..., RvalueProbe<A>>) {
    return extend<A>(Probes<P..., RvalueProbe<A>>{});
  } else if constexpr (InitializableFrom<A, P..., ScalarProbe<A>>) {
    return extend<A>(Probes<P..., ScalarProbe<A>>{});
  } else if constexpr (InitializableFrom<A, P..., ConstProbe<A>>) {
    return extend<A>(Probes<P..., ConstProbe<A>>{});
  } else {
    return probes;
  }
}

/// A probe for each initializer that `A` takes: its base classes and fields, up to the first C array or
/// reference.
template <class A> constexpr auto find_probes() {
  if constexpr (requires { A{}; }) {
    return extend<A>(const_probes<A>(std::make_index_sequence<count_optional<A>()>{}));
  } else if constexpr (constexpr std::size_t n = count_required<A>(); n != NoProbes::count) {
    return extend<A>(const_probes<A>(std::make_index_sequence<n>{}));
  } else {
    return NoProbes{};
  }
}

template <class A> inline constexpr auto probes = find_probes<A>();

template <class A, class Replacement, class First, class... Rest>
constexpr bool starts_with(Probes<First, Rest...>) {
  return InitializableFrom<A, Replacement> || InitializableFrom<A, Replacement, Rest...>;
}
template <class A, class> constexpr bool starts_with(Probes<>) { return false; }
template <class A, class> constexpr bool starts_with(NoProbes) { return false; }

/// Whether the first initializer is for a base class, and not for a field that takes anything.
template <class A>
inline constexpr bool has_base_class = starts_with<A, BaseProbe<A>>(probes<A>) &&
                                       !starts_with<A, NoProbe<A>>(probes<A>);

template <class A, class... P> constexpr bool ends_at_array(Probes<P...>) {
  return requires { A{P{}..., ConstProbe<A>{}}; };
}
template <class A> constexpr bool ends_at_array(NoProbes) { return false; }

/// Whether the probes end at a C array, whose elements only braces reach.
template <class A> inline constexpr bool has_c_array = ends_at_array<A>(probes<A>);

/// Room for an `A` that is never constructed, so that there are fields to point to in constant expressions.
template <class A> union Unconstructed {
  char nothing = 0;
  A value;
  constexpr Unconstructed() noexcept {}
  constexpr ~Unconstructed() {}
};
template <class A> inline constexpr Unconstructed<A> unconstructed{};

/// A pointer in a class, because not all compilers accept a bare pointer to a field as template argument.
struct FieldPointer {
  const volatile void* pointer;
};

/// Pointers to the fields of `unconstructed<A>`.
template <class A, std::size_t n> constexpr std::array<FieldPointer, n> pointers_to_fields() {
  return with_fields<n>(unconstructed<A>.value, [](auto&... field) {
    return std::array<FieldPointer, n>{FieldPointer{__builtin_addressof(field)}...};
  });
}

template <class A, std::size_t n>
concept FieldsHaveAddresses = requires {
  typename std::bool_constant<(pointers_to_fields<A, n>(), true)>;
};

template <class A, class... P> constexpr bool ends_at_reference(Probes<P...>) {
  return InitializableFrom<A, P..., LvalueProbe<A>>;
}
template <class A> constexpr bool ends_at_reference(NoProbes) { return false; }

/// Whether the probes end at a reference to an lvalue, or one stands for another reference, which makes `A`
/// unassignable and has nothing to refer to in `unconstructed<A>`.
template <class A> constexpr bool find_reference() {
  constexpr std::size_t n = probes<A>.count;
  if constexpr (ends_at_reference<A>(probes<A>)) {
    return true;
  } else if constexpr (std::is_move_assignable_v<A> || has_base_class<A> || has_c_array<A> ||
                       n > max_fields) {
    return false;
  } else {
    return !FieldsHaveAddresses<A, n>;
  }
}
template <class A> inline constexpr bool has_reference = find_reference<A>();

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

template <class T>
concept PlainStruct = std::is_class_v<T> && std::is_aggregate_v<T> && !TupleLike<T>;

}  // namespace detail

/// A struct whose fields can be listed: any aggregate but arrays, `std::array`, unions and derived classes.
template <class T>
concept Aggregate = detail::PlainStruct<std::remove_cv_t<T>> && !detail::has_base_class<std::remove_cv_t<T>>;

namespace detail {

template <class A> constexpr std::size_t checked_field_count() {
  static_assert(PlainStruct<A>, "fields: this is not a plain struct: all members public, no constructors");
  if constexpr (PlainStruct<A>) {
    constexpr std::size_t n = probes<A>.count;
    static_assert(n != NoProbes::count,
                  "fields: the fields cannot be counted: one is a reference, a C array, or has no default "
                  "constructor beside one with a constructor from anything; give the fields default values");
    static_assert(!has_base_class<A>, "fields: base classes are not supported; make the base a field");
    static_assert(!has_c_array<A>, "fields: C arrays are not supported; use std::array");
    static_assert(!has_reference<A>, "fields: references are not supported; use values or pointers");
    static_assert(n <= max_fields || n == NoProbes::count,
                  "fields: more than 32 fields are not supported; group some in a struct");
    if constexpr (n <= max_fields && !has_base_class<A> && !has_c_array<A> && !has_reference<A>) return n;
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
  return detail::with_fields<field_count<A>>(a, [](auto&... field) { return std::tie(field...); });
}

namespace detail {

/// The compiler's name for this function, which contains the argument: it ends in `::out))}]` (GCC) or
/// `.out}]` (Clang) for a pointer to the field `out`.
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

template <class A> inline constexpr auto field_pointers = pointers_to_fields<A, field_count<A>>();

/// A copy of the name, so that programs do not contain the compiler's long texts.
template <class A, std::size_t I> constexpr auto store_name() {
  if constexpr (I < field_count<A>) {
    constexpr std::string_view name = name_in(function_text<field_pointers<A>[I]>());
    static_assert(!name.empty());
    std::array<char, name.size()> characters{};
    for (std::size_t i = 0; i < name.size(); ++i) characters[i] = name[i];
    return characters;
  } else {
    static_assert(field_count<A> == 0, "field_name: the aggregate has fewer fields");
    return std::array<char, 0>{};
  }
}
template <class A, std::size_t I> inline constexpr auto stored_name = store_name<A, I>();

}  // namespace detail

/// The name of field `I` of the aggregate `A`, as declared.
template <class A, std::size_t I>
inline constexpr std::string_view field_name{detail::stored_name<std::remove_cv_t<A>, I>.data(),
                                             detail::stored_name<std::remove_cv_t<A>, I>.size()};

}  // namespace taut
