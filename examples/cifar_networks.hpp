#pragma once
// The networks that cifar10 trains and predict runs, by their names.

#include <taut/core/error.hpp>
#include <taut/nn/lenet.hpp>
#include <taut/nn/resnet.hpp>

#include <initializer_list>
#include <string>

inline constexpr std::initializer_list<const char*> cifar_networks{
    "resnet18", "resnet18-imagenet", "resnet20", "resnet32", "resnet56", "lenet"};

/// Calls use(network) with a new one of `cifar_networks` over T for colour images of 32 x 32 in ten classes.
/// Throws `taut::Error` if there is none of that name.
template <class T, class Use> auto with_network(const std::string& name, taut::Rng& rng, const Use& use) {
  namespace nn = taut::nn;
  if (name == "lenet") return use(nn::LeNet<T>::make(3, 32, 10, rng));
  if (name == "resnet18") return use(nn::resnet18<T>(10, nn::Stem::cifar, rng));
  if (name == "resnet18-imagenet") return use(nn::ResNet<T>::make({.classes = 10, .conv_bias = true}, rng));
  for (const int depth : {20, 32, 56})
    if (name == "resnet" + std::to_string(depth)) return use(nn::cifar_resnet<T>(depth, 10, rng));
  throw taut::Error("there is no network '" + name + "'");
}
