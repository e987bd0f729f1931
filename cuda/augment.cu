// Batches of augmented images out of a data set that lies on the device as bytes: crop, flip and
// normalisation in one pass, which reads a byte and writes an element for each pixel. A block takes a channel
// of an image, so that what is drawn for the image is the same for all of its threads, and neighbours write
// to neighbours. What is random is drawn on the host, by the generator that the CPU's loader draws from. The
// operations are the CPU's, none of which can be contracted, so floats are the same bits. All of the output
// is overwritten.

#include "taut/cuda/augment_launch.hpp"

#include "taut/cuda/kernel/launch.cuh"

#include <taut/core/bfloat16.hpp>

namespace taut::cuda {

namespace {

template <class E>
__global__ void augment(ImageBytes images, const ImageWindow* windows, const float* statistics, E* to) {
  const std::int64_t plane = blockIdx.x, channel = plane % images.channels;
  const ImageWindow window = windows[plane / images.channels];
  const std::int32_t size = images.height * images.width;
  const std::uint8_t* const from = images.pixels + (window.image * images.channels + channel) * size;
  const float mean = statistics[channel], deviation = statistics[images.channels + channel];
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < size; i += block_threads) {
    const std::int32_t row = i / images.width, column = i - row * images.width;
    const std::int32_t y = row + window.dy;
    const std::int32_t x = (window.mirrored ? images.width - 1 - column : column) + window.dx;
    const bool inside = 0 <= y && y < images.height && 0 <= x && x < images.width;
    const float value = inside ? static_cast<float>(from[y * images.width + x]) / 255.0f : 0.0f;
    to[plane * size + i] = E((value - mean) / deviation);
  }
}

}  // namespace

template <class E>
void launch_augment(const ImageBytes& images, std::int64_t count, const ImageWindow* windows,
                    const float* statistics, E* to, Stream stream) {
  const std::int64_t planes = count * images.channels;
  if (planes == 0) return;
  launch(augment<E>, static_cast<unsigned>(planes), block_threads, 0, stream, images, windows, statistics,
         to);
}

template void launch_augment(const ImageBytes&, std::int64_t, const ImageWindow*, const float*, float*,
                             Stream);
template void launch_augment(const ImageBytes&, std::int64_t, const ImageWindow*, const float*, bfloat16*,
                             Stream);

}  // namespace taut::cuda
