#pragma once
// The four workloads that Taut's speed is published for. bench/comparison/workloads.py says the same to
// the other libraries.

#include <taut/core/error.hpp>
#include <taut/nn/mlp.hpp>
#include <taut/nn/resnet.hpp>
#include <taut/optim/adam.hpp>
#include <taut/optim/sgd.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bench {

enum class Network { mlp, seed, cifar, frost };

struct Workload {
  std::string_view name;
  Network network;
  std::int64_t batch;
  double lr, momentum, weight_decay, clip;

  bool images() const { return network != Network::mlp; }
  taut::Shape batch_shape(std::int64_t samples) const {
    return images() ? taut::Shape{samples, 3, 32, 32} : taut::Shape{samples, 784};
  }
  /// Whether pixels come with mean 0 and deviation 1, instead of from 0 to 1.
  bool normalized() const { return network == Network::cifar || network == Network::frost; }
  /// Whether training images are cropped and flipped at random.
  bool augmented() const { return network == Network::cifar; }
};

/// 784-128-64-10; ResNet-18 with the stem for large images and biases; ResNet-18 with that for small ones;
/// ResNet-20. All but the last, which takes AdamW, train by SGD.
inline constexpr std::array<Workload, 4> workloads{{
    {"mnist-mlp", Network::mlp, 64, 0.01, 0.9, 1e-4, 35},
    {"seed-resnet18", Network::seed, 128, 0.01, 0.9, 1e-4, 35},
    {"cifar-resnet18", Network::cifar, 128, 0.1, 0.9, 5e-4, 0},
    {"frost-resnet20", Network::frost, 32, 1e-4, 0, 1e-2, 0},
}};

/// Throws `taut::Error` if there is none of that name.
inline const Workload& find_workload(std::string_view name) {
  for (const auto& workload : workloads)
    if (workload.name == name) return workload;
  throw taut::Error("there is no workload '" + std::string(name) + "'");
}

/// Calls use(network) with a new network over T: an `Mlp` or a `ResNet`.
template <class T, class Use> auto with_network(const Workload& workload, taut::Rng& rng, const Use& use) {
  namespace nn = taut::nn;
  switch (workload.network) {
    case Network::mlp:
      return use(nn::Mlp<T>::make({784, 128, 64, 10}, rng));
    case Network::seed:
      return use(nn::ResNet<T>::make({.classes = 10, .conv_bias = true}, rng));
    case Network::cifar:
      return use(nn::resnet18<T>(10, nn::Stem::cifar, rng));
    case Network::frost:
      break;
  }
  return use(nn::cifar_resnet<T>(20, 10, rng));
}

template <class M> std::unique_ptr<taut::optim::Optimizer> make_optimizer(const Workload& w, M& model) {
  namespace optim = taut::optim;
  std::unique_ptr<optim::Optimizer> optimizer;
  if (w.network == Network::frost)
    optimizer = std::make_unique<optim::AdamW>(
        model, optim::AdamRule<true>{.lr = w.lr, .weight_decay = w.weight_decay});
  else
    optimizer = std::make_unique<optim::Sgd>(
        model, optim::SgdRule{.lr = w.lr, .momentum = w.momentum, .weight_decay = w.weight_decay});
  optimizer->set_clip_norm(w.clip);
  return optimizer;
}

}  // namespace bench
