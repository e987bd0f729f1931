#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <taut/train/progress.hpp>
#include <vector>

using namespace taut::train;

namespace {

double now = 0.0;  // of the fake clock

constexpr double infinity = std::numeric_limits<double>::infinity();

ProgressOptions on_terminal(int width = 80) {
  now = 0.0;
  return {.terminal = {.interactive = true, .width = width}, .clock = [] { return now; }};
}

ProgressOptions on_file(double line_seconds = 30.0) {
  now = 0.0;
  return {.line_seconds = line_seconds, .clock = [] { return now; }};
}

BatchEvent batch(std::int64_t number, int epoch = 1, Phase phase = Phase::train) {
  return {.phase = phase,
          .epoch = epoch,
          .epochs = 10,
          .batch = number,
          .batches = 100,
          .samples = 64,
          .loss = 0.5,
          .accuracy = 0.75};
}

// Text after the last carriage return: what a terminal shows in the current line.
std::string last_drawing(const std::ostringstream& out) {
  const std::string text = out.str();
  return text.substr(text.rfind('\r') + 1);
}

std::size_t drawings(const std::ostringstream& out) {
  std::size_t count = 0;
  for (const char c : out.str()) count += c == '\r';
  return count;
}

// What the lines of a terminal show at the end, with blanks at their ends cut off.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines{""};
  std::size_t column = 0;
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (c == '\r') {
      column = 0;
    } else {
      auto& line = lines.back();
      if (line.size() <= column) line.resize(column + 1, ' ');
      line[column++] = c;
    }
  }
  for (auto& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

const EpochResult result{.epoch = 3,
                         .train_loss = 0.12345,
                         .train_accuracy = 0.9612,
                         .test_loss = 0.13,
                         .test_accuracy = 0.958,
                         .learning_rate = 0.1,
                         .seconds = 1.17,
                         .samples_per_second = 51234.0};

}  // namespace

TEST(Summary, ShowsAllThatWasMeasured) {
  EXPECT_EQ(summary(result, 10),
            "epoch  3/10  loss 0.1235  accuracy 96.12%  test loss 0.13  test accuracy 95.80%  1.2 s  51.2k "
            "samples/s");
}

TEST(Summary, LeavesOutWhatWasNot) {
  EXPECT_EQ(summary({.epoch = 3, .train_loss = 2.5}), "epoch 3  loss 2.5");
  EXPECT_EQ(summary({.epoch = 3, .train_loss = 2.5, .test_loss = 3}), "epoch 3  loss 2.5  test loss 3");
}

TEST(Summary, ShowsDivergedLosses) {
  EXPECT_EQ(summary({.epoch = 1, .train_loss = -not_measured, .test_accuracy = 0.1}),
            "epoch 1  loss nan  test loss nan  test accuracy 10.00%");
}

TEST(ProgressText, FormatsMagnitudes) {
  EXPECT_EQ(detail::magnitude_text(0.52), "0.5");
  EXPECT_EQ(detail::magnitude_text(950), "950");
  EXPECT_EQ(detail::magnitude_text(51234), "51.2k");
  EXPECT_EQ(detail::magnitude_text(1.26e6), "1.3M");
  EXPECT_EQ(detail::magnitude_text(3e12), "3000.0G");
  EXPECT_EQ(detail::magnitude_text(infinity), "infG");
}

TEST(ProgressText, FormatsDurations) {
  EXPECT_EQ(detail::duration_text(0), "0:00");
  EXPECT_EQ(detail::duration_text(7.4), "0:07");
  EXPECT_EQ(detail::duration_text(59.9), "1:00");
  EXPECT_EQ(detail::duration_text(754), "12:34");
  EXPECT_EQ(detail::duration_text(3723), "1:02:03");
  EXPECT_EQ(detail::duration_text(-1), "0:00");
  EXPECT_EQ(detail::duration_text(infinity).substr(0, 6), "277777");
}

TEST(ProgressText, FormatsExtremeLosses) {
  EXPECT_EQ(detail::loss_text(1.23456e-7), "1.235e-07");
  EXPECT_EQ(detail::loss_text(infinity), "inf");
  EXPECT_EQ(detail::number(std::numeric_limits<double>::max(), 2).size(), 312u);
}

TEST(ProgressBar, WritesOneLineAnEpochToAFile) {
  std::ostringstream out;
  ProgressBar bar{out, on_file()};
  for (int i = 1; i <= 100; ++i, now += 0.1) bar.on_batch(batch(i, 3));
  bar.on_epoch(result);
  EXPECT_EQ(out.str(), summary(result, 10) + "\n");
}

TEST(ProgressBar, AddsLinesToAFileInALongEpoch) {
  std::ostringstream out;
  ProgressBar bar{out, on_file(30.0)};
  for (int i = 1; i <= 70; ++i, now += 1.0) bar.on_batch(batch(i, 3));
  EXPECT_EQ(out.str(),
            "epoch  3/10  batch 31/100  loss 0.5  accuracy 75.00%  eta 1:09  64/s\n"
            "epoch  3/10  batch 61/100  loss 0.5  accuracy 75.00%  eta 0:39  64/s\n");
}

TEST(ProgressBar, CanLeaveOutLinesWithinAnEpoch) {
  std::ostringstream out;
  ProgressBar bar{out, on_file(infinity)};
  for (int i = 1; i <= 100; ++i, now += 1e6) bar.on_batch(batch(i));
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressBar, IsPlainOnAStreamItDoesNotKnow) {
  std::ostringstream out;
  {
    ProgressBar bar{out};
    bar.on_batch(batch(1));
    EXPECT_EQ(out.str(), "");
    bar.on_epoch(result);
  }
  EXPECT_EQ(out.str(), summary(result, 10) + "\n");
}

TEST(ProgressBar, DrawsOverOneLineOnATerminal) {
  std::ostringstream out;
  ProgressBar bar{out, on_terminal()};
  bar.on_batch(batch(1));
  EXPECT_EQ(out.str(), "\repoch  1/10 [..............................]  1%  loss 0.5  accuracy 75.00%");
  now = 2.0;
  bar.on_batch(batch(50));
  EXPECT_EQ(last_drawing(out),
            "epoch  1/10 [########.........]  50%  loss 0.5  accuracy 75.00%  eta 0:02  32/s");
  EXPECT_EQ(out.str().find('\n'), std::string::npos);
}

TEST(ProgressBar, LeavesOnlyTheSummariesOnATerminal) {
  std::ostringstream out;
  {
    ProgressBar bar{out, on_terminal(70)};
    for (int epoch = 1; epoch <= 2; ++epoch) {
      for (int i = 1; i <= 100; ++i, now += 0.2) bar.on_batch(batch(i, epoch));
      bar.on_batch(batch(1, epoch, Phase::test));
      bar.on_epoch({.epoch = epoch, .train_loss = 0.5});
    }
  }
  EXPECT_EQ(screen(out.str()),
            (std::vector<std::string>{"epoch  1/10  loss 0.5", "epoch  2/10  loss 0.5", ""}));
}

TEST(ProgressBar, EndsAnUnfinishedLine) {
  std::ostringstream out;
  {
    ProgressBar bar{out, on_terminal()}, unused{out, on_terminal()};
    bar.on_batch(batch(1));
  }
  EXPECT_EQ(screen(out.str()).size(), 2u);
  EXPECT_EQ(out.str().back(), '\n');
}

TEST(ProgressBar, DrawsNoMoreOftenThanAsked) {
  std::ostringstream out;
  auto options = on_terminal();
  options.redraw_seconds = 0.5;
  ProgressBar bar{out, options};
  for (int i = 1; i <= 100; ++i, now += 0.0625) bar.on_batch(batch(i));  // 6.25 s in all
  EXPECT_EQ(drawings(out), 13u);
}

TEST(ProgressBar, TellsTheTestPassAndStartsItAfresh) {
  std::ostringstream out;
  auto options = on_terminal();
  ProgressBar bar{out, options};
  auto worse = batch(100);
  worse.loss = 100.0;
  bar.on_batch(worse);
  bar.on_batch(batch(1, 1, Phase::test));
  EXPECT_EQ(last_drawing(out).substr(0, 17), "epoch  1/10 test ");
  EXPECT_NE(last_drawing(out).find("loss 0.5 "), std::string::npos);
}

TEST(ProgressBar, StartsAfreshAfterAnEpochsEnd) {
  std::ostringstream out;
  ProgressBar bar{out, on_terminal()};
  auto worse = batch(1);
  worse.loss = 100.0;
  bar.on_batch(worse);
  bar.on_epoch(result);
  bar.on_batch(batch(2));
  EXPECT_NE(last_drawing(out).find("loss 0.5 "), std::string::npos) << last_drawing(out);
}

TEST(ProgressBar, ShowsTheMeanOverThePass) {
  std::ostringstream out;
  ProgressBar bar{out, on_terminal()};
  auto first = batch(1);
  first.samples = 192;
  first.loss = 1.0;
  first.accuracy = 0.0;
  bar.on_batch(first);
  now = 1.0;
  bar.on_batch(batch(2));
  EXPECT_NE(last_drawing(out).find("loss 0.875  accuracy 18.75%"), std::string::npos) << last_drawing(out);
}

TEST(ProgressBar, LeavesOutAnAccuracyThatIsNotMeasured) {
  std::ostringstream out;
  ProgressBar bar{out, on_terminal()};
  auto event = batch(1);
  event.accuracy = not_measured;
  bar.on_batch(event);
  EXPECT_EQ(out.str().find("accuracy"), std::string::npos);
}

TEST(ProgressBar, DoesWithoutTheNumberOfBatches) {
  std::ostringstream out;
  ProgressBar bar{out, on_terminal()};
  auto event = batch(7);
  event.batches = 0;
  bar.on_batch(event);
  EXPECT_EQ(last_drawing(out), "epoch  1/10  batch 7  loss 0.5  accuracy 75.00%");
}

TEST(ProgressBar, FitsEveryWidth) {
  for (int width = 0; width <= 200; ++width) {
    std::ostringstream out;
    ProgressBar bar{out, on_terminal(width)};
    bar.on_batch(batch(1));
    now = 1.0;
    bar.on_batch(batch(100));
    const auto text = last_drawing(out);
    EXPECT_LE(text.find_last_not_of(' ') + 1, static_cast<std::size_t>(std::max(width - 1, 1))) << width;
  }
}

TEST(ProgressBar, DrawsBlocksInUtf8AndColourWhereWanted) {
  std::ostringstream out;
  auto options = on_terminal(60);
  options.terminal.utf8 = options.terminal.color = true;
  ProgressBar bar{out, options};
  bar.on_batch(batch(50));
  EXPECT_NE(out.str().find("[\x1b[32m\u2588\u2588\u2588"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("\u2588\u2591"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("\u2591\x1b[0m]"), std::string::npos) << out.str();
}

TEST(ProgressBar, IsPureAsciiOtherwise) {
  std::ostringstream out;
  ProgressBar bar{out, on_terminal()};
  bar.on_batch(batch(50));
  for (const char c : out.str()) EXPECT_TRUE(c == '\r' || (c >= ' ' && c <= '~'));
}

TEST(ProgressBar, SurvivesAStreamThatFails) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit | std::ios::failbit);
  {
    ProgressBar bar{out, on_terminal()};
    EXPECT_THROW(out.setstate(std::ios::badbit), std::ios_base::failure);
    EXPECT_NO_THROW(bar.on_batch(batch(1)));
    EXPECT_NO_THROW(bar.on_epoch(result));
    EXPECT_NO_THROW(bar.on_batch(batch(2)));
  }
}

TEST(ProgressBar, IgnoresTheStreamsFormatting) {
  std::ostringstream out;
  out.width(500);
  out.fill('*');
  ProgressBar bar{out, on_file()};
  bar.on_epoch({.epoch = 1, .train_loss = 1});
  EXPECT_EQ(out.str(), "epoch 1  loss 1\n");
}
