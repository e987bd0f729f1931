// Traces written as JSON and read back by the JSON library's parser.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <taut/cpu/cpu.hpp>
#include <taut/interpret/profiled.hpp>
#include <taut/io/chrome_trace.hpp>

#include <fstream>
#include <iterator>
#include <map>
#include <thread>

using namespace taut;
using P = Profiled<CpuArray>;

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Writes the trace and reads it back.
rapidjson::Document written(const TraceRecording& trace) {
  const std::string path = testing::TempDir() + "chrome_trace_test.json";
  io::write_chrome_trace(trace, path);
  rapidjson::Document document;
  document.Parse(contents(path).c_str());
  std::remove(path.c_str());
  EXPECT_FALSE(document.HasParseError());
  return document;
}

/// The events of one kind.
std::vector<const rapidjson::Value*> events(const rapidjson::Document& document, std::string_view kind) {
  std::vector<const rapidjson::Value*> result;
  for (const auto& event : document["traceEvents"].GetArray())
    if (event["ph"].GetString() == kind) result.push_back(&event);
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
  EXPECT_STREQ(document["displayTimeUnit"].GetString(), "ms");
  const auto found = events(document, "X");
  ASSERT_EQ(found.size(), 2u);
  const auto& span = *found[0];
  const auto& event = *found[1];
  EXPECT_STREQ(span["name"].GetString(), "for\"ward\" \xC3\xA4");
  EXPECT_STREQ(span["cat"].GetString(), "span");
  EXPECT_STREQ(event["name"].GetString(), "matmul");
  EXPECT_STREQ(event["cat"].GetString(), "operator");
  EXPECT_STREQ(event["args"]["operands"].GetString(), "[2, 3] [2, 3]");
  EXPECT_EQ(event["args"]["flops"].GetInt64(), 24);
  EXPECT_EQ(event["args"]["bytes"].GetInt64(), 64);
  EXPECT_EQ(event["args"]["conversions"].GetInt64(), 0);
  EXPECT_EQ(event["tid"].GetInt(), span["tid"].GetInt());
  EXPECT_EQ(event["pid"].GetInt(), span["pid"].GetInt());
  const auto recorded = trace.events();
  EXPECT_NEAR(event["ts"].GetDouble(), 1e-3 * static_cast<double>(recorded[1].start), 1e-4);
  EXPECT_NEAR(event["dur"].GetDouble(), 1e-3 * static_cast<double>(recorded[1].duration), 1e-4);
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
  std::map<int, std::vector<double>> open;  // the ends of the events around, by thread
  std::size_t depth = 0;
  double last = 0;
  for (const auto* event : events(document, "X")) {
    const double start = (*event)["ts"].GetDouble(), stop = start + (*event)["dur"].GetDouble();
    EXPECT_GE(start, last);
    last = start;
    auto& around = open[(*event)["tid"].GetInt()];
    while (!around.empty() && around.back() < start + 1e-4) around.pop_back();
    EXPECT_TRUE(around.empty() || stop <= around.back() + 1e-4);
    around.push_back(stop);
    depth = std::max(depth, around.size());
  }
  EXPECT_EQ(depth, 3u);
  EXPECT_EQ(open.size(), 2u) << "two threads";
  const auto threads = events(document, "M");
  ASSERT_EQ(threads.size(), 2u);
  for (const auto* thread : threads) {
    EXPECT_STREQ((*thread)["name"].GetString(), "thread_name");
    const int number = (*thread)["tid"].GetInt();
    EXPECT_TRUE(open.contains(number));
    EXPECT_EQ((*thread)["args"]["name"].GetString(), "thread " + std::to_string(number));
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
  EXPECT_STREQ((*notes[0])["name"].GetString(), "3 later events dropped: the recording holds 2 at most");
}

TEST(ChromeTrace, IsWrittenInPieces) {
  TraceRecording trace;
  const P x = CpuArray::ones({4});
  for (int i = 0; i < 2000; ++i) exp(x);
  EXPECT_EQ(events(written(trace), "X").size(), 2000u);
}

TEST(ChromeTrace, CanBeEmpty) {
  const TraceRecording trace(0);
  EXPECT_TRUE(written(trace)["traceEvents"].Empty());
}

TEST(ChromeTrace, SaysWhyItCannotBeWritten) {
  const TraceRecording trace;
  const std::string path = testing::TempDir() + "no such directory/trace.json";
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
  const std::string path = testing::TempDir() + "chrome_trace_test_old.json";
  std::ofstream(path) << "old";
  TraceRecording trace;
  { const TraceSpan span("\xFF"); }
  EXPECT_THROW(io::write_chrome_trace(trace, path), DataError);
  EXPECT_EQ(contents(path), "old");
  std::remove(path.c_str());
}

}  // namespace
