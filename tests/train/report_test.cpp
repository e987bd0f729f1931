#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <taut/train/report.hpp>
#include <vector>

#include "../temporary_directory.hpp"

using namespace taut;
using namespace taut::train;

namespace {

using Labels = std::vector<std::int64_t>;

int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// What is wrong with the nesting of a page's elements; empty if nothing is.
std::string nesting_error(std::string_view page) {
  std::vector<std::string> open;
  for (auto at = page.find('<'); at != page.npos; at = page.find('<', at + 1)) {
    const auto end = page.find('>', at);
    if (end == page.npos) return "a tag without an end";
    const auto tag = page.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" >", 1)));
    if (tag.ends_with('/') || name == "!DOCTYPE" || name == "meta" || name == "img" || name == "br") continue;
    if (!name.starts_with('/'))
      open.push_back(name);
    else if (open.empty() || "/" + open.back() != name)
      return "unexpected " + name;
    else
      open.pop_back();
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

class HtmlReportTest : public testing::Test {
 protected:
  std::string path() const { return folder_ / "report.html"; }

  // The page, which must be whole and need nothing else.
  std::string page() const {
    const std::string text = test::file_contents(path());
    EXPECT_EQ(nesting_error(text), "");
    for (const char* outside : {"http:", "https:", "<script", "<link", "url(", "@import"})
      EXPECT_EQ(count(text, outside), 0) << outside;
    return text;
  }

  const test::TemporaryDirectory folder_;
};

EpochResult epoch(int number) {
  return {.epoch = number,
          .train_loss = 0.123456,
          .train_accuracy = 0.5,
          .test_loss = 0.25,
          .test_accuracy = 0.001 * number,
          .learning_rate = 1e-3,
          .seconds = 12.5,
          .samples_per_second = 48000.0};
}

ReportImage image(const Shape& shape) {
  return {.shape = shape,
          .pixels = std::vector<std::uint8_t>(static_cast<std::size_t>(shape.size()), 7),
          .label = "cat",
          .predicted = "dog",
          .label_probability = 0.015,
          .predicted_probability = 0.9};
}

}  // namespace

TEST(Html, EscapesMarkup) {
  EXPECT_EQ(train::detail::escape_html("<a href=\"x\" & 'y'>"),
            "&lt;a href=&quot;x&quot; &amp; &#39;y&#39;&gt;");
  EXPECT_EQ(train::detail::escape_html("größer"), "größer");
}

TEST(Html, EncodesBase64) {
  const auto base64 = [](std::string_view text) {
    return train::detail::base64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  // RFC 4648, section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(ReportImage, BecomesABmpFile) {
  // Two rows of one pixel: red above (1, 2, 3).
  const auto file = train::detail::to_bmp({2, 1, {255, 1, 0, 2, 0, 3}});
  const std::vector<std::uint8_t> expected{
      'B', 'M', 62, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0,                                   //
      40,  0,   0,  0, 1, 0, 0, 0, 2, 0, 0,  0, 1, 0, 24, 0, 0, 0, 0, 0, 8, 0, 0,   0,  //
      0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0,  0, 3, 2, 1, 0, 0, 0, 255, 0};
  EXPECT_EQ(file, expected);
}

TEST(ReportImage, IsShrunkToMeans) {
  const train::detail::Rgb image{
      3, 3, {0, 2, 9, 4, 6, 9, 5, 5, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  const auto small = train::detail::shrink(image, 2);
  EXPECT_EQ(small.height, 2u);
  EXPECT_EQ(small.width, 2u);
  EXPECT_EQ(small.planes, (std::vector<std::uint8_t>{3, 9, 5, 7, 0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(train::detail::shrink_to({1, 1000, std::vector<std::uint8_t>(3000)}, 192).width, 167u);
}

TEST(ReportImage, TakesPixelsFromValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(to_pixels(std::vector<float>{0, 1, 0.5f, -1, 2, nan}),
            (std::vector<std::uint8_t>{0, 255, 128, 0, 255, 0}));
  EXPECT_EQ(to_pixels(std::vector<float>{-1, 0, 1}, -1, 1), (std::vector<std::uint8_t>{0, 128, 255}));
}

TEST_F(HtmlReportTest, IsThereBeforeTheFirstEpoch) {
  HtmlReport report{path(),
                    {.title = "LeNet", .settings = {{"--lr", "0.1"}}, .model = "conv1 [6]\n6 parameters\n"}};
  const auto text = page();
  EXPECT_TRUE(text.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(text.find("<title>LeNet</title>"), text.npos);
  EXPECT_NE(text.find("No epoch has ended yet"), text.npos);
  EXPECT_NE(text.find("<th>--lr</th><td class=\"text\">0.1</td>"), text.npos);
  EXPECT_NE(text.find("conv1 [6]\n6 parameters"), text.npos);
  for (const char* absent : {"<svg", "Confusion", "images</h2>", "Epochs"}) EXPECT_EQ(count(text, absent), 0);
}

TEST_F(HtmlReportTest, ShowsEachEpochAsItEnds) {
  HtmlReport report{path()};
  report.on_epoch(epoch(1));
  EXPECT_EQ(count(page(), "<svg"), 4);
  EXPECT_EQ(count(page(), "<tr><td class=\"n\">"), 1);
  report.on_epoch(epoch(2));
  const auto text = page();
  EXPECT_EQ(count(text, "<svg"), 4);
  EXPECT_EQ(count(text, "<tr><td class=\"n\">"), 2);
  for (const char* value : {"0.1235", "50.00%", "0.25<", "0.20%", "0.001<", "12.5 s", "48.0k", "0:25"})
    EXPECT_NE(text.find(value), text.npos) << value;
  EXPECT_NE(text.find("epoch 2, test: 0.2%"), text.npos);
  EXPECT_NE(text.find("<b>0.20%</b><span>best test accuracy, epoch 2"), text.npos);
}

TEST_F(HtmlReportTest, LeavesOutWhatWasNeverMeasured) {
  HtmlReport report{path()};
  report.on_epoch({.epoch = 1, .train_loss = 2.5});
  report.on_epoch({.epoch = 2, .train_loss = not_measured});
  report.on_epoch({.epoch = 3, .train_loss = std::numeric_limits<double>::infinity()});
  const auto text = page();
  EXPECT_EQ(count(text, "<svg"), 1);
  EXPECT_EQ(count(text, "<circle"), 1);
  EXPECT_EQ(count(text, "test"), 0);
  EXPECT_EQ(count(text, "accuracy"), 0);
  EXPECT_EQ(count(text, "<td class=\"n\">nan</td>"), 1) << "a loss that diverged shows";
  EXPECT_EQ(count(text, "<td class=\"n\">inf</td>"), 1);
}

TEST_F(HtmlReportTest, SurvivesARunWithoutAnyMeasurement) {
  HtmlReport report{path()};
  report.on_epoch({.epoch = 1});
  EXPECT_EQ(count(page(), "<svg"), 0);
}

TEST_F(HtmlReportTest, EscapesAllText) {
  const std::string bad = "<i>\"&'";
  HtmlReport report{path(), {.title = bad, .settings = {{bad, bad}}, .model = bad}};
  report.on_epoch(epoch(1));
  report.set_confusion({bad, bad}, Labels{0, 1}, Labels{1, 1});
  auto shown = image({1, 2, 2});
  shown.label = shown.predicted = bad;
  report.set_images(std::span(&shown, 1));
  report.write();
  EXPECT_EQ(count(page(), "<i>"), 0);
  EXPECT_EQ(count(page(), "\"&'"), 0);
  EXPECT_GE(count(page(), "&lt;i&gt;&quot;&amp;&#39;"), 10);
}

TEST_F(HtmlReportTest, IsOfBoundedSize) {
  History history;
  for (int i = 1; i < 50'000; ++i) history.push_back(epoch(i));
  HtmlReport report{path(), {.earlier = history}};
  report.on_epoch(epoch(50'000));
  const auto text = page();
  EXPECT_LT(text.size(), 200'000u);
  EXPECT_NE(text.find("One in 250 epochs, and the last"), text.npos);
  EXPECT_EQ(count(text, "<tr><td class=\"n\">"), 201);
  EXPECT_NE(text.find("<td class=\"n\">50000</td>"), text.npos);
}

TEST_F(HtmlReportTest, ContinuesARunFromBeforeItsEnd) {
  HtmlReport report{path(), {.earlier = {epoch(1), epoch(2), epoch(3)}}};
  EXPECT_EQ(count(page(), "<tr><td class=\"n\">"), 3);
  report.on_epoch(epoch(2));
  EXPECT_EQ(count(page(), "<tr><td class=\"n\">"), 2);
}

TEST_F(HtmlReportTest, ShowsWhichClassIsTakenForWhich) {
  HtmlReport report{path()};
  report.set_confusion({"cat", "dog", "eel"}, Labels{0, 0, 0, 0, 1, 1}, Labels{0, 1, 1, 1, 1, 1});
  report.write();
  const auto text = page();
  EXPECT_NE(text.find("title=\"cat taken for dog: 3\">3</td>"), text.npos);
  EXPECT_NE(text.find("<td class=\"miss deep\" style=\"--a:0.87\""), text.npos);
  EXPECT_NE(text.find("<td class=\"hit\" style=\"--a:0.50\" title=\"cat taken for cat: 1\""), text.npos);
  EXPECT_NE(text.find("<td>cat</td><td>dog</td><td class=\"n\">3</td><td class=\"n\">75.0%</td>"), text.npos);
  EXPECT_NE(text.find("<td class=\"sum\">25.0%</td>"), text.npos);
  EXPECT_NE(text.find("<td class=\"sum\"></td>"), text.npos) << "of a class without samples";
}

TEST_F(HtmlReportTest, ShowsManyClassesInLessDetail) {
  HtmlReport report{path()};
  report.set_confusion(std::vector<std::string>(100, "c"), Labels{0, 99}, Labels{0, 98});
  report.write();
  EXPECT_EQ(count(page(), "class=\"matrix dense\""), 1);
  EXPECT_EQ(count(page(), "<td"), 100 * 100 + 4);
  report.set_confusion(std::vector<std::string>(100'000, "c"), Labels{0, 99'999}, Labels{0, 98});
  report.write();
  EXPECT_EQ(count(page(), "class=\"matrix"), 0);
  EXPECT_EQ(count(page(), "<td"), 4);
}

TEST_F(HtmlReportTest, SaysThatNothingWasMistaken) {
  HtmlReport report{path()};
  report.set_confusion({"a", "b"}, Labels{0, 1}, Labels{0, 1});
  report.write();
  EXPECT_NE(page().find("No sample was taken for another class"), std::string::npos);
  report.set_confusion({"a", "b"}, {}, {});
  report.write();
  EXPECT_EQ(page().find("Confusion matrix"), std::string::npos);
}

TEST_F(HtmlReportTest, RefusesPredictionsThatDoNotFit) {
  HtmlReport report{path()};
  EXPECT_THROW(report.set_confusion({"a"}, Labels{0, 0}, Labels{0}), ShapeError);
  EXPECT_THROW(report.set_confusion({"a"}, Labels{1}, Labels{0}), Error);
  EXPECT_THROW(report.set_confusion({"a"}, Labels{0}, Labels{-1}), Error);
}

TEST_F(HtmlReportTest, ShowsImages) {
  HtmlReport report{path()};
  const std::vector<ReportImage> images{image({3, 32, 32}), image({1, 28, 28}), image({3, 500, 300})};
  report.set_images(images);
  report.write();
  const auto text = page();
  EXPECT_EQ(count(text, "src=\"data:image/bmp;base64,Qk"), 3);
  EXPECT_EQ(count(text, "<b>cat</b> (1.5%)<br><span class=\"wrong\">dog</span> (90.0%)"), 3);
  EXPECT_LT(text.size(), 200'000u) << "the large image is shrunk";
}

TEST_F(HtmlReportTest, RefusesWhatIsNoImage) {
  HtmlReport report{path()};
  for (auto bad : {image({2, 4, 4}), image({4, 4}), image({3, 0, 4})})
    EXPECT_THROW(report.set_images(std::span(&bad, 1)), ShapeError);
  auto short_one = image({3, 4, 4});
  short_one.pixels.pop_back();
  EXPECT_THROW(report.set_images(std::span(&short_one, 1)), ShapeError);
}

TEST_F(HtmlReportTest, SaysAtOnceThatItCannotBeWritten) {
  EXPECT_THROW(HtmlReport(folder_ / "missing/report.html"), DataError);
  EXPECT_THROW(HtmlReport{folder_}, DataError);
}

// In a process of its own, since the limit stays.
TEST_F(HtmlReportTest, KeepsTheOldPageWhenTheDiskIsFull) {
  HtmlReport report{path()};
  report.on_epoch(epoch(1));
  const auto before = page();
  const auto run = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{before.size() / 2, before.size() / 2};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      report.on_epoch(epoch(2));
    } catch (const DataError&) {
      std::exit(0);
    }
    std::exit(1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(page(), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1)
      << "a temporary file stayed";
}
