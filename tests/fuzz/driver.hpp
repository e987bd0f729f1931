#pragma once
// What a fuzz target gives to the driver in driver.cpp, beside libFuzzer's entry point.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace taut::test {

/// Valid inputs, from which the driver makes its own by mutation.
std::vector<std::vector<std::uint8_t>> fuzz_seeds();

}  // namespace taut::test

/// Handles one input, whatever it is; returns 0. Anything thrown out of it is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
