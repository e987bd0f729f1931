// Fuzz target: the safetensors reader takes any bytes and either returns tensors that can be read, and that
// make the same file again, or throws `DataError`. To run it, see driver.cpp.

#include <cstdlib>
#include <string>
#include <taut/io/safetensors.hpp>

#include "driver.hpp"

namespace {

using namespace taut::io;
using taut::io::detail::HeaderEntry;

std::vector<std::uint8_t> file_of(const std::vector<HeaderEntry>& entries, const Metadata& metadata) {
  const std::string header = detail::write_header(entries, metadata, "output");
  std::vector<std::uint8_t> bytes(header.begin(), header.end());
  bytes.resize(bytes.size() + (entries.empty() ? 0 : entries.back().end), 1);
  return bytes;
}

void require(bool ok) {
  if (!ok) std::abort();
}

/// Everything that a user can ask of a file.
void use(const SafetensorsFile& file) {
  const auto entries = detail::layout(file.tensors(), detail::storage_order(file.tensors()), "output");
  const auto bytes = file_of(entries, file.metadata());
  const auto copy = SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "copy");
  require(copy.metadata() == file.metadata() && copy.tensors().size() == file.tensors().size());
  for (const auto& tensor : file.tensors()) {
    const auto* const same = copy.find(tensor.name);
    require(file.find(tensor.name) == &tensor && same != nullptr);
    require(same->shape == tensor.shape && same->dtype == tensor.dtype);
    require(tensor.values<float>().size() == tensor.values<double>().size());
  }
}

}  // namespace

std::vector<std::vector<std::uint8_t>> taut::test::fuzz_seeds() {
  const std::vector<HeaderEntry> entries = {{"layer1.0.weight", DType::f64, {2, 3}, 0, 48},
                                            {"bias", DType::f32, {2}, 48, 56},
                                            {"größe\n", DType::bf16, {1, 1, 1, 1, 1, 1}, 56, 58},
                                            {"scalar", DType::f16, {}, 58, 60},
                                            {"empty", DType::i64, {4, 0}, 60, 60},
                                            {"flags", DType::boolean, {3}, 60, 63}};
  const Metadata metadata = {{"format", "pt"}, {"π", "\t\"quoted\""}};
  return {file_of({}, {}), file_of({}, metadata), file_of({entries[0]}, {}), file_of(entries, metadata)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    use(SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "input"));
  } catch (const taut::DataError& error) {
    require(error.path() == "input" && error.offset() <= static_cast<std::int64_t>(size));
  }
  return 0;
}
