#pragma once
// The files of fixtures/images, for the tests of what reads them.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace taut::test {

inline std::filesystem::path image_directory() {
  return std::filesystem::path(__FILE__).parent_path().parent_path() / "fixtures" / "images";
}

inline std::string image_path(const std::string& name) { return (image_directory() / name).string(); }

inline std::vector<std::uint8_t> image_bytes(const std::string& name) {
  std::ifstream file(image_path(name), std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + image_path(name));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace taut::test
