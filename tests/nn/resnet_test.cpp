// Residual networks against PyTorch's, whose results are in ../fixtures/nn.

#include <gtest/gtest.h>

#include <taut/cpu/cpu.hpp>
#include <taut/io/model.hpp>
#include <taut/nn/lenet.hpp>
#include <taut/nn/resnet.hpp>
#include <taut/optim/sgd.hpp>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "../temporary_directory.hpp"

using namespace taut;
using G = Grad<CpuArray>;

namespace {

/// The numbers of ../fixtures/nn/make.py's function of the same name.
std::vector<float> pattern(const std::string& name, std::int64_t count, double scale, double offset) {
  std::uint32_t bits = 2166136261u;
  for (const char byte : name) bits = (bits ^ static_cast<unsigned char>(byte)) * 16777619u;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i, bits += 2654435761u)
    values.push_back(static_cast<float>(offset + scale * ((bits >> 8) * 0x1p-24 - 0.5)));
  return values;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::vector<float> values_for(const std::string& name, const Shape& shape) {
  const auto per_output = static_cast<double>(shape.size() / shape[0]);
  if (shape.rank() > 1) return pattern(name, shape.size(), std::sqrt(24 / per_output), 0);
  if (ends_with(name, "running_var") || ends_with(name, "weight")) return pattern(name, shape.size(), 0.5, 1);
  return pattern(name, shape.size(), 0.25, 0);
}

/// As an array of T's elements.
template <class T> T array(const std::vector<float>& values, const Shape& shape) {
  return T::from_host(std::vector<typename T::Element>(values.begin(), values.end()), shape);
}

template <class M> void fill(M& model) {
  for (auto& [name, tensor] : named_tensors(model)) {
    const auto values = values_for(name, tensor.shape());
    if constexpr (is_grad<TensorOf<M>>)
      tensor.assign(array<typename TensorOf<M>::Inner>(values, tensor.shape()));
    else
      tensor = array<TensorOf<M>>(values, tensor.shape());
  }
}

template <class T = CpuArray> T images(std::int64_t count, std::int64_t side) {
  const Shape shape{count, 3, side, side};
  return array<T>(pattern("images", shape.size(), 2, 0), shape);
}

std::map<std::string, std::vector<double>> read_fixture() {
  const std::string here = __FILE__;
  std::ifstream file(here.substr(0, here.rfind('/')) + "/../fixtures/nn/resnet.txt");
  std::map<std::string, std::vector<double>> result;
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    std::istringstream numbers(line.substr(colon + 1));
    for (double x; numbers >> x;) result[line.substr(0, colon)].push_back(x);
  }
  return result;
}

const auto fixture = read_fixture();

template <class T> void expect_logits(const std::string& name, const T& logits, double tolerance) {
  const auto& expected = fixture.at(name);
  const auto got = logits.to_host();
  ASSERT_EQ(got.size(), expected.size()) << name;
  double largest = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(static_cast<double>(got[i]), expected[i], tolerance * largest) << name << ", " << i;
}

using Net = nn::ResNet<CpuArray>;

Net make(const nn::ResNetOptions& options) {
  Rng rng{1};
  auto net = Net::make(options, rng);
  fill(net);
  return net;
}

struct Network {
  const char* name;
  nn::ResNetOptions options;
  std::int64_t side;
};

const Network networks[] = {
    {"resnet18_imagenet", {.classes = 10}, 64},
    {"resnet18_cifar", {.classes = 10, .stem = nn::Stem::cifar}, 32},
    {"resnet18_with_biases", {.classes = 10, .conv_bias = true}, 32},
    {"resnet20", {.classes = 10, .stem = nn::Stem::cifar, .blocks = {3, 3, 3}, .widths = {16, 32, 64}}, 32},
};

TEST(ResNet, GivesPyTorchsLogits) {
  for (const auto& [name, options, side] : networks)
    expect_logits(name, make(options)(images(2, side), Mode::eval), 1e-4);
}

TEST(ResNet, GivesPyTorchsLogitsByEachEngine) {
  const auto& [name, options, side] = networks[3];
  const auto net = make(options);
  for (const auto algorithm :
       {cpu::ConvAlgorithm::direct, cpu::ConvAlgorithm::winograd, cpu::ConvAlgorithm::automatic}) {
    cpu::set_conv_algorithm(algorithm);
    expect_logits(name, net(images(2, side), Mode::eval), 1e-4);
  }
  cpu::use_onednn(false);
  expect_logits(name, net(images(2, side), Mode::eval), 1e-4);
  cpu::use_onednn(true);
}

TEST(ResNet, GivesTheSameWithNormalisationFolded) {
  for (const auto& [name, options, side] : networks) {
    const auto net = make(options), folded = nn::fold_batch_norm(net);
    EXPECT_FALSE(folded.bn1.has_value());
    EXPECT_LT(named_tensors(folded).size(), named_tensors(net).size());
    expect_logits(name, folded(images(2, side), Mode::eval), 1e-4);
  }
}

/// Trains on one batch; each of the first `steps` losses may be off by a part of `tolerance`.
template <class T> auto train(std::size_t steps, double tolerance) {
  Rng rng{1};
  auto net = nn::ResNet<Grad<T>>::make(
      {.classes = 10, .stem = nn::Stem::cifar, .blocks = {1, 1}, .widths = {16, 32}}, rng);
  fill(net);
  optim::Sgd sgd{net, {.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4}};
  const auto x = images<T>(8, 16);
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < 8; ++i) classes.push_back(i * 3 % 10);
  const auto labels = T::Index::from_host(classes, {8});
  for (std::size_t step = 0; step < steps; ++step) {
    const double expected = fixture.at("losses")[step];
    Tape<T> tape;
    const auto loss = cross_entropy(net(x, Mode::train), labels);
    tape.backward(loss);
    sgd.step();
    EXPECT_NEAR(static_cast<double>(loss.item()), expected, tolerance * expected) << step;
  }
  return rebind<T>(net)(x, Mode::eval);
}

TEST(ResNet, TrainsAsPyTorchDoes) {
  // The fixture's weights are floats, and so differ a little from what PyTorch computes them to be in double.
  expect_logits("trained", train<BasicCpuArray<double>>(10, 1e-6), 1e-5);
}

TEST(ResNet, TrainsInFloatByEachEngineAsPyTorchDoes) {
  for (const auto algorithm : {cpu::ConvAlgorithm::direct, cpu::ConvAlgorithm::winograd}) {
    cpu::set_conv_algorithm(algorithm);
    train<CpuArray>(4, 1e-3);
  }
  cpu::set_conv_algorithm(cpu::ConvAlgorithm::automatic);
}

TEST(ResNet, ConvertsNothingBetweenConvolutions) {
#if TAUT_HAS_ONEDNN
  Rng rng{1};
  auto net = nn::cifar_resnet<G>(20, 10, rng);
  const auto x = images(2, 32);
  const auto labels = CpuArray::Index::from_host(std::vector<std::int64_t>{1, 2}, {2});
  const auto step = [&] {
    const auto before = cpu::conversions().count;
    Tape<CpuArray> tape;
    tape.backward(cross_entropy(net(x, Mode::train), labels));
    return cpu::conversions().count - before;
  };
  step();
  // The gradient of the mean over all pixels, which knows of no layout, is converted once.
  EXPECT_LE(step(), 1);
#endif
}

TEST(ResNet, HasTorchvisionsNames) {
  const auto net = make(networks[0].options);
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : named_tensors(net)) shapes[name] = tensor.shape();
  EXPECT_EQ(shapes.at("conv1.weight"), (Shape{64, 3, 7, 7}));
  EXPECT_EQ(shapes.at("layer2.0.downsample.0.weight"), (Shape{128, 64, 1, 1}));
  EXPECT_EQ(shapes.at("layer2.0.downsample.1.running_var"), (Shape{128}));
  EXPECT_EQ(shapes.at("layer4.1.bn2.running_mean"), (Shape{512}));
  EXPECT_EQ(shapes.at("fc.weight"), (Shape{10, 512}));
  EXPECT_EQ(shapes.size(), 102u);  // torchvision's 122 without num_batches_tracked
}

TEST(ResNet, ShapesAreCheckedByTheCompiler) {
  static_assert([] {
    Rng rng{0};
    const auto net = nn::resnet18<ShapeTensor>(1000, nn::Stem::imagenet, rng);
    return parameter_count(net) == 11'689'512 &&
           net(ShapeTensor{{2, 3, 224, 224}}, Mode::eval).shape() == Shape{2, 1000};
  }());
  static_assert([] {
    Rng rng{0};
    return parameter_count(nn::cifar_resnet<ShapeTensor>(20, 10, rng)) == 272'474;
  }());
  static_assert([] {
    Rng rng{0};
    const auto net = nn::LeNet<ShapeTensor>::make(1, 28, 10, rng);
    return net(ShapeTensor{{3, 1, 28, 28}}).shape() == Shape{3, 10};
  }());
}

TEST(ResNet, CostsWhatIsKnownOfIt) {
  Rng rng{0};
  const auto net = nn::resnet18<ShapeTensor>(1000, nn::Stem::imagenet, rng);
  const auto total = cost([&](const auto& x) { return net(x, Mode::eval); }, Shape{1, 3, 224, 224});
  EXPECT_NEAR(static_cast<double>(total.flops), 2 * 1.82e9, 0.03e9);  // 1.82 billion multiply-adds
}

TEST(ResNet, RefusesDepthsAndStagesThatThereAreNot) {
  Rng rng{1};
  EXPECT_THROW(nn::cifar_resnet<CpuArray>(21, 10, rng), ShapeError);
  EXPECT_THROW(Net::make({.blocks = {1, 1}}, rng), ShapeError);
  EXPECT_THROW(Net::make({.blocks = {}, .widths = {}}, rng), ShapeError);
  EXPECT_THROW(nn::LeNet<CpuArray>::make(1, 12, 10, rng), ShapeError);
}

TEST(BatchNorm2d, MovesItsStatisticsInTrainingOnly) {
  Rng rng{1};
  const auto norm = nn::BatchNorm2d<CpuArray>::make(2);
  const auto x = CpuArray::from_host(std::vector<float>{1, 3, 10, 30}, {2, 2, 1, 1});
  norm(x, Mode::eval);
  EXPECT_EQ(norm.running_mean.value.to_host(), (std::vector<float>{0, 0}));
  norm(x, Mode::train);
  const auto mean = norm.running_mean.value.to_host(), var = norm.running_var.value.to_host();
  EXPECT_FLOAT_EQ(mean[0], 0.1f * 5.5f);
  EXPECT_FLOAT_EQ(var[1], 0.9f + 0.1f * 364.5f);  // the unbiased variance of 3 and 30
}

TEST(BatchNorm2d, StatisticsAreSavedAndLoadedButNotTrained) {
  Rng rng{1};
  auto net = nn::cifar_resnet<G>(8, 10, rng);
  net(images(4, 16), Mode::train);
  const test::TemporaryDirectory directory;
  const std::string path = directory / "model.safetensors";
  io::save(net, path);
  auto other = nn::cifar_resnet<CpuArray>(8, 10, rng);
  io::load(other, path);
  EXPECT_EQ(other(images(2, 16), Mode::eval).to_host(), net(images(2, 16), Mode::eval).to_host());
  EXPECT_EQ(parameters(net).size() + 2 * 9, named_tensors(net).size());
}

}  // namespace
