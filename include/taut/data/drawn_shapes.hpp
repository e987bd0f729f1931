#pragma once
// Pictures that are drawn as they are asked for: a data set for when there is none.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <string_view>

#include "../core/error.hpp"
#include "../core/random.hpp"
#include "../core/shape.hpp"

namespace taut::data {

/// The names of the classes of `DrawnShapes`.
inline constexpr std::array<std::string_view, 10> drawn_shapes_classes{
    "disc", "ring", "square", "frame", "triangle", "cross", "rows", "columns", "diagonals", "checks"};

/// A `Dataset` of colour pictures [3, 32, 32] of ten kinds of figures, at random places, in random sizes,
/// colours and angles, with noise. Picture i is of class i mod 10, and always the same one for a seed.
class DrawnShapes {
 public:
  static constexpr std::int64_t side = 32, classes = 10;

  /// Throws `Error` if `count` is negative.
  explicit DrawnShapes(std::int64_t count, std::uint64_t seed = 0) : count_(count), rng_(seed) {
    if (count < 0) taut::detail::throw_error("DrawnShapes", "the number of pictures must be at least 0");
  }

  std::int64_t size() const { return count_; }
  Shape sample_shape() const { return {3, side, side}; }

  /// Draws a picture, with values from 0 to 1, and returns its class. Throws `Error` if there is no such
  /// picture.
  std::int64_t get(std::int64_t index, std::span<float> values, Rng&) const {
    if (index < 0 || index >= count_)
      taut::detail::throw_error("DrawnShapes", "expected an index from 0 to " + std::to_string(count_ - 1) +
                                                   ", got " + std::to_string(index));
    Rng own = rng_.fork(static_cast<std::uint64_t>(index));
    const auto label = index % classes;
    const Figure figure(label, own);
    const Colour ink = colour(own), paper = colour(own);
    for (std::int64_t y = 0; y < side; ++y)
      for (std::int64_t x = 0; x < side; ++x) {
        const bool inside = figure.covers(static_cast<double>(x), static_cast<double>(y));
        for (std::size_t c = 0; c < 3; ++c) {
          const double value = (inside ? ink : paper)[c] + 0.15 * (own.uniform() - 0.5);
          values[c * side * side + static_cast<std::size_t>(y * side + x)] =
              static_cast<float>(std::min(1.0, std::max(0.0, value)));
        }
      }
    return label;
  }

 private:
  using Colour = std::array<double, 3>;

  static Colour colour(Rng& rng) { return {rng.uniform(), rng.uniform(), rng.uniform()}; }

  /// A figure of some class, placed at random.
  class Figure {
   public:
    Figure(std::int64_t label, Rng& rng)
        : label_(label),
          x_(11 + 10 * rng.uniform()),
          y_(11 + 10 * rng.uniform()),
          radius_(6 + 5 * rng.uniform()),
          period_(5 + 4 * rng.uniform()) {
      // Stripes would change their class if they were turned much.
      const double angle = (rng.uniform() - 0.5) * (label >= 6 ? 0.3 : std::numbers::pi / 2);
      cosine_ = std::cos(angle), sine_ = std::sin(angle);
    }

    bool covers(double px, double py) const {
      const double x = (px - x_) * cosine_ + (py - y_) * sine_, y = (py - y_) * cosine_ - (px - x_) * sine_;
      const double distance = std::hypot(x, y), square = std::max(std::abs(x), std::abs(y)), r = radius_;
      switch (label_) {
        case 0:
          return distance < r;
        case 1:
          return distance < r && distance > 0.6 * r;
        case 2:
          return square < 0.85 * r;
        case 3:
          return square < 0.85 * r && square > 0.5 * r;
        case 4:
          return y < 0.7 * r && y > 1.7 * std::abs(x) - r;
        case 5:
          return square < r && std::min(std::abs(x), std::abs(y)) < 0.25 * r;
        case 6:
          return striped(y);
        case 7:
          return striped(x);
        case 8:
          return striped((x + y) * std::numbers::sqrt2 / 2);
        default:
          return striped(x) != striped(y);
      }
    }

   private:
    bool striped(double at) const { return std::fmod(at + 64 * period_, period_) < period_ / 2; }

    std::int64_t label_;
    double x_, y_, radius_, period_, cosine_, sine_;
  };

  std::int64_t count_;
  Rng rng_;
};

}  // namespace taut::data
