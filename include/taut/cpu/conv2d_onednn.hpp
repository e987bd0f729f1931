#pragma once
// Convolutions by oneDNN, or by Winograd's algorithm where that is faster. Without TAUT_HAS_ONEDNN this
// header is empty.
//
// Images are taken and given in the layout that both are fastest on, so that between convolutions nothing is
// converted. Kernels are converted to what the algorithm wants, and what comes out is kept with them until an
// optimizer changes them. Where Winograd's algorithm applies and is neither sure to pay nor to lose, it is
// timed against oneDNN's direct one at the first use of a shape.

#include "conv2d_winograd.hpp"
#include "conv_algorithm.hpp"
#include "conv_plan.hpp"

#if TAUT_HAS_ONEDNN

#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace taut::cpu {

namespace detail {

/// What has been found to be faster for a shape, for all threads of the program.
class ChosenAlgorithms {
 public:
  static ChosenAlgorithms& global() {
    static ChosenAlgorithms chosen;
    return chosen;
  }
  /// The choice for `key`, or `automatic` if there is none yet.
  ConvAlgorithm find(const ConvKey& key) {
    const std::lock_guard lock(mutex_);
    const auto found = chosen_.find(key);
    return found == chosen_.end() ? ConvAlgorithm::automatic : found->second;
  }
  void set(const ConvKey& key, ConvAlgorithm algorithm) {
    const std::lock_guard lock(mutex_);
    chosen_.try_emplace(key, algorithm);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<ConvKey, ConvAlgorithm, ConvHash> chosen_;
};

inline const ConvPlan& direct_plan(const ConvKey& key) {
  constexpr std::size_t capacity = 256;
  onednn::Session::of_this_thread();  // made before the plans, so that it outlives them
  thread_local std::unordered_map<ConvKey, std::unique_ptr<ConvPlan>, ConvHash> plans;
  auto found = plans.find(key);
  if (found == plans.end()) {
    if (plans.size() >= capacity) plans.clear();
    found = plans.emplace(key, std::make_unique<ConvPlan>(key)).first;
  }
  return *found->second;
}

/// A convolution or a gradient of it, to be computed by either algorithm.
struct ConvCall {
  ConvKey key;
  const float* a;         ///< the operator's first operand, which are images
  const CpuArray& b;      ///< its second one,
  const float* b_images;  ///< and its elements where these are images, too
  ConvEpilogue epilogue;
  float* out;
  Buffer kernels = {};  ///< as transformed for Winograd's algorithm, once that has run

  void run_direct() { direct_plan(key).run(a, b, b_images, epilogue.bias, out); }

  void run_winograd() {
    const auto forward = winograd::forward(key.geometry);
    if (key.kind == ConvKind::weight) return winograd::differentiate(forward, b_images, a, out);
    const auto problem = key.kind == ConvKind::forward ? forward : winograd::gradient(key.geometry);
    if (!kernels) kernels = winograd::transformed(problem, b);
    winograd::convolve(problem, a, reinterpret_cast<const float*>(kernels.data()), epilogue, out);
  }
};

template <class F> double seconds_of(const F& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The faster algorithm. Winograd's first call also touches and converts what later ones find there: if it is
/// faster than the direct one's even so, that decides; otherwise the least of two more calls does.
inline ConvAlgorithm faster_algorithm(ConvCall& call) {
  const auto by_direct = [&] { return seconds_of([&] { call.run_direct(); }); };
  const auto by_winograd = [&] { return seconds_of([&] { call.run_winograd(); }); };
  if (const double first = by_winograd(); first < by_direct()) return ConvAlgorithm::winograd;
  double direct = by_direct(), winograd = by_winograd();
  direct = std::min(direct, by_direct());
  winograd = std::min(winograd, by_winograd());
  return winograd < direct ? ConvAlgorithm::winograd : ConvAlgorithm::direct;
}

/// Whether Winograd's algorithm can be used: it also takes a program compiled for SIMD registers as wide as
/// the blocks of channels in which images lie.
inline bool winograd_applies(const ConvGeometry& g) {
  const ConvLayouts layouts(g);
  const auto fits = [](Layout layout) {
    return (layout == Layout::blocked16 && winograd::lanes == 16) ||
           (layout == Layout::blocked8 && winograd::lanes == 8);
  };
  return winograd::applies(g) && fits(layouts.x) && fits(layouts.y);
}

/// Computes a convolution or gradient by the algorithm that is set, or the faster one. Returns whether that
/// took care of the epilogue beyond the bias.
inline bool run_convolution(ConvCall call) {
  auto wanted = conv_algorithm();
  if (wanted != ConvAlgorithm::direct && !winograd_applies(call.key.geometry)) wanted = ConvAlgorithm::direct;
  if (wanted == ConvAlgorithm::automatic && winograd::pays(call.key.geometry))
    wanted = ConvAlgorithm::winograd;
  if (wanted == ConvAlgorithm::automatic && winograd::loses(call.key.geometry))
    wanted = ConvAlgorithm::direct;
  if (wanted == ConvAlgorithm::automatic) {
    auto& chosen = ChosenAlgorithms::global();
    wanted = chosen.find(call.key);
    if (wanted == ConvAlgorithm::automatic) chosen.set(call.key, wanted = faster_algorithm(call));
  }
  const bool by_winograd = wanted == ConvAlgorithm::winograd;
  by_winograd ? call.run_winograd() : call.run_direct();
  return by_winograd;
}

}  // namespace detail

/// y = conv(x, kernels) + bias, and what follows. There must be something to multiply, here and below.
inline CpuArray conv2d_onednn(const ConvGeometry& g, const CpuArray& x, const CpuArray& kernels,
                              const CpuArray* bias, const ConvEnding<float>& ending) {
  apply_threads();
  const detail::ConvLayouts layouts(g);
  auto y = CpuArray::uninitialized(g.y(), layouts.y);
  const ConvEpilogue epilogue{bias ? bias->data() : nullptr,
                              ending.residual ? ending.residual->data(layouts.y) : nullptr, ending.relu};
  const bool ended = detail::run_convolution({{g, detail::ConvKind::forward, bias != nullptr, threads()},
                                              x.data(layouts.x),
                                              kernels,
                                              nullptr,
                                              epilogue,
                                              y.mutable_data()});
  return ended ? y : ending(std::move(y));
}

/// The gradient of the convolution by x, for dy of the shape of y.
inline CpuArray conv2d_data_gradient_onednn(const ConvGeometry& g, const CpuArray& dy,
                                            const CpuArray& kernels) {
  apply_threads();
  const detail::ConvLayouts layouts(g);
  auto dx = CpuArray::uninitialized(g.x(), layouts.x);
  detail::run_convolution({{g, detail::ConvKind::data, false, threads()},
                           dy.data(layouts.y),
                           kernels,
                           nullptr,
                           {},
                           dx.mutable_data()});
  return dx;
}

/// The gradient of the convolution by its kernels.
inline CpuArray conv2d_weight_gradient_onednn(const ConvGeometry& g, const CpuArray& dy, const CpuArray& x) {
  apply_threads();
  const detail::ConvLayouts layouts(g);
  auto dw = CpuArray::uninitialized(g.kernels());
  detail::run_convolution({{g, detail::ConvKind::weight, false, threads()},
                           dy.data(layouts.y),
                           x,
                           x.data(layouts.x),
                           {},
                           dw.mutable_data()});
  return dw;
}

}  // namespace taut::cpu

#endif  // TAUT_HAS_ONEDNN
