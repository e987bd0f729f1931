#pragma once
// Update rules of optimizers on the device: all parameters of a model in one launch, or a few.

#include <span>
#include <vector>

#include "../optim/update.hpp"
#include "recording.hpp"
#include "tensor.hpp"
#include "update_launch.hpp"

namespace taut {

namespace cuda {

/// The tensor's elements for writing in place, in the given layout; if its memory is shared or lies
/// otherwise, of a fresh copy that takes its place.
template <class E> E* writable(BasicCudaTensor<E>& x, Layout layout) {
  if (x.layout() != layout) x = x.in_layout(layout);
  if (!x.unique()) {
    auto copy = BasicCudaTensor<E>::uninitialized(x.shape(), layout);
    copy_on_device(copy.mutable_data(), x.data(), x.bytes(), current_stream());
    x = std::move(copy);
  }
  return x.mutable_data();
}

}  // namespace cuda

/// Clipping on the device: neither the norm nor the factor is known to the host.
template <class E> class optim::GradientNorm<BasicCudaTensor<E>> {
 public:
  using Scale = cuda::Argument<float>;

  /// Computes the norm, and the factor min(1, most / (norm + 1e-6)).
  template <class Items> Scale clip(const Items& items, double most) {
    std::vector<cuda::Elements<E>> gradients;
    std::int64_t count = 0;
    for (const auto& item : items) {
      gradients.push_back({item.gradient->data(), item.gradient->shape().size()});
      count += cuda::squares_chunks(gradients.back().size);
    }
    auto sums = CudaTensor::uninitialized({count});
    cuda::launch_squares(gradients.data(), static_cast<int>(gradients.size()), sums.mutable_data(),
                         cuda::current_stream());
    if (norm_.shape().size() == 0)
      norm_ = CudaTensor::uninitialized({}), factor_ = CudaTensor::uninitialized({});
    cuda::launch_clip(count, sums.data(), static_cast<float>(most), norm_.mutable_data(),
                      factor_.mutable_data(), cuda::current_stream());
    return {1, factor_.data()};
  }

  /// The norm that was computed last, or 0. Waits for the device.
  double value() const { return norm_.shape().size() > 0 ? static_cast<double>(norm_.item()) : 0; }

 private:
  CudaTensor norm_, factor_;  // written in place, so that a captured step finds them again
};

/// Applies an update rule in place to all parameters, masters and states, with the gradients multiplied by
/// `scale`. A parameter takes its gradient's layout, once: the gradients of convolutions' kernels have the
/// channels last.
template <class Rule, class E, int States>
void apply_update(const Rule& rule, const cuda::Argument<float>& scale,
                  std::span<const optim::UpdateItem<BasicCudaTensor<E>, States>> items) {
  std::vector<BasicCudaTensor<E>> gradients;  // in their parameters' layouts
  std::vector<cuda::UpdatePointers<E, States>> pointers;
  for (const auto& item : items) {
    const auto layout = cuda::common_layout(item.parameter->layout(), item.gradient->layout());
    gradients.push_back(item.gradient->in_layout(layout));
    auto& at = pointers.emplace_back();
    at.parameter = cuda::writable(*item.parameter, layout);
    if constexpr (requires { at.master; }) at.master = cuda::writable(*item.master, layout);
    at.gradient = gradients.back().data();
    for (std::size_t k = 0; k < item.state.size(); ++k) at.state[k] = cuda::writable(*item.state[k], layout);
    at.size = item.parameter->shape().size();
  }
  cuda::launch_update<Rule, E>(cuda::at_replay(rule), scale, pointers.data(),
                               static_cast<int>(pointers.size()), cuda::current_stream());
}

}  // namespace taut
