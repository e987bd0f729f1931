#include <gtest/gtest.h>

#include <taut/data/dataset.hpp>
#include <taut/data/drawn_shapes.hpp>

#include <algorithm>
#include <set>
#include <vector>

using namespace taut;

namespace {

static_assert(data::Dataset<data::DrawnShapes>);

std::vector<float> draw(const data::DrawnShapes& shapes, std::int64_t index, std::uint64_t seed = 0) {
  std::vector<float> values(3 * 32 * 32);
  Rng rng{seed};
  EXPECT_EQ(shapes.get(index, values, rng), index % 10);
  return values;
}

TEST(DrawnShapes, AreTheSameForASeedWhateverTheLoadersRandomness) {
  const data::DrawnShapes shapes(100, 7), others(100, 8);
  EXPECT_EQ(shapes.size(), 100);
  EXPECT_EQ(shapes.sample_shape(), (Shape{3, 32, 32}));
  for (const std::int64_t i : {0, 9, 42}) {
    EXPECT_EQ(draw(shapes, i), draw(shapes, i, 99));
    EXPECT_NE(draw(shapes, i), draw(others, i));
  }
  EXPECT_NE(draw(shapes, 3), draw(shapes, 13)) << "of one class, but another picture";
}

TEST(DrawnShapes, ShowTheirFigureAndNoiseBetweenZeroAndOne) {
  const data::DrawnShapes shapes(1000);
  for (std::int64_t i = 0; i < 100; ++i) {
    const auto values = draw(shapes, i);
    const auto [least, most] = std::ranges::minmax(values);
    EXPECT_GE(least, 0);
    EXPECT_LE(most, 1);
    EXPECT_GT(std::set<float>(values.begin(), values.end()).size(), 300u) << "the noise is missing in " << i;
  }
}

TEST(DrawnShapes, RefuseANegativeNumberAndIndicesThatThereAreNot) {
  EXPECT_THROW(data::DrawnShapes(-1), Error);
  const data::DrawnShapes shapes(10);
  std::vector<float> values(3 * 32 * 32);
  Rng rng{0};
  EXPECT_THROW(shapes.get(10, values, rng), Error);
  EXPECT_THROW(shapes.get(-1, values, rng), Error);
}

}  // namespace
