#include <gtest/gtest.h>
#include <sys/resource.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <taut/train/tensorboard.hpp>
#include <vector>

#include "../temporary_directory.hpp"

using namespace taut;
using namespace taut::train;

namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The data of a file's records. Throws if a frame is not right.
std::vector<std::string> records(std::string_view file) {
  const auto check = [](bool right) {
    if (!right) throw std::runtime_error("not a file of records");
  };
  std::vector<std::string> result;
  while (!file.empty()) {
    check(file.size() >= 16);
    const auto size = little_endian(file.substr(0, 8));
    check(file.size() >= size + 16);
    check(little_endian(file.substr(8, 4)) == train::detail::masked_crc32c(file.substr(0, 8)));
    check(little_endian(file.substr(12 + size, 4)) == train::detail::masked_crc32c(file.substr(12, size)));
    result.emplace_back(file.substr(12, size));
    file.remove_prefix(size + 16);
  }
  return result;
}

// A field of a message: a number's bits, or bytes.
struct Field {
  int number = 0;
  std::uint64_t bits = 0;
  std::string bytes{};
};

std::uint64_t take_varint(std::string_view& message) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(message.at(0));
    message.remove_prefix(1);
    value |= std::uint64_t{byte & 127u} << shift;
    if (byte < 128) return value;
  }
}

std::vector<Field> fields(std::string_view message) {
  std::vector<Field> result;
  while (!message.empty()) {
    const auto key = take_varint(message);
    Field field{.number = static_cast<int>(key >> 3)};
    if ((key & 7) == 0) {
      field.bits = take_varint(message);
    } else {
      const std::size_t size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : take_varint(message);
      field.bytes = message.substr(0, size);
      if ((key & 7) != 2) field.bits = little_endian(field.bytes);
      message.remove_prefix(size);
    }
    result.push_back(field);
  }
  return result;
}

struct Event {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version{};
  std::map<std::string, float> scalars{};
};

Event parse(std::string_view record) {
  Event event;
  for (const auto& field : fields(record)) {
    if (field.number == 1) event.wall_time = std::bit_cast<double>(field.bits);
    if (field.number == 2) event.step = static_cast<std::int64_t>(field.bits);
    if (field.number == 3) event.version = field.bytes;
    if (field.number != 5) continue;
    for (const auto& value : fields(field.bytes)) {
      const auto parts = fields(value.bytes);
      EXPECT_EQ(value.number, 1);
      event.scalars[parts.at(0).bytes] = std::bit_cast<float>(static_cast<std::uint32_t>(parts.at(1).bits));
    }
  }
  return event;
}

class TensorBoardLogTest : public testing::Test {
 protected:
  static std::vector<Event> events(const TensorBoardLog& log) {
    std::vector<Event> result;
    for (const auto& record : records(test::file_contents(log.path()))) result.push_back(parse(record));
    return result;
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

}  // namespace

TEST(TfRecord, ChecksumsAreCastagnolis) {
  using train::detail::crc32c;
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  static_assert(crc32c("a") != crc32c("b"));
}

TEST(TfRecord, FramesData) {
  const auto record = train::detail::tf_record("abc");
  EXPECT_EQ(record.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
  EXPECT_EQ(record.size(), 8u + 4 + 3 + 4);
}

TEST(ProtoMessage, EncodesAsTheSpecificationsExamples) {
  using train::detail::ProtoMessage;
  EXPECT_EQ(ProtoMessage().integer(1, 150).str(), "\x08\x96\x01");
  EXPECT_EQ(ProtoMessage().bytes(2, "testing").str(), "\x12\x07testing");
  EXPECT_EQ(ProtoMessage().integer(1, -2).str(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(ProtoMessage().integer(16, 0).str(), std::string("\x80\x01\x00", 3));
  EXPECT_EQ(ProtoMessage().float32(2, 1.0f).str(), std::string("\x15\x00\x00\x80\x3f", 5));
}

TEST_F(TensorBoardLogTest, BeginsWithTheVersionInAFileOfItsOwn) {
  TensorBoardLog log{folder_.path() / "new" / "deep"};
  EXPECT_TRUE(log.path().starts_with((folder_.path() / "new" / "deep" / "events.out.tfevents.").string()));
  const auto read = events(log);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].version, "brain.Event:2");
  EXPECT_NEAR(read[0].wall_time, static_cast<double>(std::time(nullptr)), 60);
}

TEST_F(TensorBoardLogTest, HasEveryEpochOnDiskBeforeItIsClosed) {
  TensorBoardLog log{folder_.path()};
  log.on_epoch(epoch(1));
  log.on_epoch(epoch(300));
  const auto read = events(log);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[1].step, 1);
  EXPECT_EQ(read[2].step, 300);
  const std::map<std::string, float> expected{{"loss/train", 0.1f},     {"loss/test", 0.25f},
                                              {"accuracy/train", 0.5f}, {"accuracy/test", 1.0f},
                                              {"learning_rate", 1e-3f}, {"samples_per_second", 48000.0f}};
  EXPECT_EQ(read[1].scalars, expected);
}

TEST_F(TensorBoardLogTest, LeavesOutWhatWasNotMeasured) {
  TensorBoardLog log{folder_.path()};
  log.on_epoch({.epoch = 2, .train_loss = std::numeric_limits<double>::infinity()});
  const auto read = events(log);
  ASSERT_EQ(read[1].scalars.size(), 1u);
  EXPECT_TRUE(std::isinf(read[1].scalars.at("loss/train")));
}

TEST_F(TensorBoardLogTest, AddsTheProgramsOwnScalars) {
  TensorBoardLog log{folder_.path()};
  log.add_scalar("norm/weights & <more>", 2.5, 5'000'000'000);
  const auto read = events(log);
  EXPECT_EQ(read[1].step, 5'000'000'000);
  EXPECT_EQ(read[1].scalars.at("norm/weights & <more>"), 2.5f);
}

TEST_F(TensorBoardLogTest, NeverWritesToAnotherLogsFile) {
  TensorBoardLog first{folder_.path()}, second{folder_.path()}, third{folder_.path()};
  EXPECT_NE(first.path(), second.path());
  EXPECT_NE(second.path(), third.path());
  second.on_epoch(epoch(1));
  EXPECT_EQ(events(first).size(), 1u);
  EXPECT_EQ(events(second).size(), 2u);
}

TEST_F(TensorBoardLogTest, WritesLongRuns) {
  TensorBoardLog log{folder_.path()};
  for (int i = 1; i <= 2000; ++i) log.on_epoch(epoch(i));
  const auto read = events(log);
  ASSERT_EQ(read.size(), 2001u);
  EXPECT_EQ(read.back().step, 2000);
}

TEST_F(TensorBoardLogTest, SaysWhatIsWrongWithADirectory) {
  const auto file = folder_ / "file";
  std::ofstream(file) << "text";
  try {
    TensorBoardLog log{file};
    FAIL() << "a file was taken for a directory";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("tensorboard log: cannot create the file: Not a directory"),
              std::string::npos)
        << error.what();
  }
}

// In a process of its own, since the limit stays.
TEST_F(TensorBoardLogTest, KeepsWholeRecordsWhenTheDiskIsFull) {
  const auto run = [&] {
    TensorBoardLog log{folder_.path()};
    log.on_epoch(epoch(1));
    const auto before = test::file_contents(log.path());
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{before.size() + 20, before.size() + 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      log.on_epoch(epoch(2));
    } catch (const DataError& error) {
      const bool told = std::string(error.what()).find("the file is as it was") != std::string::npos;
      std::exit(told && test::file_contents(log.path()) == before ? 0 : 1);
    }
    std::exit(2);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}
