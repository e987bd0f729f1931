#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <taut/train/svg_chart.hpp>
#include <vector>

using namespace taut;
using namespace taut::train;

namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::vector<std::string> labels(const train::detail::Axis& axis) {
  std::vector<std::string> result;
  for (const auto& tick : axis.ticks) result.push_back(tick.label);
  return result;
}

std::vector<double> numbers(int n) {
  std::vector<double> result;
  for (int i = 1; i <= n; ++i) result.push_back(i);
  return result;
}

// The chart of one line over 1, 2, 3…
std::string chart_of(const std::vector<double>& y) {
  return to_html(
      {.title = "T", .x_name = "x", .x = numbers(static_cast<int>(y.size())), .lines = {{"y", y}}});
}

using Labels = std::vector<std::string>;

}  // namespace

TEST(LinearAxis, EndsAtRoundNumbers) {
  using train::detail::linear_axis;
  EXPECT_EQ(labels(linear_axis(0.03, 0.97, "", false)), (Labels{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels(linear_axis(91.2, 94.9, "%", false)), (Labels{"91%", "92%", "93%", "94%", "95%"}));
  EXPECT_EQ(labels(linear_axis(-1.5, 1.5, "", false)), (Labels{"-2", "-1", "0", "1", "2"}));
  EXPECT_EQ(labels(linear_axis(1e-5, 4e-5, "", true)), (Labels{"0", "1e-05", "2e-05", "3e-05", "4e-05"}));
  EXPECT_EQ(labels(linear_axis(830, 850, "", true)), (Labels{"0", "200", "400", "600", "800", "1000"}));
}

TEST(LinearAxis, ShowsConstantsFromZero) {
  using train::detail::linear_axis;
  EXPECT_EQ(labels(linear_axis(0.1, 0.1, "", false)).front(), "0");
  EXPECT_EQ(linear_axis(0.1, 0.1, "", false).high, 0.1);
  EXPECT_EQ(linear_axis(0, 0, "", false).high, 1.0);
  EXPECT_EQ(linear_axis(-5, -5, "", false).low, -5.0);
}

TEST(LinearAxis, HoldsItsValuesAtAnyScale) {
  for (double scale = 1e-299; scale < 1e300; scale *= 1e7) {
    for (const double high : {1.0, 1.00101, 3.7, 1e9}) {
      const auto axis = train::detail::linear_axis(std::min(scale, scale / high), scale, "", false);
      EXPECT_GE(axis.position(scale), 0) << scale << ' ' << high;
      EXPECT_LE(axis.position(scale), 1 + 1e-9) << scale << ' ' << high;
      EXPECT_GE(axis.ticks.size(), 2u);
      EXPECT_LE(axis.ticks.size(), 8u);
      for (const auto& tick : axis.ticks) EXPECT_LE(tick.label.size(), 12u) << tick.label;
    }
  }
}

TEST(LogarithmicAxis, GoesFromPowerToPowerOfTen) {
  using train::detail::logarithmic_axis;
  EXPECT_EQ(labels(logarithmic_axis(0.02, 2.3, "")), (Labels{"0.01", "0.1", "1", "10"}));
  EXPECT_EQ(labels(logarithmic_axis(1, 1000, "")), (Labels{"1", "10", "100", "1000"}));
  EXPECT_NEAR(logarithmic_axis(0.02, 2.3, "").position(1), 2.0 / 3, 1e-12);
  EXPECT_LE(logarithmic_axis(1e-300, 1e300, "").ticks.size(), 7u);
  EXPECT_NEAR(logarithmic_axis(1e-300, 1e300, "").position(1), 0.5, 1e-12);
}

TEST(CountingAxis, HasWholeTicks) {
  using train::detail::counting_axis;
  EXPECT_EQ(labels(counting_axis(1, 1)), (Labels{"1"}));
  EXPECT_EQ(labels(counting_axis(1, 3)), (Labels{"1", "2", "3"}));
  EXPECT_EQ(labels(counting_axis(1, 20)).front(), "2");
  EXPECT_EQ(labels(counting_axis(1, 3000)).back(), "3000");
}

TEST(LineChart, DrawsLinesWithLegendAndMarks) {
  const auto html = to_html({.title = "Loss",
                             .x_name = "epoch",
                             .x = {1, 2, 3},
                             .lines = {{"train", {3, 2, 1}}, {"test", {3, 2.5, 2}}},
                             .unit = " nats"});
  EXPECT_EQ(count(html, "class=\"key s"), 2);
  EXPECT_EQ(count(html, "<circle"), 6);
  EXPECT_NE(html.find("epoch 2, test: 2.5 nats"), html.npos);
  EXPECT_NE(html.find("<path d=\"M64.0 12.0L305.0 114.0L546.0 216.0\"/>"), html.npos) << html;
}

TEST(LineChart, EscapesItsText) {
  const auto html =
      to_html({.title = "<T>", .x_name = "<x>", .x = {1}, .lines = {{"<y>", {1}}}, .unit = "<u>"});
  EXPECT_EQ(count(html, "<T>") + count(html, "<x>") + count(html, "<y>") + count(html, "<u>"), 0);
  EXPECT_NE(html.find("&lt;y&gt;: 1&lt;u&gt;"), html.npos);
}

TEST(LineChart, HasGapsWhereNothingWasMeasured) {
  const auto html = chart_of({1, 2, absent, 2, 1, infinity, -infinity, 1});
  EXPECT_EQ(count(html, "<circle"), 5);
  EXPECT_EQ(count(html, "nan") + count(html, "inf"), 0);
  const auto line = html.substr(html.find("<g class=\"s0\">"));
  EXPECT_EQ(count(line.substr(0, line.find("/>")), "M"), 3);
  EXPECT_EQ(count(line, "h0\"/>"), 1) << "a lone value is a dot";
}

TEST(LineChart, IsEmptyWithoutValues) {
  EXPECT_EQ(chart_of({}), "");
  EXPECT_EQ(chart_of({absent, infinity}), "");
  EXPECT_EQ(to_html(LineChart{}), "");
}

TEST(LineChart, ShowsOnePoint) {
  const auto html = chart_of({5});
  EXPECT_NE(html.find("cx=\"305.0\" cy=\"12.0\""), html.npos) << html;
}

TEST(LineChart, IsLogarithmicOnlyIfWanted) {
  LineChart chart{.x = {1, 2}, .lines = {{"y", {1, 1000}}}, .logarithmic_if_wide = true};
  EXPECT_NE(to_html(chart).find(">10</text>"), std::string::npos);
  chart.lines[0].y = {0, 1000};
  EXPECT_EQ(to_html(chart).find(">10</text>"), std::string::npos);
  chart.lines[0].y = {1, 1000};
  chart.logarithmic_if_wide = false;
  EXPECT_EQ(to_html(chart).find(">10</text>"), std::string::npos);
}

TEST(LineChart, ThinsLongLinesToTheirEnvelope) {
  std::vector<double> y(100'000);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(static_cast<double>(i));
  y[54'321] = 10;  // a single outlier, which must stay
  const auto html = chart_of(y);
  EXPECT_LT(html.size(), 12'000u);
  EXPECT_EQ(count(html, "<circle"), 0);
  EXPECT_EQ(count(html.substr(html.find("<g class")), "L"), 2 * 300 - 1);
  EXPECT_EQ(count(html, " 12.0"), 2) << "the rule at the top and the outlier";
}

TEST(LineChart, SurvivesExtremeValues) {
  for (const auto& y : std::vector<std::vector<double>>{{1.7e308, -1.7e308},
                                                        {1e300, -1e300},
                                                        {5e-324, 0},
                                                        {1e-310, 1e-300},
                                                        {1e300, 1e-300},
                                                        {3.4e38, 1}}) {
    const auto html = chart_of(y);
    EXPECT_EQ(count(html, "nan") + count(html, "inf"), 0) << y[0];
  }
}

TEST(LineChart, RefusesLinesOfAnotherLength) {
  try {
    to_html({.x = {1, 2}, .lines = {{"loss", {1}}}});
    FAIL() << "a line that is too short was accepted";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "LineChart: expected 2 values, one for each x, in line loss, got 1");
  }
}
