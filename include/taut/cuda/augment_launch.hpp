#pragma once
// The launcher of the augmentation of images, as both the loader's side and the kernel's side see it.

#include <cstdint>

#include "device.hpp"

namespace taut::cuda {

/// Which image is taken, where in it the window's corner is, and whether the window is mirrored.
struct ImageWindow {
  std::int64_t image;
  std::int32_t dy, dx, mirrored;
};

/// Images [channels, height, width] as bytes, one after another; fewer than 2³¹ pixels a channel.
struct ImageBytes {
  const std::uint8_t* pixels;
  std::int64_t channels;
  std::int32_t height, width;
};

/// Writes `count` windows of the images' size to `to` [count, channels, height, width]: pixels divided by
/// 255, zeros beyond the images' edges, and of both (value - mean) / deviation, with the channels' means and
/// deviations in `statistics` [2, channels]. E is float or bfloat16.
template <class E>
void launch_augment(const ImageBytes& images, std::int64_t count, const ImageWindow* windows,
                    const float* statistics, E* to, Stream stream);

}  // namespace taut::cuda
