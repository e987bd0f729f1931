// Lookup of rows by index, and its gradient, through the suite.

#include <taut/op/embedding.hpp>

#include <cmath>

#include "fixture.hpp"
#include "suite.hpp"

namespace taut::test {
namespace {

/// The index at a position: not all rows come up, some often.
std::int64_t index_at(std::int64_t position, std::int64_t rows) {
  return (position * position * 5 + position * 3 + 1) % rows;
}

/// Indices of the given shape for a tensor of type T.
template <class T> typename T::Index indices(const Shape& shape, std::int64_t rows) {
  if constexpr (std::same_as<T, ShapeTensor>) {
    return ShapeTensor(shape);
  } else {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < shape.size(); ++i) values.push_back(rows > 0 ? index_at(i, rows) : 0);
    return T::Index::from_host(values, shape);
  }
}

/// Looks up indices of shape `of`.
Case embedding_case(const std::string& name, const Shape& of, std::vector<Shapes> shapes) {
  return {
      .name = name,
      .call = programs<1>([of](const auto& weight) {
        using T = std::remove_cvref_t<decltype(weight)>;
        const Shape shape = weight.shape();
        return embedding(indices<T>(of, shape.rank() > 0 ? shape[0] : 0), weight);
      }),
      .oracle =
          [of](const std::vector<Reference>& operands) {
            const Reference& weight = operands[0];
            Reference result{of, {}};
            result.shape.push_back(weight.shape[1]);
            for (std::int64_t i = 0; i < of.size(); ++i)
              for (std::int64_t j = 0; j < weight.shape[1]; ++j)
                result.values.push_back(weight.values[flat(weight.shape, {index_at(i, weight.shape[0]), j})]);
            return result;
          },
      .operands = {{.curved = false}},
      .shapes = std::move(shapes),
      .rejected = {{{3}}, {{2, 3, 4}}},
      .ulps = 0,
      .error = "embedding"};
}

/// The sum of the rows of g that belong to each of five rows of a table.
Case gradient_case() {
  constexpr std::int64_t rows = 5;
  return {.name = "embedding_gradient",
          .call = programs<1>([](const auto& g) {
            using T = std::remove_cvref_t<decltype(g)>;
            Shape of;
            for (int i = 0; i + 1 < Shape(g.shape()).rank(); ++i) of.push_back(Shape(g.shape())[i]);
            return eval(op::EmbeddingGradient{rows}, g, indices<T>(of, rows));
          }),
          .oracle =
              [](const std::vector<Reference>& operands) {
                const Reference& g = operands[0];
                const std::int64_t n = g.shape[-1], count = static_cast<std::int64_t>(g.values.size()) / n;
                Reference result{{rows, n}, std::vector<double>(static_cast<std::size_t>(rows * n))};
                result.scale = result.values;
                for (std::int64_t i = 0; i < count; ++i)
                  for (std::int64_t j = 0; j < n; ++j) {
                    const auto to = static_cast<std::size_t>(index_at(i, rows) * n + j);
                    const double value = g.values[static_cast<std::size_t>(i * n + j)];
                    result.values[to] += value;
                    result.scale[to] += std::abs(value);
                  }
                return result;
              },
          .operands = {{.curved = false}},
          .shapes = {{{1, 2}}, {{7, 3}}, {{2, 3, 4}}, {{300, 33}}, {{3, 2, 2, 5}}, {{0, 3}}},
          .forward_shapes = {{{4}}, {{300, 8}}, {{3, 1030}}, {{270, 1}}},
          .rejected = {{{}}},
          .ulps = 4};
}

std::vector<Case> cases() {
  return {embedding_case("embedding", {6}, {{{3, 4}}, {{5, 1}}, {{50, 3}}, {{2, 1030}}}),
          embedding_case("embedding_of_a_matrix", {2, 3}, {{{3, 4}}, {{5, 1}}}),
          embedding_case("embedding_of_one", {}, {{{3, 4}}}),
          embedding_case("embedding_of_many", {300}, {{{7, 8}}, {{31, 33}}}),
          embedding_case("embedding_of_none", {0}, {{{3, 4}}, {{4, 0}}}),
          gradient_case()};
}

INSTANTIATE_TEST_SUITE_P(Embedding, OperatorSuite, testing::ValuesIn(cases()), case_name);

TEST(Embedding, GivesWhatPyTorchDoes) {
  for (const auto& fixture : read_fixtures("embedding")) {
    const Programs call = programs<1>([named = fixture.labels](const auto& weight) {
      using T = std::remove_cvref_t<decltype(weight)>;
      const Shape shape{static_cast<std::int64_t>(named.size())};
      if constexpr (std::same_as<T, ShapeTensor>)
        return embedding(ShapeTensor(shape), weight);
      else
        return embedding(T::Index::from_host(named, shape), weight);
    });
    EXPECT_TRUE(none(check_fixture(fixture, call, {})));
  }
}

TEST(Embedding, RejectsIndicesThatAreNoRows) {
  for (const std::int64_t wrong : {-1, 3}) {
    const auto named = Float::Index::from_host(std::array<std::int64_t, 2>{0, wrong}, {2});
    const std::string expected =
        "index " + std::to_string(wrong) + " at position 1 is not one of the rows 0 to 2";
    EXPECT_EQ(message_of([&] { embedding(named, Float::ones({3, 4})); }), "embedding: " + expected);
    EXPECT_EQ(message_of([&] {
                eval(op::EmbeddingGradient{3}, Float::ones({2, 4}), named);
              }),
              "embedding_gradient: " + expected);
  }
}

TEST(Embedding, GradientRejectsAnotherNumberOfVectorsThanIndices) {
  const auto text = message_of([] {
    eval(op::EmbeddingGradient{3}, Float::ones({2, 4}), Float::Index::zeros({3}));
  });
  EXPECT_EQ(text, "embedding_gradient: takes one vector for each index: [2, 4] x [3]");
}

}  // namespace
}  // namespace taut::test
