// Reading and writing safetensors files, against files of the format's reference implementation and against
// damaged ones.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <taut/io/safetensors.hpp>
#include <vector>

#include "../temporary_directory.hpp"

namespace {

using taut::DataError;
using taut::Shape;
using taut::io::DType;
using taut::io::Metadata;
using taut::io::SafetensorsFile;
using taut::io::TensorView;
using taut::io::write_safetensors;
using taut::test::file_contents;
using taut::test::TemporaryDirectory;

namespace fs = std::filesystem;

constexpr float inf = std::numeric_limits<float>::infinity();

std::string fixture(const std::string& name) {
  return (fs::path(__FILE__).parent_path().parent_path() / "fixtures" / "safetensors" / name).string();
}

/// A view of `values`, which must outlive it.
template <class T> TensorView view(std::string name, Shape shape, std::vector<T>& values) {
  return {std::move(name), taut::io::dtype_of<T>, shape, taut::io::little_endian_bytes(std::span(values))};
}

/// The bytes of a file with this header and as many bytes of data.
std::string file_bytes(const std::string& json, std::size_t data_size = 0) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> (8 * i));
  return bytes + json + std::string(data_size, '\1');
}

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "model");
}

/// What a file is refused with.
std::string refusal(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const DataError& error) {
    EXPECT_EQ(error.path(), "model");
    EXPECT_LE(error.offset(), static_cast<std::int64_t>(bytes.size()));
    return error.what();
  }
  return "accepted";
}

/// The same of a header.
std::string header_refusal(const std::string& json, std::size_t data_size = 0) {
  return refusal(file_bytes(json, data_size));
}

::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

/// A directory of the test's own, removed at its end.
class Safetensors : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "model.safetensors") const { return directory_ / name; }

  int file_count() const {
    return static_cast<int>(
        std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()));
  }

  /// What writing one tensor to `path` is refused with.
  static std::string write_refusal(const std::string& path, const TensorView& tensor) {
    try {
      write_safetensors(path, std::span(&tensor, 1));
    } catch (const DataError& error) {
      EXPECT_EQ(error.path(), path);
      return error.what();
    }
    return "accepted";
  }

  const TemporaryDirectory directory_;
};

// Reading what the reference implementation wrote

TEST(SafetensorsReference, EveryElementTypeIsRead) {
  const auto file = SafetensorsFile::read(fixture("every_dtype.safetensors"));
  EXPECT_EQ(file.tensors().size(), 15u);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"grüße", "π"}}));
  const auto floats = [&](const char* name) { return file.find(name)->values<float>(); };
  const auto doubles = [&](const char* name) { return file.find(name)->values<double>(); };
  EXPECT_EQ(doubles("f64")[0], 0.1);
  EXPECT_EQ(doubles("f64")[1], -1e300);
  EXPECT_TRUE(std::isnan(doubles("f64")[2]));
  EXPECT_EQ(file.find("f32")->shape, (Shape{2, 3}));
  EXPECT_EQ(floats("f32"), (std::vector{0.5f, -1.25f, 3e38f, inf, -inf, -0.0f}));
  EXPECT_TRUE(std::signbit(floats("f32")[5]));
  const auto halves = floats("f16");
  EXPECT_EQ((std::vector(halves.begin(), halves.begin() + 4)), (std::vector{1.0f, -65504.0f, 0x1p-24f, inf}));
  EXPECT_TRUE(std::isnan(halves[4]));
  EXPECT_EQ(halves[5], 0x1p-14f);
  EXPECT_EQ(floats("bf16")[1], -2.5f);
  EXPECT_EQ(floats("bf16")[2], inf);
  EXPECT_TRUE(std::isnan(floats("bf16")[3]));
  EXPECT_EQ(doubles("i64"), (std::vector{-0x1p63, 0x1p53}));
  EXPECT_EQ(floats("i32"), (std::vector{-0x1p31f, 0x1p24f}));
  EXPECT_EQ(floats("i16"), std::vector{-32768.0f});
  EXPECT_EQ(floats("i8"), std::vector{-128.0f});
  EXPECT_EQ(floats("u64"), std::vector{0x1p64f});
  EXPECT_EQ(doubles("u32"), std::vector{4294967295.0});
  EXPECT_EQ(floats("u16"), std::vector{65535.0f});
  EXPECT_EQ(floats("u8"), (std::vector{0.0f, 7.0f, 255.0f}));
  EXPECT_EQ(floats("bool"), (std::vector{1.0f, 0.0f}));
  EXPECT_EQ(file.find("scalar")->shape, Shape{});
  EXPECT_EQ(floats("scalar"), std::vector{42.0f});
  EXPECT_EQ(file.find("empty")->shape, (Shape{0, 3}));
  EXPECT_TRUE(floats("empty").empty());
  EXPECT_EQ(file.find("absent"), nullptr);
}

TEST_F(Safetensors, IsWrittenByteForByteAsTheReferenceDoes) {
  std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7}, c = {8};
  const TensorView tensors[] = {view("a", {2, 2}, a), view("b.0.weight", {1, 3}, b), view("c", {}, c)};
  write_safetensors(path(), tensors, {{"step", "12"}});
  EXPECT_EQ(file_contents(path()), file_contents(fixture("one_dtype.safetensors")));
}

// Round trips

TEST_F(Safetensors, EveryTensorComesBack) {
  const auto original = SafetensorsFile::read(fixture("every_dtype.safetensors"));
  write_safetensors(path(), original.tensors(), original.metadata());
  const auto copy = SafetensorsFile::read(path());
  ASSERT_EQ(copy.tensors().size(), original.tensors().size());
  for (const auto& tensor : original.tensors()) {
    const TensorView* const found = copy.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_TRUE(
        std::equal(found->bytes.begin(), found->bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
  EXPECT_EQ(copy.metadata(), original.metadata());
}

TEST_F(Safetensors, DataAreAlignedAndKeepTheGivenOrder) {
  std::vector<std::uint8_t> small = {1};
  std::vector<double> wide = {2};
  std::vector<float> z = {3}, a = {4};
  const TensorView tensors[] = {view("small", {1}, small), view("z", {1}, z), view("a", {1}, a),
                                view("wide", {1}, wide)};
  write_safetensors(path(), tensors);
  const auto file = SafetensorsFile::read(path());
  std::string names;
  for (const auto& tensor : file.tensors()) names += tensor.name + " ";
  EXPECT_EQ(names, "wide z a small ");
  const auto bytes = file_contents(path());
  EXPECT_EQ(static_cast<unsigned char>(bytes[0]) % 8, 0);
  EXPECT_EQ(file.find("a")->values<float>(), std::vector{4.0f});
}

TEST_F(Safetensors, NoTensorsAtAllAreAFile) {
  write_safetensors(path(), {});
  EXPECT_TRUE(SafetensorsFile::read(path()).tensors().empty());
  EXPECT_EQ(file_contents(path()).size(), 16u);
}

TEST_F(Safetensors, AnyUnicodeIsAName) {
  std::vector<float> value = {1};
  const std::string names[] = {"", "größe", "a\"b\\c\n", std::string("nul\0inside", 10), "\xF0\x9F\x98\x80"};
  for (const auto& name : names) {
    const auto tensor = view(name, {}, value);
    write_safetensors(path(), std::span(&tensor, 1));
    EXPECT_NE(SafetensorsFile::read(path()).find(name), nullptr) << name;
  }
}

TEST_F(Safetensors, CopiesOutliveTheFirst) {
  std::vector<float> value = {1, 2};
  const auto tensor = view("a", {2}, value);
  write_safetensors(path(), std::span(&tensor, 1));
  auto first = std::make_unique<SafetensorsFile>(SafetensorsFile::read(path()));
  const SafetensorsFile copy = *first;
  first.reset();
  EXPECT_EQ(copy.find("a")->values<float>(), value);
}

// Damaged files

TEST(SafetensorsDamage, HeaderSize) {
  EXPECT_TRUE(contains(refusal(""), "truncated"));
  EXPECT_TRUE(contains(refusal("1234567"), "model (byte 7): the file is truncated"));
  EXPECT_TRUE(
      contains(refusal(std::string("\x09\0\0\0\0\0\0\0{}      ", 16)), "does not fit in a file of 16"));
  EXPECT_TRUE(contains(refusal(std::string(16, '\xFF')), "18446744073709551615 bytes exceeds"));
  EXPECT_TRUE(contains(refusal(std::string("\x01\xE1\xF5\x05\0\0\0\0", 8)), "100000001 bytes exceeds"));
  EXPECT_TRUE(contains(refusal(std::string("\0\xE1\xF5\x05\0\0\0\0", 8)), "100000000 bytes does not fit"));
  EXPECT_EQ(header_refusal("{}"), "accepted");
}

TEST(SafetensorsDamage, EveryTruncationIsRefused) {
  const std::string whole = file_contents(fixture("every_dtype.safetensors"));
  EXPECT_EQ(refusal(whole), "accepted");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
  }
  EXPECT_TRUE(contains(refusal(whole.substr(0, whole.size() - 1)), "truncated"));
  EXPECT_TRUE(contains(refusal(whole + "x"), "fill 118 bytes, but the file has 119"));
}

TEST(SafetensorsDamage, Json) {
  EXPECT_TRUE(contains(header_refusal(""), "does not start with '{'"));
  EXPECT_TRUE(contains(header_refusal(" {}"), "does not start with '{'"));
  EXPECT_TRUE(contains(header_refusal("{"), "invalid JSON"));
  EXPECT_TRUE(contains(header_refusal("{]"), "model (byte 9): safetensors: invalid JSON in the header: "));
  EXPECT_TRUE(contains(header_refusal("{} x"), "invalid JSON"));
  EXPECT_TRUE(contains(header_refusal("{}{}"), "invalid JSON"));
  EXPECT_TRUE(contains(header_refusal(std::string("{}\0x", 4)), "zero byte"));
  EXPECT_TRUE(contains(header_refusal(std::string("{}\0", 3)), "zero byte"));
  EXPECT_TRUE(contains(header_refusal("{\"a\x01\":{}}"), "invalid JSON"));
  EXPECT_TRUE(contains(header_refusal("{\"a\xFF\":{}}"), "invalid JSON"));
  EXPECT_TRUE(contains(header_refusal("{\"\xC0\x80\":{}}"), "invalid JSON"));
  EXPECT_TRUE(contains(header_refusal("{\"\\uD800\":{}}"), "invalid JSON"));
  EXPECT_NE(header_refusal("{\"\\uDC00\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
            "accepted");
  EXPECT_NE(header_refusal("{\"__metadata__\":{\"a\":\"\\uDFFF\"}}"), "accepted");
  EXPECT_EQ(header_refusal("{} \n\t  "), "accepted");
}

TEST(SafetensorsDamage, DeepNestingDoesNotOverflowTheStack) {
  const int depth = 300'000;
  const std::string arrays(depth, '[');
  std::string objects = "{";
  for (int i = 0; i < depth; ++i) objects += "\"a\":{";
  EXPECT_TRUE(contains(header_refusal("{\"a\":" + arrays), "must be described by an object"));
  EXPECT_TRUE(contains(header_refusal("{\"a\":{\"dtype\":" + arrays), "'dtype' that is not a string"));
  EXPECT_TRUE(contains(header_refusal("{\"a\":{\"shape\":" + arrays), "'shape' that is not"));
  EXPECT_TRUE(contains(header_refusal("{\"__metadata__\":{\"a\":" + arrays), "not a string under 'a'"));
  EXPECT_TRUE(contains(header_refusal(objects), "unknown field 'a'"));
}

TEST(SafetensorsDamage, Types) {
  const auto field = [](const std::string& text) { return header_refusal("{\"w\":{" + text + "}}", 4); };
  const std::string good = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  EXPECT_EQ(field(good), "accepted");
  EXPECT_TRUE(contains(header_refusal(R"({"w":1})"), "tensor 'w' must be described by an object"));
  EXPECT_TRUE(contains(header_refusal(R"({"w":null})"), "tensor 'w' must be described by an object"));
  EXPECT_TRUE(contains(field(""), "tensor 'w' has no 'dtype'"));
  EXPECT_TRUE(contains(field(R"("dtype":"F32","data_offsets":[0,4])"), "tensor 'w' has no 'shape'"));
  EXPECT_TRUE(contains(field(R"("dtype":"F32","shape":[1])"), "tensor 'w' has no 'data_offsets'"));
  EXPECT_TRUE(contains(field(good + R"(,"stride":[1])"), "unknown field 'stride'"));
  EXPECT_TRUE(contains(field(good + R"(,"shape":[1])"), "has 'shape' twice"));
  EXPECT_TRUE(contains(field(R"("dtype":32)"), "'dtype' that is not a string"));
  EXPECT_TRUE(contains(field(R"("dtype":"F33")"), "unknown or unsupported dtype 'F33'"));
  EXPECT_TRUE(contains(field(R"("dtype":"f32")"), "unknown or unsupported dtype 'f32'"));
  EXPECT_TRUE(contains(field(R"("shape":"[1]")"), "'shape' that is not an array of non-negative"));
  EXPECT_TRUE(contains(field(R"("shape":{})"), "'shape' that is not an array of non-negative"));
  for (const char* extent : {"-1", "1.0", "1e0", "\"1\"", "true", "null", "[1]", "{}", "18446744073709551616",
                             "0.0000000001e-2147483639", "-0"}) {
    EXPECT_TRUE(
        contains(field(std::string("\"shape\":[") + extent + "]"), "'shape' that is not an array of "));
  }
  EXPECT_TRUE(contains(field(R"("shape":[9223372036854775808])"), "extent that is too large"));
  EXPECT_TRUE(contains(field(R"("shape":[1,1,1,1,1,1,1])"), "more than 6 dimensions"));
  EXPECT_EQ(field(R"("dtype":"F32","shape":[1,1,1,1,1,1],"data_offsets":[0,4])"), "accepted");
  for (const char* offsets :
       {"4", "[]", "[0]", "[0,4,4]", "[0,-4]", "[0,4.0]", "[0,\"4\"]", "{}", "[[0,4]]"}) {
    EXPECT_TRUE(contains(field(std::string(R"("dtype":"F32","shape":[1],"data_offsets":)") + offsets),
                         "'data_offsets' that are not an array of two"));
  }
}

TEST(SafetensorsDamage, MetadataIsAMapOfStrings) {
  EXPECT_EQ(header_refusal(R"({"__metadata__":{}})"), "accepted");
  EXPECT_EQ(parse(file_bytes(R"({"__metadata__":{"a":"b","dtype":"F32"}})")).metadata(),
            (Metadata{{"a", "b"}, {"dtype", "F32"}}));
  EXPECT_TRUE(contains(header_refusal(R"({"__metadata__":[]})"), "'__metadata__' must be an object"));
  EXPECT_TRUE(contains(header_refusal(R"({"__metadata__":{"a":1}})"), "not a string under 'a'"));
  EXPECT_TRUE(contains(header_refusal(R"({"__metadata__":{"a":{}}})"), "not a string under 'a'"));
  EXPECT_TRUE(contains(header_refusal(R"({"__metadata__":{"a":"b","a":"b"}})"), "has 'a' twice"));
  EXPECT_TRUE(contains(header_refusal(R"({"__metadata__":{},"__metadata__":{}})"), "appears twice"));
}

/// A header of tensors a, b, … of bytes with these shapes and offsets.
std::string header(const std::vector<std::pair<std::string, std::string>>& tensors) {
  std::string json = "{";
  char name = 'a';
  for (const auto& [shape, offsets] : tensors) {
    json += json.size() > 1 ? "," : "";
    json += std::string("\"") + name++ + R"(":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":)" +
            offsets + "}";
  }
  return json + "}";
}

TEST(SafetensorsDamage, Offsets) {
  EXPECT_EQ(header_refusal(header({{"[4]", "[0,4]"}, {"[2]", "[4,6]"}}), 6), "accepted");
  EXPECT_EQ(header_refusal(header({{"[2]", "[4,6]"}, {"[4]", "[0,4]"}}), 6), "accepted");
  EXPECT_TRUE(contains(header_refusal(header({{"[4]", "[4,0]"}}), 4), "reversed data_offsets: bytes 4 to 0"));
  EXPECT_TRUE(
      contains(header_refusal(header({{"[5]", "[0,5]"}}), 4), "the file has only 4: it is truncated"));
  EXPECT_TRUE(contains(header_refusal(header({{"[4]", "[18446744073709551612,18446744073709551615]"}}), 4),
                       "the file has only 4"));
  EXPECT_TRUE(contains(header_refusal(header({{"[3]", "[0,4]"}}), 4),
                       "type U8 and shape [3] needs 3 bytes, but has bytes 0 to 4"));
  EXPECT_TRUE(contains(header_refusal(header({{"[4]", "[0,4]"}, {"[3]", "[3,6]"}}), 6), "'b' overlaps"));
  EXPECT_TRUE(contains(header_refusal(header({{"[4]", "[0,4]"}, {"[4]", "[0,4]"}}), 4), "'b' overlaps"));
  EXPECT_TRUE(contains(header_refusal(header({{"[4]", "[0,4]"}, {"[2]", "[5,7]"}}), 7),
                       "'b' follows a gap in the data: it begins at byte 5 instead of 4"));
  EXPECT_TRUE(contains(header_refusal(header({{"[2]", "[1,3]"}}), 3), "'a' follows a gap"));
  EXPECT_TRUE(contains(header_refusal(header({{"[2]", "[0,2]"}}), 3), "fill 2 bytes, but the file has 3"));
  EXPECT_TRUE(contains(header_refusal("{}", 3), "fill 0 bytes, but the file has 3"));
}

TEST(SafetensorsDamage, EmptyTensorsMayShareAPlaceButNotLieInside) {
  EXPECT_EQ(
      header_refusal(header({{"[0]", "[0,0]"}, {"[4]", "[0,4]"}, {"[2,0]", "[4,4]"}, {"[0]", "[4,4]"}}), 4),
      "accepted");
  EXPECT_TRUE(contains(header_refusal(header({{"[4]", "[0,4]"}, {"[0]", "[2,2]"}}), 4), "'b' overlaps"));
}

TEST(SafetensorsDamage, OverflowingShapes) {
  for (const char* shape : {"[4294967296,4294967296]", "[9223372036854775807,2]", "[0,9223372036854775807,2]",
                            "[9223372036854775807,9223372036854775807,0]", "[3037000500,3037000500]"}) {
    EXPECT_TRUE(contains(header_refusal(header({{shape, "[0,0]"}})), "has a shape that is too large"))
        << shape;
  }
  EXPECT_TRUE(
      contains(header_refusal(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})"),
               "too large"));
}

TEST(SafetensorsDamage, DuplicateNames) {
  const std::string tensor = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_TRUE(contains(header_refusal("{\"x\":" + tensor + ",\"y\":" + tensor + ",\"x\":" + tensor + "}"),
                       "two tensors are called 'x'"));
  EXPECT_TRUE(contains(header_refusal("{\"x\":" + tensor + ",\"\\u0078\":" + tensor + "}"),
                       "two tensors are called 'x'"));
}

TEST(SafetensorsDamage, NamesInMessagesAreShortAndPrintable) {
  const std::string escape = header_refusal(R"({"\u001b[2Jé\u0000'":1})");
  EXPECT_TRUE(contains(escape, R"(tensor '\x1b[2J\xc3\xa9\x00'')"));
  EXPECT_LT(header_refusal("{\"" + std::string(1'000'000, 'x') + "\":1}").size(), 300u);
}

TEST_F(Safetensors, UnreadableFilesSayWhy) {
  const auto reason = [](const std::string& path) -> std::string {
    try {
      SafetensorsFile::read(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_TRUE(contains(reason(path("absent")), path("absent") + ": cannot open: No such file or directory"));
  EXPECT_TRUE(contains(reason(directory_), "not a regular file"));
  EXPECT_TRUE(contains(reason("/dev/zero"), "not a regular file"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(reason(path("pipe")), "not a regular file"));
  std::ofstream(path("short")) << "1234";
  EXPECT_TRUE(contains(reason(path("short")), "(byte 4): the file is truncated"));
  std::ofstream(path("cut"), std::ios::binary) << file_bytes(header({{"[4]", "[0,4]"}}), 3);
  EXPECT_TRUE(contains(reason(path("cut")), "the file has only 3"));
}

// Writing

TEST_F(Safetensors, TensorsThatCannotBeStoredAreRefused) {
  std::vector<float> values = {1, 2};
  EXPECT_TRUE(contains(write_refusal(path(), view("w", {3}, values)),
                       "tensor 'w' of type F32 and shape [3] comes with 8 bytes"));
  EXPECT_TRUE(contains(write_refusal(path(), view("w", {-1, 2}, values)), "do not fit"));
  EXPECT_TRUE(
      contains(write_refusal(path(), view("__metadata__", {2}, values)), "can be called '__metadata__'"));
  EXPECT_TRUE(contains(write_refusal(path(), view("\xFF", {2}, values)), R"('\xff' is not valid UTF-8)"));
  const TensorView twins[] = {view("w", {2}, values), view("v", {2}, values), view("w", {2}, values)};
  EXPECT_THROW(write_safetensors(path(), twins), DataError);
  EXPECT_THROW(write_safetensors(path(), {}, {{"a", "\xFF"}}), DataError);
  EXPECT_EQ(file_count(), 0);
}

/// Writes an old file and tries to replace it with a larger one.
class SafetensorsFailure : public Safetensors {
 protected:
  void SetUp() override {
    Safetensors::SetUp();
    const auto tensor = view("w", {2}, old_values_);
    write_safetensors(path(), std::span(&tensor, 1));
  }

  TensorView large() { return view("w", {1 << 18}, large_values_); }

  std::vector<float> old_values_ = {1, 2}, large_values_ = std::vector<float>(1 << 18, 3.0f);
};

TEST_F(SafetensorsFailure, AFullDiskLeavesTheOldFile) {
  // A limit on the size of files makes the system refuse to write on, as a full disk does.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {100'000, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto reason = write_refusal(path(), large());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_TRUE(contains(reason, "cannot write (nothing was changed): File too large"));
  EXPECT_EQ(SafetensorsFile::read(path()).find("w")->values<float>(), old_values_);
  EXPECT_EQ(file_count(), 1);
}

TEST_F(SafetensorsFailure, AWriterKilledAtAnyMomentLeavesAWholeFile) {
  for (int round = 0; round < 8; ++round) {
    const auto child = ::fork();
    if (child == 0) {
      for (float value = 0;; ++value) {
        std::vector<float> values(1 << 18, value);
        const auto tensor = view("w", {1 << 18}, values);
        write_safetensors(path(), std::span(&tensor, 1));
      }
    }
    ::usleep(static_cast<useconds_t>(5'000 + 7'919 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto values = SafetensorsFile::read(path()).find("w")->values<float>();
    EXPECT_EQ(values, (values.size() == 2 ? old_values_ : std::vector<float>(1 << 18, values[0])));
  }
}

// Comparing a file with a model

TEST_F(Safetensors, TensorsThatDoNotFitTheModelAreNamed) {
  std::vector<float> values = {1, 2, 3, 4};
  const TensorView tensors[] = {view("hidden.weight", {2, 2}, values), view("old.bias", {4}, values)};
  write_safetensors(path(), tensors);
  const auto file = SafetensorsFile::read(path());
  const taut::io::ExpectedTensor fitting[] = {{"old.bias", {4}}, {"hidden.weight", {2, 2}}};
  EXPECT_NO_THROW(taut::io::check_tensors(file, fitting));
  const taut::io::ExpectedTensor expected[] = {{"hidden.weight", {4, 1}}, {"out.bias", {10}}};
  try {
    taut::io::check_tensors(file, expected);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.what(),
              path() +
                  ": load: the file's tensors are not the model's"
                  "\n  1 missing: 'out.bias' ([10])"
                  "\n  1 not expected: 'old.bias' ([4])"
                  "\n  1 of another shape: 'hidden.weight' ([2, 2] in the file, [4, 1] in the model)");
  }
  EXPECT_NO_THROW(taut::io::check_tensors(parse(file_bytes("{}")), {}));
}

TEST(CheckTensors, LongListsAreCut) {
  std::vector<taut::io::ExpectedTensor> expected;
  for (int i = 0; i < 1000; ++i) expected.push_back({"layer" + std::to_string(i), {1}});
  try {
    taut::io::check_tensors(parse(file_bytes("{}")), expected);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_TRUE(contains(error.what(), "1000 missing: 'layer0' ([1]), "));
    EXPECT_LT(std::string(error.what()).size(), 400u);
  }
}

}  // namespace
