#pragma once
// Batches of images for the device that an example computes on.

#include <taut/data/data_loader.hpp>
#if TAUT_HAS_CUDA
#include <taut/cuda/image_loader.hpp>
#endif

#include <concepts>
#include <utility>

/// A loader of images that are bytes in memory, with what augments them. For tensors on a GPU the bytes lie
/// there, and a kernel makes the batches of them; the batches are the same.
template <class T, class D> auto make_loader(D dataset, taut::data::DataLoaderOptions options) {
#if TAUT_HAS_CUDA
  if constexpr (std::same_as<T, taut::CudaTensor>)
    return taut::cuda::ImageLoader{std::move(dataset), options};
  else
#endif
    return taut::data::DataLoader{std::move(dataset), options};
}
