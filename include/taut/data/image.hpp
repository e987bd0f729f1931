#pragma once
// Image files: PNG and JPEG, decoded to three channels of 8 bits.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "byte_source.hpp"
#include "image_check.hpp"
#include "stb_image.hpp"

namespace taut::data {

/// A colour image of `height` x `width` pixels.
struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]: red, green and blue of each pixel, 0 to 255
};

/// What an image file may ask for. Both limits are checked before anything is decoded, since a small file can
/// declare any size.
struct ImageLimits {
  std::int64_t max_bytes = 1 << 28;   ///< size of the file
  std::int64_t max_pixels = 1 << 26;  ///< height times width; decoding takes up to some 16 bytes a pixel
};

namespace detail {

#if TAUT_HAS_STB

// Decodes a checked file of the declared size.
inline Image decode_with_stb(ImageBytes bytes, const std::string& name, const ImageSize& size) {
  // Besides its own state the decoder needs, for PNG, at most 8 bytes a pixel, in a buffer that grows
  // twofold; and for JPEG 2 bytes a pixel and channel of an image whose extents are rounded up, by less
  // than 32.
  const auto rows = static_cast<std::size_t>(size.height), columns = static_cast<std::size_t>(size.width);
  stb::allocation_limit =
      (1 << 20) + 2 * bytes.size() + 16 * rows * columns + 2 * (rows + 32) * (columns + 32);
  const char* reason = "the decoder is at a loss";
  try {
    int width = 0, height = 0, channels = 0;
    const std::unique_ptr<stb::stbi_uc, decltype(&std::free)> pixels(
        stb::stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &width, &height, &channels,
                                   3),
        &std::free);
    if (pixels) return {height, width, {pixels.get(), pixels.get() + 3 * std::ptrdiff_t{height} * width}};
    const bool refused = stb::allocation_limit == 0;
    reason = refused ? "it expands to more than its size" : stb::stbi_failure_reason();
  } catch (const stb::AssertionFailed&) {
  }
  throw DataError(name, -1, std::string("image: cannot decode it: ") + reason);
}

#else

[[noreturn]] inline Image decode_with_stb(ImageBytes, const std::string& name, const ImageSize&) {
  throw DataError(name, -1,
                  "image: this program was built without stb_image, which decodes PNG and JPEG. Install it "
                  "(Debian: libstb-dev) and build again");
}

#endif

inline ImageSize check_image_file(ImageBytes bytes, const std::string& name) {
  if (bytes.empty()) throw DataError(name, 0, "image: the file is empty");
  if (starts_with(bytes, png_signature)) return check_png(bytes, name);
  if (starts_with(bytes, jpeg_signature)) return JpegCheck(bytes, name).run();
  throw DataError(name, 0, "image: this is neither a PNG nor a JPEG file");
}

inline void check_image_size(const ImageSize& size, const std::string& name, const ImageLimits& limits) {
  if (size.height == 0 || size.width == 0 || size.height <= limits.max_pixels / size.width) return;
  throw DataError(name, -1,
                  "image: it declares " + std::to_string(size.height) + " x " + std::to_string(size.width) +
                      " pixels, more than the limit of " + std::to_string(limits.max_pixels) +
                      "; set max_pixels if it is to be read");
}

// Throws `DataError` if a file of `size` bytes, or of at least so many, is too large.
inline void check_file_size(std::size_t size, const std::string& name, const ImageLimits& limits) {
  const auto limit = std::min<std::int64_t>(limits.max_bytes, std::numeric_limits<int>::max());
  if (static_cast<std::int64_t>(size) <= limit) return;
  throw DataError(name, limit,
                  "image: the file is larger than the limit of " + std::to_string(limit) +
                      " bytes; set max_bytes if it is to be read");
}

inline std::vector<std::uint8_t> read_all(ByteSource& source, const ImageLimits& limits) {
  constexpr std::size_t chunk = 1 << 16;
  std::vector<std::uint8_t> bytes;
  for (std::size_t count = chunk; count == chunk;) {
    const auto before = bytes.size();
    bytes.resize(before + chunk);
    count = source.read(std::span(bytes).subspan(before));
    bytes.resize(before + count);
    check_file_size(bytes.size(), source.name(), limits);
  }
  return bytes;
}

}  // namespace detail

/// Decodes a PNG or JPEG file in memory, which its first bytes tell. Grey becomes three equal channels, 16
/// bits are cut to the upper 8, transparency is dropped, palettes and CMYK become colours. A turn that a
/// camera noted (EXIF) is ignored. Throws `DataError`, which calls the image `name`, if it is above the
/// limits, truncated or damaged, or of a kind that stb_image does not read, such as JPEG with arithmetic
/// coding; or if the program was built without stb_image.
inline Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name,
                          const ImageLimits& limits = {}) {
  detail::check_file_size(bytes.size(), name, limits);
  const auto size = detail::check_image_file(bytes, name);
  detail::check_image_size(size, name, limits);
  return detail::decode_with_stb(bytes, name, size);
}

/// Decodes a PNG or JPEG file, as `decode_image` does. Also throws `DataError` if the file cannot be read.
inline Image read_image(const std::string& path, const ImageLimits& limits = {}) {
  FileSource file(path);
  return decode_image(detail::read_all(file, limits), path, limits);
}

}  // namespace taut::data
