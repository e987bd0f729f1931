// Fuzz target: the image reader takes any bytes and either returns an image of the size that it says or
// throws `DataError`. PNG is also tried with right checksums, behind which mutations reach the decoder. To
// run it, see driver.cpp.

#include <taut/data/image.hpp>
#include <taut/data/resize.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "../data/image_fixtures.hpp"
#include "driver.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;
using namespace taut::data;

void use(const Bytes& bytes) {
  try {
    const auto image = decode_image(bytes, "input", {.max_pixels = 1 << 14});
    if (static_cast<std::int64_t>(image.pixels.size()) != 3 * image.height * image.width) std::abort();
    std::array<float, 3 * 3 * 4> sample{};
    crop_and_resize(image, 3, 4, sample);
    if (std::ranges::any_of(sample, [](float x) { return !(x >= 0 && x <= 1.00001f); })) std::abort();
  } catch (const taut::DataError& error) {
    if (error.path() != "input") std::abort();
  }
}

// A PNG file with right checksums, as far as its chunks are whole.
Bytes mended(Bytes bytes) {
  for (std::size_t position = 8; position + 12 <= bytes.size();) {
    const std::size_t length = detail::big_endian(bytes, position, 4);
    if (length > bytes.size() - position - 12) break;
    auto crc = detail::crc32(std::span(bytes).subspan(position + 4, 4 + length));
    position += 12 + length;
    for (std::size_t i = 1; i <= 4; ++i, crc >>= 8) bytes[position - i] = static_cast<std::uint8_t>(crc);
  }
  return bytes;
}

}  // namespace

std::vector<Bytes> taut::test::fuzz_seeds() {
  std::vector<Bytes> seeds;
  for (const auto* name :
       {"rgb.png", "rgba.png", "rgb16.png", "rgba16.png", "grey.png", "grey16.png", "grey_alpha.png",
        "palette.png", "bilevel.png", "one_pixel.png", "huge.png", "photo.png", "colour.jpg",
        "progressive.jpg", "grey.jpg", "cmyk.jpg", "one_pixel.jpg", "empty.png"})
    seeds.push_back(image_bytes(name));
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(data, data + size);
  use(bytes);
  if (detail::starts_with(bytes, detail::png_signature)) use(mended(bytes));
  return 0;
}
