// The profile as a table, and the least time that operators could take.
#include <gtest/gtest.h>

#include <taut/interpret/profile_report.hpp>
#include <taut/interpret/trace.hpp>

#include <array>

using namespace taut;

namespace {

/// Books a call that took so long.
void book(std::string_view name, const Shape& operand, std::int64_t flops, std::int64_t bytes,
          std::int64_t microseconds, std::int64_t conversions = 0) {
  const auto begin = detail::TraceClock::now();
  detail::book({name, {&operand, 1}, flops, bytes}, begin, begin + std::chrono::microseconds(microseconds),
               conversions);
}

constexpr Peaks peaks{.flops_per_second = 1e9, .bytes_per_second = 1e8};

/// One operator limited once by operations (2 ms at the least) and once by memory (3 ms), and another one.
void book_some() {
  reset_profile();
  book("first", {20, 30}, 2'000'000, 1'000, 4'000);
  book("first", {5}, 1'000, 300'000, 4'000, 2);
  book("second_one", {}, 500'000, 20'000, 2'000);
}

TEST(FloorSeconds, IsTheLargerOfBothLimits) {
  book_some();
  for (const auto& entry : profile_entries_by_shape()) {
    const double expected = entry.name == "second_one" ? 5e-4 : entry.operands[0] == Shape{5} ? 3e-3 : 2e-3;
    EXPECT_DOUBLE_EQ(floor_seconds(entry, peaks), expected) << entry.name;
    EXPECT_EQ(floor_seconds(entry, {}), 0);
    EXPECT_DOUBLE_EQ(floor_seconds(entry, {.flops_per_second = 1e9}),
                     1e-9 * static_cast<double>(entry.flops));
    EXPECT_DOUBLE_EQ(floor_seconds(entry, {.bytes_per_second = 1e8}),
                     1e-8 * static_cast<double>(entry.bytes));
  }
}

TEST(FloorSeconds, GrowsWithTheCalls) {
  reset_profile();
  for (int i = 0; i < 3; ++i) book("first", {20, 30}, 2'000'000, 1'000, 4'000);
  const auto entries = profile_entries_by_shape();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_DOUBLE_EQ(floor_seconds(entries[0], peaks), 6e-3);
}

TEST(ProfileReport, IsATableOfTheOperators) {
  book_some();
  EXPECT_EQ(profile_report(),
            "operator      calls    total ms      mean us   share  GFLOP/s    GB/s  conversions\n"
            "first             2       8.000     4000.000   80.0%     0.25    0.04            2\n"
            "second_one        1       2.000     2000.000   20.0%     0.25    0.01            0\n"
            "total             3      10.000     3333.333  100.0%     0.25    0.03            2\n");
}

TEST(ProfileReport, AddsUpTheFloorsOfTheCalls) {
  book_some();
  EXPECT_EQ(profile_report(peaks),
            "operator      calls    total ms      mean us   share  GFLOP/s    GB/s    floor ms  reached  "
            "conversions\n"
            "first             2       8.000     4000.000   80.0%     0.25    0.04       5.000    62.5%      "
            "      2\n"
            "second_one        1       2.000     2000.000   20.0%     0.25    0.01       0.500    25.0%      "
            "      0\n"
            "total             3      10.000     3333.333  100.0%     0.25    0.03       5.500    55.0%      "
            "      2\n");
}

TEST(ProfileReport, HasARowForEachShape) {
  book_some();
  book("first", {5}, 1'000, 300'000, 1'000);
  EXPECT_EQ(profile_report_by_shape(),
            "operator      calls    total ms      mean us   share  GFLOP/s    GB/s  conversions\n"
            "first             2       5.000     2500.000   45.5%     0.00    0.12            2  [5]\n"
            "first             1       4.000     4000.000   36.4%     0.50    0.00            0  [20, 30]\n"
            "second_one        1       2.000     2000.000   18.2%     0.25    0.01            0  []\n"
            "total             4      11.000     2750.000  100.0%     0.23    0.06            2\n");
}

TEST(ProfileReport, ExplainsWhatIsFasterThanItsFloor) {
  reset_profile();
  book("conv2d", {1}, 3'000'000, 0, 1'000);
  const auto report = profile_report(peaks);
  EXPECT_NE(report.find("300.0%"), std::string::npos) << report;
  EXPECT_NE(report.find("Winograd"), std::string::npos) << report;
  EXPECT_EQ(profile_report().find("Winograd"), std::string::npos);
}

TEST(ProfileReport, HasNoShareOfWhatCostsNothing) {
  reset_profile();
  book("reshape", {1}, 0, 0, 1'000);
  const auto report = profile_report(peaks);
  EXPECT_NE(report.find("0.000        -"), std::string::npos) << report;
}

TEST(ProfileReport, CanBeEmpty) {
  reset_profile();
  EXPECT_EQ(profile_report(peaks).find("nan"), std::string::npos);
}

TEST(ProfileReport, RefusesNegativePeaks) {
  EXPECT_THROW(profile_report({.flops_per_second = -1}), Error);
  EXPECT_THROW(profile_report_by_shape({.bytes_per_second = -1}), Error);
}

}  // namespace
