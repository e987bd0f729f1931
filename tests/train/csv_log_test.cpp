#include <gtest/gtest.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <taut/train/csv_log.hpp>
#include <vector>

#include "../temporary_directory.hpp"

using namespace taut;
using namespace taut::train;

namespace {

const std::string header =
    "epoch,train_loss,train_accuracy,test_loss,test_accuracy,learning_rate,seconds,samples_per_second\n";

class CsvLogTest : public testing::Test {
 protected:
  std::string path() const { return folder_ / "run.csv"; }
  std::string contents() const { return test::file_contents(path()); }
  void put(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

  // The message of the `DataError` that opening in this mode ends in.
  std::string refusal(CsvMode mode) const {
    try {
      CsvLog log{path(), mode};
    } catch (const DataError& error) {
      EXPECT_EQ(error.path(), path());
      return error.what();
    }
    return "accepted";
  }

  const test::TemporaryDirectory folder_;
};

EpochResult epoch(int number) {
  return {.epoch = number,
          .train_loss = 0.1,
          .train_accuracy = 0.5,
          .test_loss = 0.25,
          .test_accuracy = 1.0,
          .learning_rate = 1e-3,
          .seconds = 12.5,
          .samples_per_second = 48000.0};
}

const std::string row_1 = "1,0.1,0.5,0.25,1,0.001,12.5,48000\n";
const std::string row_2 = "2,0.1,0.5,0.25,1,0.001,12.5,48000\n";

}  // namespace

TEST_F(CsvLogTest, WritesAHeaderAndARowAnEpoch) {
  CsvLog log{path()};
  log.on_epoch(epoch(1));
  log.on_epoch(epoch(2));
  EXPECT_EQ(contents(), header + row_1 + row_2);
}

TEST_F(CsvLogTest, HasEveryRowOnDiskBeforeItIsClosed) {
  CsvLog log{path()};
  EXPECT_EQ(contents(), header);
  log.on_epoch(epoch(1));
  EXPECT_EQ(contents(), header + row_1);
}

TEST_F(CsvLogTest, KeepsTheRowsOfAKilledRun) {
  EXPECT_EXIT(
      {
        CsvLog log{path()};
        log.on_epoch(epoch(1));
        std::raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(contents(), header + row_1);
}

TEST_F(CsvLogTest, ReplacesAnEarlierFile) {
  put("something else\n");
  CsvLog log{path()};
  EXPECT_EQ(contents(), header);
}

TEST_F(CsvLogTest, ContinuesARun) {
  { CsvLog(path()).on_epoch(epoch(1)); }
  { CsvLog(path(), CsvMode::append).on_epoch(epoch(2)); }
  EXPECT_EQ(contents(), header + row_1 + row_2);
}

TEST_F(CsvLogTest, ContinuesAFileThatIsMissingOrEmptyByAHeader) {
  { CsvLog log{path(), CsvMode::append}; }
  EXPECT_EQ(contents(), header);
  put("");
  { CsvLog log{path(), CsvMode::append}; }
  EXPECT_EQ(contents(), header);
}

TEST_F(CsvLogTest, RefusesToContinueOtherColumns) {
  for (const std::string text : {"epoch,loss\n1,0.5\n", "\n", "epoch",
                                 "no line end and much longer than the header is, "
                                 "so that only its beginning is read; no need to read it all, is there"}) {
    put(text);
    EXPECT_NE(refusal(CsvMode::append).find("the columns differ: expected epoch,train_loss"),
              std::string::npos);
    EXPECT_EQ(contents(), text);
  }
}

TEST_F(CsvLogTest, RefusesToContinueAHeaderThatGoesOn) {
  const std::string text = header.substr(0, header.size() - 1) + ",extra\n";
  put(text);
  EXPECT_NE(refusal(CsvMode::append).find("the columns differ"), std::string::npos);
}

TEST_F(CsvLogTest, RefusesToContinueARowCutShort) {
  put(header + row_1 + "2,0.1,0.");
  const std::string message = refusal(CsvMode::append);
  EXPECT_NE(message.find("cut short"), std::string::npos) << message;
  EXPECT_NE(message.find("(byte " + std::to_string(header.size() + row_1.size() + 8) + ")"),
            std::string::npos)
      << message;
  EXPECT_EQ(contents(), header + row_1 + "2,0.1,0.");
}

TEST_F(CsvLogTest, SaysWhatIsWrongWithAPath) {
  std::filesystem::create_directory(path());
  EXPECT_NE(refusal(CsvMode::create).find("cannot open the file for writing: Is a directory"),
            std::string::npos);
  EXPECT_NE(refusal(CsvMode::append).find("cannot read the file to continue it"), std::string::npos);
  std::filesystem::remove_all(folder_.path());
  EXPECT_NE(refusal(CsvMode::create).find("No such file or directory"), std::string::npos);
}

TEST(CsvLog, ReportsAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  try {
    CsvLog log{"/dev/full"};
    FAIL() << "a full disk was not noticed";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "/dev/full: csv log: cannot write a row: No space left on device");
  }
}

TEST_F(CsvLogTest, WritesNumbersThatReadBackExactly) {
  const std::vector<double> values{1.0 / 3.0, 0.1 + 0.2, 1e-300, 123456789.123456789, 5e-324};
  for (const double value : values)
    EXPECT_EQ(std::strtod(train::detail::csv_number(value).c_str(), nullptr), value);
}

TEST_F(CsvLogTest, MarksWhatWasNotMeasured) {
  CsvLog log{path()};
  log.on_epoch({.epoch = 3, .train_loss = std::numeric_limits<double>::infinity()});
  EXPECT_EQ(contents(), header + "3,inf,nan,nan,nan,nan,nan,nan\n");
  EXPECT_EQ(train::detail::csv_number(-not_measured), "nan");
}

TEST_F(CsvLogTest, IgnoresTheLocale) {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    if (std::setlocale(LC_ALL, name)) break;
  EXPECT_EQ(train::detail::csv_number(0.5), "0.5");
  EXPECT_EQ(train::detail::csv_number(1234567.5), "1234567.5");
  std::setlocale(LC_ALL, "C");
}
