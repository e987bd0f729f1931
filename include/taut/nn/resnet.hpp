#pragma once
// Residual networks (He et al., "Deep Residual Learning for Image Recognition", 2015), with torchvision's
// names and initialisation.

#include <array>
#include <utility>
#include <vector>

#include "../op/max_pool2d.hpp"
#include "../op/resample2d.hpp"
#include "batch_norm2d.hpp"
#include "linear.hpp"

namespace taut::nn {

/// What a `ResNet` begins with: a convolution of 7 x 7 with stride 2 and max pooling, for large images; or
/// one of 3 x 3 with stride 1, for images of 32 x 32.
enum class Stem { imagenet, cifar };

struct ResNetOptions {
  std::int64_t classes = 1000;
  Stem stem = Stem::imagenet;
  std::vector<std::int64_t> blocks{2, 2, 2,
                                   2};  ///< in each stage, of which all but the first halve the image
  std::vector<std::int64_t> widths{64, 128, 256, 512};  ///< channels of each stage
  bool conv_bias = false;     ///< biases in convolutions, which normalisation undoes
  std::int64_t channels = 3;  ///< of the images
};

namespace detail {

/// He's initialisation by the fan out, as torchvision's residual networks have it.
template <AnyTensor T>
constexpr Conv2d<T> residual_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                                  bool bias, Rng& rng) {
  auto weight = fan_out_normal<T>({out, in, kernel, kernel}, out * kernel * kernel, rng);
  auto own_bias = bias ? std::optional(fan_in_uniform<T>({out}, in * kernel * kernel, rng)) : std::nullopt;
  return {std::move(weight), std::move(own_bias), {.stride = stride, .padding = kernel / 2}};
}

/// A convolution's result normalised, unless that has been folded, and cut off.
template <AnyTensor T>
constexpr T conv_relu(const Conv2d<T>& conv, const std::optional<BatchNorm2d<T>>& norm, const T& x,
                      Mode mode) {
  return norm ? norm->relu(conv(x), mode) : conv.relu(x);
}

}  // namespace detail

/// relu(f(x) + x) with two convolutions of 3 x 3 in f; x goes through one of 1 x 1 where shapes change.
template <AnyTensor T> struct BasicBlock {
  Conv2d<T> conv1;
  std::optional<BatchNorm2d<T>> bn1;
  Conv2d<T> conv2;
  std::optional<BatchNorm2d<T>> bn2;
  std::optional<std::pair<Conv2d<T>, std::optional<BatchNorm2d<T>>>> downsample;

  static constexpr BasicBlock make(std::int64_t in, std::int64_t out, std::int64_t stride, bool bias,
                                   Rng& rng) {
    BasicBlock block{detail::residual_conv<T>(in, out, 3, stride, bias, rng), BatchNorm2d<T>::make(out),
                     detail::residual_conv<T>(out, out, 3, 1, bias, rng), BatchNorm2d<T>::make(out),
                     std::nullopt};
    if (stride != 1 || in != out)
      block.downsample.emplace(detail::residual_conv<T>(in, out, 1, stride, bias, rng),
                               BatchNorm2d<T>::make(out));
    return block;
  }

  constexpr T operator()(const T& x, Mode mode) const {
    const T y = detail::conv_relu(conv1, bn1, x, mode);
    if (!downsample) return join(y, x, mode);
    const T shortcut = downsample->first(x);
    return join(y, downsample->second ? (*downsample->second)(shortcut, mode) : shortcut, mode);
  }

 private:
  constexpr T join(const T& y, const T& shortcut, Mode mode) const {
    return bn2 ? bn2->add_relu(conv2(y), shortcut, mode) : conv2.add_relu(y, shortcut);
  }
};

/// A residual network of basic blocks: images [n, 3, h, w] to logits [n, classes].
template <AnyTensor T> struct ResNet {
  Conv2d<T> conv1;
  std::optional<BatchNorm2d<T>> bn1;
  std::vector<BasicBlock<T>> layer1, layer2, layer3, layer4;
  Linear<T> fc;
  Stem stem = Stem::imagenet;

  /// Throws `ShapeError` unless there are as many widths as numbers of blocks, four at most.
  static constexpr ResNet make(const ResNetOptions& options, Rng& rng) {
    if (options.blocks.empty() || options.blocks.size() > 4 || options.blocks.size() != options.widths.size())
      throw ShapeError("ResNet: expected one to four stages, with a number of blocks and a width each");
    const auto first = options.widths.front();
    const bool large = options.stem == Stem::imagenet;
    ResNet net{detail::residual_conv<T>(options.channels, first, large ? 7 : 3, large ? 2 : 1,
                                        options.conv_bias, rng),
               BatchNorm2d<T>::make(first),
               {},
               {},
               {},
               {},
               {},
               options.stem};
    auto in = first;
    for (std::size_t stage = 0; stage < options.blocks.size(); ++stage)
      for (std::int64_t i = 0; i < options.blocks[stage]; ++i) {
        const auto out = options.widths[stage];
        net.layer(stage).push_back(
            BasicBlock<T>::make(in, out, stage > 0 && i == 0 ? 2 : 1, options.conv_bias, rng));
        in = out;
      }
    net.fc = Linear<T>::make(in, options.classes, rng);
    return net;
  }

  constexpr T operator()(const T& images, Mode mode) const {
    T x = detail::conv_relu(conv1, bn1, images, mode);
    if (stem == Stem::imagenet) x = max_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1});
    for (const auto* stage : {&layer1, &layer2, &layer3, &layer4})
      for (const auto& block : *stage) x = block(x, mode);
    return fc(global_avg_pool2d(x));
  }

  constexpr std::vector<BasicBlock<T>>& layer(std::size_t stage) {
    return stage == 0 ? layer1 : stage == 1 ? layer2 : stage == 2 ? layer3 : layer4;
  }
};

/// ResNet-18: 11.7 million parameters for 1000 classes.
template <AnyTensor T> constexpr ResNet<T> resnet18(std::int64_t classes, Stem stem, Rng& rng) {
  return ResNet<T>::make({.classes = classes, .stem = stem}, rng);
}

/// The family for images of 32 x 32 of section 4.2 of the paper: 6 n + 2 layers with n blocks a stage, 20,
/// 32, 44, 56 or 110; shapes change by convolutions of 1 x 1. Throws `ShapeError` for other depths.
template <AnyTensor T> constexpr ResNet<T> cifar_resnet(int depth, std::int64_t classes, Rng& rng) {
  if (depth < 8 || (depth - 2) % 6 != 0)
    throw ShapeError("cifar_resnet: expected a depth of 6 n + 2, such as 20, 32 or 56");
  const std::int64_t n = (depth - 2) / 6;
  return ResNet<T>::make(
      {.classes = classes, .stem = Stem::cifar, .blocks = {n, n, n}, .widths = {16, 32, 64}}, rng);
}

/// The same network for inference, with each normalisation folded into the convolution before it.
template <AnyTensor T> ResNet<T> fold_batch_norm(ResNet<T> net) {
  fold(net.conv1, net.bn1);
  for (auto* stage : {&net.layer1, &net.layer2, &net.layer3, &net.layer4})
    for (auto& block : *stage) {
      fold(block.conv1, block.bn1);
      fold(block.conv2, block.bn2);
      if (block.downsample) fold(block.downsample->first, block.downsample->second);
    }
  return net;
}

}  // namespace taut::nn
