// Traces written as JSON and read back by the JSON library's parser.
#include <gtest/gtest.h>
#include <rapidjson/reader.h>

#include <taut/cpu/cpu.hpp>
#include <taut/interpret/profiled.hpp>
#include <taut/io/chrome_trace.hpp>

#include <fstream>
#include <map>
#include <thread>

#include "../temporary_directory.hpp"

using namespace taut;
using P = Profiled<CpuArray>;

namespace {

/// A value of JSON: an object's members, an array's items, or a text or a number.
struct Json {
  std::map<std::string, Json> members;
  std::vector<Json> items;
  std::string text;
  double number = 0;

  const Json& operator[](const std::string& key) const { return members.at(key); }
};

/// Builds a value from what the parser finds.
class JsonBuilder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, JsonBuilder> {
 public:
  const Json& root() const { return root_; }

  bool Default() { return false; }  // null, true and false
  bool Int(int value) { return Double(value); }
  bool Uint(unsigned value) { return Double(value); }
  bool Int64(std::int64_t value) { return Double(static_cast<double>(value)); }
  bool Uint64(std::uint64_t value) { return Double(static_cast<double>(value)); }
  bool Double(double value) {
    place().number = value;
    return true;
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    place().text.assign(text, size);
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key_.assign(text, size);
    return !open_.back()->members.contains(key_);
  }
  bool StartObject() { return open(false); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool StartArray() { return open(true); }
  bool EndArray(rapidjson::SizeType) { return close(); }

 private:
  Json& place() {
    if (open_.empty()) return root_;
    return in_array_.back() ? open_.back()->items.emplace_back() : open_.back()->members[key_];
  }
  bool open(bool array) {
    open_.push_back(&place());
    in_array_.push_back(array);
    return true;
  }
  bool close() {
    open_.pop_back();
    in_array_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;
  std::vector<bool> in_array_;
  std::string key_;
};

/// Writes the trace and reads it back.
Json written(const TraceRecording& trace) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  io::write_chrome_trace(trace, path);
  const std::string text = test::file_contents(path);
  rapidjson::StringStream stream(text.c_str());
  JsonBuilder builder;
  const bool valid =
      !rapidjson::Reader().Parse<rapidjson::kParseValidateEncodingFlag>(stream, builder).IsError();
  EXPECT_TRUE(valid) << text;
  return builder.root();
}

/// The events of one kind.
std::vector<Json> events(const Json& document, std::string_view kind) {
  std::vector<Json> result;
  for (const auto& event : document["traceEvents"].items)
    if (event["ph"].text == kind) result.push_back(event);
  return result;
}

TEST(ChromeTrace, HasTheNamesTimesAndArguments) {
  TraceRecording trace;
  {
    const TraceSpan span("for\"ward\" \xC3\xA4");
    const P x = CpuArray::ones({2, 3});
    matmul(x, x, {.transpose_b = true});
  }
  trace.stop();
  const auto document = written(trace);
  EXPECT_EQ(document["displayTimeUnit"].text, "ms");
  const auto found = events(document, "X");
  ASSERT_EQ(found.size(), 2u);
  const auto& span = found[0];
  const auto& event = found[1];
  EXPECT_EQ(span["name"].text, "for\"ward\" \xC3\xA4");
  EXPECT_EQ(span["cat"].text, "span");
  EXPECT_EQ(event["name"].text, "matmul");
  EXPECT_EQ(event["cat"].text, "operator");
  EXPECT_EQ(event["args"]["operands"].text, "[2, 3] [2, 3]");
  EXPECT_EQ(event["args"]["flops"].number, 24);
  EXPECT_EQ(event["args"]["bytes"].number, 64);
  EXPECT_EQ(event["args"]["conversions"].number, 0);
  EXPECT_EQ(event["tid"].number, span["tid"].number);
  EXPECT_EQ(event["pid"].number, span["pid"].number);
  const auto recorded = trace.events();
  EXPECT_NEAR(event["ts"].number, 1e-3 * static_cast<double>(recorded[1].start), 1e-4);
  EXPECT_NEAR(event["dur"].number, 1e-3 * static_cast<double>(recorded[1].duration), 1e-4);
  EXPECT_TRUE(events(document, "i").empty());
}

TEST(ChromeTrace, NestsEventsOnEachThread) {
  const auto work = [](const char* name) {
    const TraceSpan outer(name);
    for (int i = 0; i < 20; ++i) {
      const TraceSpan inner("inner");
      const P x = CpuArray::ones({4});
      exp(x);
    }
  };
  TraceRecording trace;
  std::thread one(work, "one"), two(work, "two");
  one.join();
  two.join();
  const auto document = written(trace);
  std::map<double, std::vector<double>> open;  // the ends of the events around, by thread
  std::size_t depth = 0;
  double last = 0;
  for (const auto& event : events(document, "X")) {
    const double start = event["ts"].number, stop = start + event["dur"].number;
    EXPECT_GE(start, last);
    last = start;
    auto& around = open[event["tid"].number];
    while (!around.empty() && around.back() < start + 1e-4) around.pop_back();
    EXPECT_TRUE(around.empty() || stop <= around.back() + 1e-4);
    around.push_back(stop);
    depth = std::max(depth, around.size());
  }
  EXPECT_EQ(depth, 3u);
  EXPECT_EQ(open.size(), 2u) << "two threads";
  const auto threads = events(document, "M");
  ASSERT_EQ(threads.size(), 2u);
  for (const auto& thread : threads) {
    EXPECT_EQ(thread["name"].text, "thread_name");
    const double number = thread["tid"].number;
    EXPECT_TRUE(open.contains(number));
    EXPECT_EQ(thread["args"]["name"].text, "thread " + std::to_string(static_cast<int>(number)));
  }
}

TEST(ChromeTrace, TellsWhatWasDropped) {
  TraceRecording trace(2);
  const P x = CpuArray::ones({4});
  for (int i = 0; i < 5; ++i) exp(x);
  const auto document = written(trace);
  EXPECT_EQ(events(document, "X").size(), 2u);
  const auto notes = events(document, "i");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0]["name"].text, "3 later events dropped: the recording holds 2 at most");
}

TEST(ChromeTrace, IsWrittenInPieces) {
  TraceRecording trace;
  const P x = CpuArray::ones({4});
  for (int i = 0; i < 2000; ++i) exp(x);
  EXPECT_EQ(events(written(trace), "X").size(), 2000u);
}

TEST(ChromeTrace, CanBeEmpty) {
  const TraceRecording trace(0);
  EXPECT_TRUE(written(trace)["traceEvents"].items.empty());
}

TEST(ChromeTrace, SaysWhyItCannotBeWritten) {
  const TraceRecording trace;
  const test::TemporaryDirectory directory;
  const std::string path = directory / "no such directory/trace.json";
  try {
    io::write_chrome_trace(trace, path);
    FAIL() << "must throw";
  } catch (const DataError& error) {
    EXPECT_EQ(error.path(), path);
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos);
  }
  EXPECT_THROW(io::write_chrome_trace(trace, "/dev/full"), DataError);
}

TEST(ChromeTrace, LeavesAFileAsItWasIfItFails) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  std::ofstream(path) << "old";
  TraceRecording trace;
  { const TraceSpan span("\xFF"); }
  EXPECT_THROW(io::write_chrome_trace(trace, path), DataError);
  EXPECT_EQ(test::file_contents(path), "old");
}

}  // namespace
