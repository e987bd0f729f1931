#pragma once
// Traces as files that viewers open, such as Perfetto (ui.perfetto.dev) and Chrome (chrome://tracing).

#if !__has_include(<rapidjson/writer.h>)
#error "Taut writes traces with RapidJSON: install it (Debian, Ubuntu: rapidjson-dev)."
#endif

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "../interpret/trace.hpp"
#include "file.hpp"

namespace taut::io {

namespace detail {

/// Writes the events of a trace as JSON, in pieces, so that only a small part of the text is in memory.
class ChromeTraceWriter {
 public:
  explicit ChromeTraceWriter(const std::string& path) : path_(path), file_(path), json_(buffer_) {}

  void write(const TraceRecording& trace) {
    const auto events = trace.events();
    json_.StartObject();
    key("displayTimeUnit"), string("ms");
    key("traceEvents");
    json_.StartArray();
    name_threads(events);
    for (const auto& event : events) write_event(event);
    if (const auto dropped = trace.dropped(); dropped > 0)
      write_dropped(dropped, trace.limit(), events.empty() ? 0 : events.back().start);
    json_.EndArray();
    json_.EndObject();
    flush();
    file_.commit();
  }

 private:
  using Json = rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                                 rapidjson::CrtAllocator, rapidjson::kWriteValidateEncodingFlag>;
  static constexpr std::size_t piece = 1 << 16;

  void key(std::string_view text) { json_.Key(text.data(), static_cast<rapidjson::SizeType>(text.size())); }
  void string(std::string_view text) {
    if (!json_.String(text.data(), static_cast<rapidjson::SizeType>(text.size())))
      throw DataError(path_, -1, "write_chrome_trace: the name of an event is not valid UTF-8");
  }

  /// What every event starts with. The kinds: "X" lasts, "i" is an instant, "M" says something about a
  /// thread.
  void start_event(std::string_view kind, std::string_view name, int thread) {
    json_.StartObject();
    key("ph"), string(kind);
    key("name"), string(name);
    key("pid"), json_.Int(1);
    key("tid"), json_.Int(thread);
  }
  void end_event() {
    json_.EndObject();
    if (buffer_.GetSize() >= piece) flush();
  }
  /// The format's times are in microseconds.
  void time(std::string_view name, std::int64_t nanoseconds) {
    key(name), json_.Double(static_cast<double>(nanoseconds) / 1e3);
  }

  void write_event(const TraceEvent& event) {
    start_event("X", event.name, event.thread);
    key("cat"), string(event.span ? "span" : "operator");
    time("ts", event.start);
    time("dur", event.duration);
    if (!event.span) {
      key("args"), json_.StartObject();
      key("operands"), string(shapes(event.operands));
      key("flops"), json_.Int64(event.flops);
      key("bytes"), json_.Int64(event.bytes);
      key("conversions"), json_.Int64(event.conversions);
      json_.EndObject();
    }
    end_event();
  }

  void name_threads(std::span<const TraceEvent> events) {
    std::set<int> threads;
    for (const auto& event : events) threads.insert(event.thread);
    for (const int thread : threads) {
      start_event("M", "thread_name", thread);
      key("args"), json_.StartObject();
      key("name"), string("thread " + std::to_string(thread));
      json_.EndObject();
      end_event();
    }
  }

  void write_dropped(std::int64_t dropped, std::size_t limit, std::int64_t last) {
    start_event("i",
                std::to_string(dropped) + " later events dropped: the recording holds " +
                    std::to_string(limit) + " at most",
                1);
    key("s"), string("g");
    time("ts", last);
    end_event();
  }

  static std::string shapes(std::span<const Shape> operands) {
    std::string text;
    for (const Shape& shape : operands) text += (text.empty() ? "" : " ") + to_string(shape);
    return text;
  }

  void flush() {
    file_.write(std::as_bytes(std::span(buffer_.GetString(), buffer_.GetSize())));
    buffer_.Clear();
  }

  std::string path_;
  ReplacementFile file_;
  rapidjson::StringBuffer buffer_;
  Json json_;
};

}  // namespace detail

/// Writes what has been recorded so far to the file `path`, in the JSON of the Trace Event Format (Google,
/// "Trace Event Format"): open it at ui.perfetto.dev. The arguments of an operator are its operands' shapes,
/// its floating-point operations, the bytes that it has to move at least, and conversions of layouts. If
/// events were dropped for the recording's limit, the last event says how many. A file that was there is
/// replaced as a whole. Throws `DataError` if it cannot be written, or if the name of a span is not valid
/// UTF-8.
inline void write_chrome_trace(const TraceRecording& trace, const std::string& path) {
  detail::ChromeTraceWriter(path).write(trace);
}

}  // namespace taut::io
