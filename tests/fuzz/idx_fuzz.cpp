// Fuzz target: the IDX reader takes any bytes and either returns what they declare or throws `DataError`. To
// run it, see driver.cpp.

#include <taut/data/idx.hpp>

#include <cstdlib>

#include "../data/idx_bytes.hpp"
#include "driver.hpp"

std::vector<std::vector<std::uint8_t>> taut::test::fuzz_seeds() {
  std::vector<Bytes> seeds{counting_idx({10}), counting_idx({3, 4, 5}), counting_idx({0, 28, 28}),
                           counting_idx({1, 2, 1, 2, 1, 2}), counting_idx({2, 28, 28})};
#if TAUT_HAS_ZLIB
  const auto plain = seeds;
  for (const auto& seed : plain) seeds.push_back(gzip(seed));
  seeds.push_back(gzip(plain[0]) + gzip(plain[1]));
#endif
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto idx = taut::data::parse_idx({data, size}, "input");
    if (idx.values.size() != static_cast<std::size_t>(idx.shape.size())) std::abort();
  } catch (const taut::DataError& error) {
    if (error.path() != "input" || error.offset() < 0) std::abort();
  }
  return 0;
}
