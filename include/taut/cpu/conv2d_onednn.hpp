#pragma once
// Convolutions by oneDNN. Without TAUT_HAS_ONEDNN this header is empty.
//
// Images are taken and given in the layout that oneDNN is fastest on, so that between convolutions nothing is
// converted. Kernels are converted to the layout that the primitive wants, and what comes out is kept with
// them until an optimizer changes them. Where Winograd's algorithm (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015) can be used, it is timed against the direct one at the first use of a
// shape.

#include "conv_algorithm.hpp"
#include "conv_plan.hpp"

#if TAUT_HAS_ONEDNN

#include <algorithm>
#include <chrono>
#include <functional>
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

/// The plans of a shape: one an algorithm, made when it is first wanted.
struct ConvPlans {
  std::unique_ptr<ConvPlan> direct, winograd;
  bool no_winograd = false;

  const ConvPlan& get_direct(const ConvKey& key) {
    if (!direct) {
      const auto descriptor = conv_descriptor(key, dnnl_convolution_direct);
      onednn::check(descriptor ? dnnl_success : dnnl_unimplemented, "dnnl_convolution_primitive_desc_create");
      direct = std::make_unique<ConvPlan>(key, descriptor);
    }
    return *direct;
  }

  /// Null where the algorithm does not apply.
  const ConvPlan* get_winograd(const ConvKey& key) {
    const ConvGeometry& g = key.geometry;
    if (no_winograd || g.kh != 3 || g.kw != 3 || !(g.stride == HeightWidth(1))) return nullptr;
    if (!winograd) {
      const auto descriptor = conv_descriptor(key, dnnl_convolution_winograd);
      no_winograd = !descriptor;
      if (descriptor) winograd = std::make_unique<ConvPlan>(key, descriptor);
    }
    return winograd.get();
  }
};

inline ConvPlans& conv_plans(const ConvKey& key) {
  constexpr std::size_t capacity = 256;
  onednn::Session::of_this_thread();  // made before the plans, so that it outlives them
  thread_local std::unordered_map<ConvKey, ConvPlans, ConvHash> plans;
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  if (plans.size() >= capacity) plans.clear();
  return plans[key];
}

inline double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The faster algorithm. Winograd's first call also touches and converts what later ones find there: if it is
/// faster than the direct one's even so, that decides; otherwise the least of two more calls does.
inline ConvAlgorithm faster_algorithm(const std::function<void()>& direct,
                                      const std::function<void()>& winograd) {
  if (const double by_winograd = seconds_of(winograd); by_winograd < seconds_of(direct))
    return ConvAlgorithm::winograd;
  double by_direct = 1e30, by_winograd = 1e30;
  for (int i = 0; i < 2; ++i) {
    by_direct = std::min(by_direct, seconds_of(direct));
    by_winograd = std::min(by_winograd, seconds_of(winograd));
  }
  return by_winograd < by_direct ? ConvAlgorithm::winograd : ConvAlgorithm::direct;
}

/// Runs a convolution or gradient by the algorithm that is set, or the faster one.
inline void run_convolution(const ConvKey& key, const float* a, const CpuArray& b, const float* b_image,
                            const float* bias, float* out) {
  ConvPlans& plans = conv_plans(key);
  auto wanted = conv_algorithm();
  const ConvPlan* winograd = wanted == ConvAlgorithm::direct ? nullptr : plans.get_winograd(key);
  if (winograd && wanted == ConvAlgorithm::automatic) {
    wanted = ChosenAlgorithms::global().find(key);
    if (wanted == ConvAlgorithm::automatic) {
      const auto run = [&](const ConvPlan& plan) {
        return std::function<void()>([&] { plan.run(a, b, b_image, bias, out); });
      };
      ChosenAlgorithms::global().set(key, faster_algorithm(run(plans.get_direct(key)), run(*winograd)));
      wanted = ChosenAlgorithms::global().find(key);
    }
    if (wanted == ConvAlgorithm::direct) winograd = nullptr;
  }
  (winograd ? *winograd : plans.get_direct(key)).run(a, b, b_image, bias, out);
}

}  // namespace detail

/// y = conv(x, kernels) + bias by oneDNN; `bias` may be null. There must be something to multiply, here and
/// below.
inline CpuArray conv2d_onednn(const ConvGeometry& g, const CpuArray& x, const CpuArray& kernels,
                              const CpuArray* bias) {
  apply_threads();
  const detail::ConvLayouts layouts(g);
  auto y = CpuArray::uninitialized(g.y(), layouts.y);
  detail::run_convolution({g, detail::ConvKind::forward, bias != nullptr, threads()}, x.data(layouts.x),
                          kernels, nullptr, bias ? bias->data() : nullptr, y.mutable_data());
  return y;
}

/// The gradient of the convolution by x, for dy of the shape of y.
inline CpuArray conv2d_data_gradient_onednn(const ConvGeometry& g, const CpuArray& dy,
                                            const CpuArray& kernels) {
  apply_threads();
  const detail::ConvLayouts layouts(g);
  auto dx = CpuArray::uninitialized(g.x(), layouts.x);
  detail::run_convolution({g, detail::ConvKind::data, false, threads()}, dy.data(layouts.y), kernels, nullptr,
                          nullptr, dx.mutable_data());
  return dx;
}

/// The gradient of the convolution by its kernels.
inline CpuArray conv2d_weight_gradient_onednn(const ConvGeometry& g, const CpuArray& dy, const CpuArray& x) {
  apply_threads();
  const detail::ConvLayouts layouts(g);
  auto dw = CpuArray::uninitialized(g.kernels());
  detail::run_convolution({g, detail::ConvKind::weight, false, threads()}, dy.data(layouts.y), x,
                          x.data(layouts.x), nullptr, dw.mutable_data());
  return dw;
}

}  // namespace taut::cpu

#endif  // TAUT_HAS_ONEDNN
