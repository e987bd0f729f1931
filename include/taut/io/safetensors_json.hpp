#pragma once
// The JSON text of a safetensors file's header: parsing and writing it. Of Taut's headers only this one and
// chrome_trace.hpp include the JSON library.

#if !__has_include(<rapidjson/reader.h>)
#error "Taut reads and writes model files with RapidJSON: install it (Debian, Ubuntu: rapidjson-dev)."
#endif

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/shape.hpp"
#include "dtype.hpp"
#include "safetensors_header.hpp"

namespace taut::io::detail {

/// Receives the events of the JSON parser and accepts exactly the grammar of a header. Each event is legal
/// in few states; `fail` ends the parsing, so nesting is never deeper than a header's.
class HeaderHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, HeaderHandler> {
 public:
  explicit HeaderHandler(const rapidjson::MemoryStream& stream) : stream_(stream) {}

  Header take_header() { return std::move(header_); }

  /// Why an event was refused; empty if none was.
  const std::string& error() const { return error_; }

  bool Default() { return unexpected(); }  // null, true, false

  bool StartObject() {
    switch (state_) {
      case State::start:
        return enter(State::root);
      case State::tensor_start:
        return enter(State::tensor);
      case State::metadata_start:
        return enter(State::metadata);
      default:
        return unexpected();
    }
  }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view key(text, size);
    if (has_surrogate(key)) return fail("has a name that is not valid Unicode");
    switch (state_) {
      case State::root:
        return key == metadata_key ? start_metadata() : start_tensor(key);
      case State::metadata:
        key_ = key;
        return enter(State::metadata_value);
      default:
        return start_field(key);
    }
  }

  bool String(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view value(text, size);
    if (state_ == State::metadata_value) {
      if (has_surrogate(value)) return fail("has text that is not valid Unicode");
      if (!header_.metadata.emplace(key_, value).second) return fail("has " + printable(key_) + " twice");
      return enter(State::metadata);
    }
    if (state_ != State::dtype) return unexpected();
    for (const auto& row : dtypes) {
      if (row.name != value) continue;
      entry().dtype = row.dtype;
      return enter(State::tensor);
    }
    return fail("has the unknown or unsupported dtype " + printable(value));
  }

  bool StartArray() {
    switch (state_) {
      case State::shape_start:
        return enter(State::shape);
      case State::offsets_start:
        return enter(State::offsets);
      default:
        return unexpected();
    }
  }

  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    std::uint64_t value = 0;
    const auto [end, status] = std::from_chars(text, text + size, value);
    if (status != std::errc() || end != text + size) return unexpected();
    if (state_ == State::shape) {
      if (value > std::numeric_limits<std::int64_t>::max()) return fail("has an extent that is too large");
      if (entry().shape.rank() == max_rank) return fail("has more than 6 dimensions");
      entry().shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (state_ != State::offsets || offset_count_ == 2) return unexpected();
    (offset_count_++ == 0 ? entry().begin : entry().end) = value;
    return true;
  }

  bool EndArray(rapidjson::SizeType) {
    if (state_ == State::offsets && offset_count_ != 2) return unexpected();
    return enter(State::tensor);
  }

  bool EndObject(rapidjson::SizeType) {
    if (state_ != State::tensor) return enter(State::root);
    for (int i = 0; i < 3; ++i) {
      if (!field_seen_[i]) return fail("has no " + printable(fields[i]));
    }
    return enter(State::root);
  }

 private:
  /// What was read last, and so what may follow. `tensor`, `metadata` and `root` are inside the object.
  enum class State {
    start,
    root,
    tensor_start,
    tensor,
    dtype,
    shape_start,
    shape,
    offsets_start,
    offsets,
    metadata_start,
    metadata,
    metadata_value
  };

  static constexpr std::string_view fields[] = {"dtype", "shape", "data_offsets"};
  static constexpr State field_states[] = {State::dtype, State::shape_start, State::offsets_start};

  HeaderEntry& entry() { return header_.entries.back(); }

  bool enter(State state) {
    state_ = state;
    return true;
  }

  bool start_metadata() {
    state_ = State::metadata_start;
    if (std::exchange(metadata_seen_, true)) return fail("appears twice");
    return true;
  }

  bool start_tensor(std::string_view name) {
    header_.entries.emplace_back();
    entry().name = name;
    entry().position = position();
    offset_count_ = 0;
    for (bool& seen : field_seen_) seen = false;
    return enter(State::tensor_start);
  }

  bool start_field(std::string_view key) {
    for (int i = 0; i < 3; ++i) {
      if (key != fields[i]) continue;
      if (std::exchange(field_seen_[i], true)) return fail("has " + printable(key) + " twice");
      return enter(field_states[i]);
    }
    return fail("has the unknown field " + printable(key));
  }

  /// Refuses what the grammar does not have here.
  bool unexpected() {
    switch (state_) {
      case State::start:
        return fail("must be an object");
      case State::tensor_start:
        return fail("must be described by an object");
      case State::dtype:
        return fail("has a 'dtype' that is not a string");
      case State::shape_start:
      case State::shape:
        return fail("has a 'shape' that is not an array of non-negative 64-bit integers");
      case State::metadata_start:
        return fail("must be an object");
      case State::metadata_value:
        return fail("has a value that is not a string under " + printable(key_));
      default:
        return fail("has 'data_offsets' that are not an array of two non-negative 64-bit integers");
    }
  }

  bool fail(const std::string& message) {
    const bool in_metadata = state_ >= State::metadata_start,
               in_tensor = !in_metadata && state_ > State::root;
    error_ = in_tensor     ? "tensor " + printable(entry().name) + " "
             : in_metadata ? "'__metadata__' "
                           : "the header ";
    error_ += message;
    return false;
  }

  /// True for the bytes of a surrogate (a lone \uDC00, say), which the parser does not refuse everywhere.
  static bool has_surrogate(std::string_view text) {
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] == '\xED' && static_cast<unsigned char>(text[i + 1]) >= 0xA0) return true;
    }
    return false;
  }

  std::int64_t position() const { return 8 + static_cast<std::int64_t>(stream_.Tell()); }

  const rapidjson::MemoryStream& stream_;
  Header header_;
  State state_ = State::start;
  std::string key_, error_;
  bool metadata_seen_ = false, field_seen_[3] = {};
  int offset_count_ = 0;
};

/// Parses the JSON of a header. Throws a `DataError` at the position in the file where it stops being one.
inline Header parse_header_json(std::string_view json, const std::string& path) {
  using namespace rapidjson;
  if (!json.starts_with('{')) throw DataError(path, 8, "safetensors: the header does not start with '{'");
  // Numbers are taken as text, since all are integers; RapidJSON 1.1.0 also reads out of bounds when it
  // converts certain numbers with huge exponents.
  constexpr unsigned flags = kParseIterativeFlag | kParseValidateEncodingFlag | kParseNumbersAsStringsFlag;
  MemoryStream stream(json.data(), json.size());
  HeaderHandler handler(stream);
  Reader reader;
  const ParseResult result = reader.Parse<flags>(stream, handler);
  if (result.IsError()) {
    const auto position = 8 + static_cast<std::int64_t>(result.Offset());
    if (!handler.error().empty()) throw DataError(path, position, "safetensors: " + handler.error());
    throw DataError(
        path, position,
        std::string("safetensors: invalid JSON in the header: ") + GetParseError_En(result.Code()));
  }
  // The parser takes a zero byte for the end of the text.
  if (stream.Tell() != json.size()) {
    throw DataError(path, 8 + static_cast<std::int64_t>(stream.Tell()),
                    "safetensors: the header has a zero byte behind its JSON object");
  }
  return handler.take_header();
}

/// Parses and checks a header: the entries come back in the order of their data. `data_size` is the number
/// of bytes that the file has behind the header.
inline Header parse_header(std::string_view json, std::uint64_t data_size, const std::string& path) {
  Header header = parse_header_json(json, path);
  check_layout(header.entries, data_size, path);
  return header;
}

/// The start of a file whose data are these tensors in this order: the size, then the JSON, padded with
/// spaces so that the data begin at a multiple of 8. `begin` and `end` are taken as they are.
inline std::string write_header(const std::vector<HeaderEntry>& entries, const Metadata& metadata,
                                const std::string& path) {
  using namespace rapidjson;
  using Json = Writer<StringBuffer, UTF8<>, UTF8<>, CrtAllocator, kWriteValidateEncodingFlag>;
  StringBuffer buffer;
  Json json(buffer);
  const auto check = [&](bool valid, std::string_view text) {
    if (!valid) throw DataError(path, -1, "write_safetensors: " + printable(text) + " is not valid UTF-8");
  };
  const auto key = [&](std::string_view text) {
    check(json.Key(text.data(), static_cast<SizeType>(text.size())), text);
  };
  const auto string = [&](std::string_view text) {
    check(json.String(text.data(), static_cast<SizeType>(text.size())), text);
  };
  const auto numbers = [&](std::string_view name, std::span<const std::int64_t> values) {
    key(name);
    json.StartArray();
    for (const auto value : values) json.Int64(value);
    json.EndArray();
  };
  json.StartObject();
  if (!metadata.empty()) {
    key(metadata_key);
    json.StartObject();
    for (const auto& [name, value] : metadata) {
      key(name);
      string(value);
    }
    json.EndObject();
  }
  for (const auto& entry : entries) {
    key(entry.name);
    json.StartObject();
    key("dtype");
    string(info(entry.dtype).name);
    numbers("shape", {entry.shape.begin(), entry.shape.end()});
    const std::int64_t offsets[] = {static_cast<std::int64_t>(entry.begin),
                                    static_cast<std::int64_t>(entry.end)};
    numbers("data_offsets", offsets);
    json.EndObject();
  }
  json.EndObject();

  std::string text(buffer.GetString(), buffer.GetSize());
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > max_header_size) {
    throw DataError(path, -1, "write_safetensors: the names and metadata are too long for the format");
  }
  std::string size(8, '\0');
  for (int i = 0; i < 8; ++i) size[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return size + text;
}

}  // namespace taut::io::detail
