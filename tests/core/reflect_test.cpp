#include "taut/core/reflect.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "taut/core/shape.hpp"

namespace {

using taut::Aggregate;
using taut::field_count;
using taut::field_name;
using taut::fields;

/// Whether the names of `A`'s fields are exactly these.
template <class A> constexpr bool has_names(std::initializer_list<std::string_view> expected) {
  if (expected.size() != field_count<A>) return false;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ((field_name<A, I> == expected.begin()[I]) && ...);
  }
  (std::make_index_sequence<field_count<A>>{});
}

/// Whether `fields` gives references to these types, in this order.
template <class A, class... F>
constexpr bool has_types = std::is_same_v<decltype(fields(std::declval<A&>())), std::tuple<F&...>>;

// ---- what fields may be

enum class Colour { red, green };
struct Empty {};
struct Inner {
  int a;
  float b;
};

struct Scalars {
  int count;
  bool flag;
  Colour colour;
  double value;
  char letter;
  std::uint64_t large;
  const char* text;
  Inner* pointer;
};
static_assert(has_names<Scalars>({"count", "flag", "colour", "value", "letter", "large", "text", "pointer"}));
static_assert(has_types<Scalars, int, bool, Colour, double, char, std::uint64_t, const char*, Inner*>);

struct Containers {
  std::string name;
  std::vector<Inner> layers;
  std::vector<std::vector<bool>> nested;
  std::map<std::string, int> index;
  std::pair<int, std::string> pair;
  std::tuple<int, float> tuple;
};
static_assert(has_names<Containers>({"name", "layers", "nested", "index", "pair", "tuple"}));

struct Arrays {
  std::array<int, 3> ints;
  std::array<Inner, 2> structs;
  std::array<std::array<std::string, 2>, 2> strings;
  std::array<float, 0> none;
  int last;
};
static_assert(has_names<Arrays>({"ints", "structs", "strings", "none", "last"}));

struct OnlyArray {
  std::array<int, 4> values;
};
static_assert(has_names<OnlyArray>({"values"}));

struct Optionals {
  std::optional<int> number;
  std::optional<std::string> text;
  std::optional<Inner> model;
  std::optional<std::vector<Inner>> models;
  std::optional<std::optional<int>> twice;
};
static_assert(has_names<Optionals>({"number", "text", "model", "models", "twice"}));

struct OnlyOptional {
  std::optional<Inner> model;
};
static_assert(has_names<OnlyOptional>({"model"}));

struct Callables {
  std::function<void()> action;
  std::function<int(const std::string&)> measure;
  int (*function)(int);
};
static_assert(has_names<Callables>({"action", "measure", "function"}));

struct Owners {
  std::unique_ptr<Inner> unique;
  std::shared_ptr<Inner> shared;
  std::mutex mutex;
  std::atomic<int> atomic;
};
static_assert(has_names<Owners>({"unique", "shared", "mutex", "atomic"}));

struct Anything {
  std::any any;
  std::variant<int, std::string> variant;
  std::filesystem::path path;
};
static_assert(has_names<Anything>({"any", "variant", "path"}));

struct Nested {
  Inner first;
  Empty nothing;
  Empty again;
  Inner second;
};
static_assert(has_names<Nested>({"first", "nothing", "again", "second"}));

static_assert(field_count<Empty> == 0);
static_assert(has_types<Empty>);

struct OnlyEmpty {
  Empty nothing;
};
static_assert(has_names<OnlyEmpty>({"nothing"}));

struct OnlyStruct {
  Inner inner;
};
static_assert(has_names<OnlyStruct>({"inner"}));

struct Unsized {
  [[no_unique_address]] Empty nothing;
};
static_assert(has_names<Unsized>({"nothing"}));

struct Constants {
  const int number;
  const std::string text;
  const Inner inner;
};
static_assert(has_names<Constants>({"number", "text", "inner"}));
static_assert(has_types<Constants, const int, const std::string, const Inner>);

struct Defaults {
  int stride = 1;
  std::string name = "conv";
  const float scale = 0.5f;
  std::optional<Inner> inner = std::nullopt;
};
static_assert(has_names<Defaults>({"stride", "name", "scale", "inner"}));

struct WithMembers {
  using Element = float;
  enum { size = 3 };
  struct Local {
    int x;
  };
  int field_1;
  Local local;
  int operator()(int x) const { return x + field_1; }
};
static_assert(has_names<WithMembers>({"field_1", "local"}));

// ---- classes whose constructors compete with the probe

/// Much like a tensor: private members, several constructors.
class Tensor {
 public:
  Tensor() = default;
  Tensor(taut::Shape shape) : shape_(shape) {}
  explicit Tensor(float value, taut::Shape shape = {}) : shape_(shape), data_{value} {}
  Tensor(std::vector<float> data, taut::Shape shape) : shape_(shape), data_(std::move(data)) {}
  Tensor(std::initializer_list<float> data) : data_(data) {}

 private:
  taut::Shape shape_;
  std::vector<float> data_;
};

/// Like a tape's tensor: converts from the tensor that it wraps.
template <class T> class Recorded {
 public:
  Recorded() = default;
  Recorded(T value) : value_(std::move(value)) {}

 private:
  T value_;
};

class WithoutDefault {
 public:
  WithoutDefault(int) {}
};
class ExplicitDefault {
 public:
  explicit ExplicitDefault() = default;
};
struct Immovable {
  Immovable() = default;
  Immovable(Immovable&&) = delete;
};
struct FromLvalue {
  FromLvalue() = default;
  template <class U> FromLvalue(const U&) {}
};
struct FromForwarded {
  FromForwarded() = default;
  template <class U> FromForwarded(U&&) {}
};
struct FromValue {
  FromValue() = default;
  template <class U> FromValue(U) {}
};
struct FromNumber {
  FromNumber() = default;
  template <std::convertible_to<float> U> FromNumber(U) {}
};
struct FromExplicit {
  FromExplicit() = default;
  template <class U> explicit FromExplicit(U&&) {}
};

template <class T> struct Model {
  T weight;
  T bias;
  std::optional<T> gain;
  std::vector<Model> children;
  taut::Shape shape;
};
static_assert(has_names<Model<Tensor>>({"weight", "bias", "gain", "children", "shape"}));
static_assert(has_names<Model<Recorded<Tensor>>>({"weight", "bias", "gain", "children", "shape"}));
static_assert(has_names<Model<Recorded<Recorded<Tensor>>>>({"weight", "bias", "gain", "children", "shape"}));
static_assert(has_names<Model<float>>({"weight", "bias", "gain", "children", "shape"}));

template <class T> struct Pair {
  T first;
  int middle;
  T last;
};
static_assert(has_names<Pair<WithoutDefault>>({"first", "middle", "last"}));
static_assert(has_names<Pair<ExplicitDefault>>({"first", "middle", "last"}));
static_assert(has_names<Pair<Immovable>>({"first", "middle", "last"}));
static_assert(has_names<Pair<FromLvalue>>({"first", "middle", "last"}));
static_assert(has_names<Pair<FromForwarded>>({"first", "middle", "last"}));
static_assert(has_names<Pair<FromValue>>({"first", "middle", "last"}));
static_assert(has_names<Pair<FromNumber>>({"first", "middle", "last"}));
static_assert(has_names<Pair<FromExplicit>>({"first", "middle", "last"}));

struct Competitors {
  FromLvalue a;
  FromForwarded b;
  FromValue c;
  FromNumber d;
  FromExplicit e;
  std::optional<int> f;
  Tensor g;
};
static_assert(has_names<Competitors>({"a", "b", "c", "d", "e", "f", "g"}));

struct RequiredThenCompeting {
  WithoutDefault a;
  ExplicitDefault b;
  FromLvalue c;
  FromNumber d;
};
static_assert(has_names<RequiredThenCompeting>({"a", "b", "c", "d"}));

template <class T> struct Single { T only; };
static_assert(has_names<Single<WithoutDefault>>({"only"}));
static_assert(has_names<Single<ExplicitDefault>>({"only"}));
static_assert(has_names<Single<Immovable>>({"only"}));
static_assert(has_names<Single<FromLvalue>>({"only"}));
static_assert(has_names<Single<FromForwarded>>({"only"}));
static_assert(has_names<Single<FromValue>>({"only"}));
static_assert(has_names<Single<FromNumber>>({"only"}));
static_assert(has_names<Single<std::any>>({"only"}));
static_assert(has_names<Single<Tensor>>({"only"}));
static_assert(has_names<Single<Single<Single<int>>>>({"only"}));

// ---- how many

struct Eight {
  int a, b, c, d, e, f, g, h;
};
static_assert(has_names<Eight>({"a", "b", "c", "d", "e", "f", "g", "h"}));

struct ThirtyTwo {
  int a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
  std::string c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
};
static_assert(field_count<ThirtyTwo> == 32);
static_assert(field_name<ThirtyTwo, 0> == "a0");
static_assert(field_name<ThirtyTwo, 23> == "c7");
static_assert(field_name<ThirtyTwo, 31> == "d7");

/// Whether the fields are bound in the order of their addresses, each once.
bool increasing(const std::vector<const volatile void*>& addresses) {
  return std::adjacent_find(addresses.begin(), addresses.end(), std::greater_equal<>()) == addresses.end();
}
template <class A> bool in_order() {
  A a{};
  return increasing(taut::detail::with_fields<field_count<A>>(
      a, [](auto&... field) { return std::vector<const volatile void*>{&field...}; }));
}

// clang-format off
struct F1 { int a; };
struct F2 { int a, b; };
struct F3 { int a, b, c; };
struct F4 { int a, b, c, d; };
struct F5 { int a, b, c, d, e; };
struct F6 { int a, b, c, d, e, f; };
struct F7 { int a, b, c, d, e, f, g; };
struct F9 { int a, b, c, d, e, f, g, h, i; };
struct F10 { int a, b, c, d, e, f, g, h, i, j; };
struct F11 { int a, b, c, d, e, f, g, h, i, j, k; };
struct F12 { int a, b, c, d, e, f, g, h, i, j, k, l; };
struct F13 { int a, b, c, d, e, f, g, h, i, j, k, l, m; };
struct F14 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n; };
struct F15 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o; };
struct F16 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p; };
struct F17 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q; };
struct F18 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r; };
struct F19 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s; };
struct F20 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t; };
struct F21 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u; };
struct F22 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v; };
struct F23 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w; };
struct F24 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x; };
struct F25 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y; };
struct F26 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z; };
struct F27 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa; };
struct F28 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab; };
struct F29 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac; };
struct F30 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad; };
struct F31 { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae; };
// clang-format on

template <class... A> struct List {};
using EachCount = List<F1, F2, F3, F4, F5, F6, F7, Eight, F9, F10, F11, F12, F13, F14, F15, F16, F17, F18,
                       F19, F20, F21, F22, F23, F24, F25, F26, F27, F28, F29, F30, F31, ThirtyTwo>;

template <class... A> constexpr bool counted_upwards(List<A...>) {
  std::size_t n = 0;
  return ((field_count<A> == ++n) && ...);
}
static_assert(counted_upwards(EachCount{}));

template <class... A> bool all_in_order(List<A...>) { return (in_order<A>() && ...); }

TEST(Fields, AreBoundInOrderForEveryCount) { EXPECT_TRUE(all_in_order(EachCount{})); }

// ---- the concept

struct Base {};
struct Derived : Base {
  int x;
};
struct Base2 {
  std::string y;
};
struct DerivedTwice : Base, Base2 {
  int x;
};
struct DerivedRequired : Base2 {
  WithoutDefault x;
};
class Private {
  [[maybe_unused]] int x = 0;
};
union Union {
  int a;
  float b;
};
static_assert(Aggregate<Scalars> && Aggregate<Empty> && Aggregate<Model<Tensor>> && Aggregate<const Inner>);
static_assert(Aggregate<Competitors> && Aggregate<Constants> && Aggregate<Pair<WithoutDefault>>);
static_assert(!Aggregate<int> && !Aggregate<Colour> && !Aggregate<int*> && !Aggregate<int[3]> &&
              !Aggregate<Inner&>);
static_assert(!Aggregate<Tensor> && !Aggregate<std::string> && !Aggregate<std::vector<int>> &&
              !Aggregate<Private>);
static_assert(!Aggregate<std::optional<int>> && !Aggregate<taut::Shape> && !Aggregate<std::function<void()>>);
static_assert(!Aggregate<std::array<int, 3>> && !Aggregate<std::pair<int, int>> &&
              !Aggregate<std::tuple<int>>);
static_assert(!Aggregate<Union>);
static_assert(!Aggregate<decltype([] {})> && !Aggregate<decltype([x = 1] { return x; })>);
static_assert(!Aggregate<Derived> && !Aggregate<DerivedTwice> && !Aggregate<DerivedRequired>);

// ---- what is refused, with a message

struct ArrayFirst {
  int a[3];
  int b;
};
struct ArrayLast {
  std::string a;
  WithoutDefault b;
  std::string c[2];
};
struct ArrayOfOne {
  FromValue a;
  int b[1];
};
int reference_target = 0;
struct ReferenceFirst {
  int& a = reference_target;
  int b;
};
struct ReferenceLast {
  std::optional<int> a;
  WithoutDefault b;
  FromNumber c;
  const std::string& d;
};
template <class T> struct ReferenceMiddle {
  int a;
  T b;
  int c;
};
using taut::detail::has_c_array;
using taut::detail::has_reference;
static_assert(has_c_array<ArrayFirst> && has_c_array<ArrayLast> && has_c_array<ArrayOfOne>);
static_assert(!has_c_array<Arrays> && !has_c_array<Nested> && !has_c_array<Competitors> &&
              !has_c_array<Empty>);
static_assert(has_reference<ReferenceFirst> && has_reference<ReferenceMiddle<const std::string&>>);
static_assert(has_reference<ReferenceMiddle<int&&>> && !has_reference<ReferenceMiddle<const int>>);
static_assert(!has_reference<Empty> && !has_reference<Scalars> && !has_reference<Competitors>);
static_assert(!has_reference<OnlyStruct> && !has_reference<Owners> && !has_reference<Pair<Immovable>>);

// ---- at run time and in constant expressions

static_assert(has_types<const Inner, const int, const float>);
static_assert(field_count<const Inner> == 2 && field_name<const Inner, 1> == "b");

constexpr int sum_of_fields() {
  F4 four{1, 2, 3, 4};
  std::get<0>(fields(four)) = 10;
  const F4& unchanging = four;
  return std::apply([](auto... x) { return (x + ...); }, fields(unchanging));
}
static_assert(sum_of_fields() == 19);

constexpr Inner constant{3, 0.5f};
static_assert(std::get<0>(fields(constant)) == 3);

TEST(Fields, ReferToTheObject) {
  Model<std::string> model{"w", "b", "g", {{}, {}}, {2, 3}};
  auto [weight, bias, gain, children, shape] = fields(model);
  EXPECT_EQ(&weight, &model.weight);
  EXPECT_EQ(&bias, &model.bias);
  EXPECT_EQ(&gain, &model.gain);
  EXPECT_EQ(&children, &model.children);
  EXPECT_EQ(&shape, &model.shape);
  std::get<0>(fields(model)) = "changed";
  EXPECT_EQ(model.weight, "changed");
}

TEST(Fields, OfObjectsThatCannotBeCopied) {
  Owners owners;
  EXPECT_EQ(&std::get<2>(fields(owners)), &owners.mutex);
  const Owners& view = owners;
  EXPECT_EQ(&std::get<3>(fields(view)), &owners.atomic);
}

TEST(FieldName, OfLocalTypes) {
  struct Local {
    int alpha;
    Model<Inner> beta;
  };
  static_assert(has_names<Local>({"alpha", "beta"}));
  static_assert(has_names<Pair<Local>>({"first", "middle", "last"}));
  EXPECT_EQ((field_name<Local, 1>), "beta");
}

template <class T> struct Outer {
  template <class U, int n> struct Inside {
    T one;
    U two;
  };
};

TEST(FieldName, OfNestedTemplates) {
  EXPECT_TRUE((has_names<Outer<std::string>::Inside<Model<int>, 3>>({"one", "two"})));
}

// Letters that occur in the text around the name, and names that begin with one another.
struct Tricky {
  int field;
  int field_;
  int _1;
  int pointer;
  int value;
  int nothing;
  int Unconstructed;
  int x__;
};
static_assert(has_names<Tricky>({"field", "field_", "_1", "pointer", "value", "nothing", "Unconstructed",
                                 "x__"}));

}  // namespace

// With external linkage, where other warnings apply.
namespace reflect_test {
struct External {
  std::string first;
  std::optional<std::vector<int>> second;
};
template <class T> struct ExternalTemplate {
  T first;
  External second;
};
}  // namespace reflect_test

static_assert(taut::field_name<reflect_test::External, 1> == "second");
static_assert(taut::field_name<reflect_test::ExternalTemplate<reflect_test::External>, 1> == "second");
