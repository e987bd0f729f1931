#include <gtest/gtest.h>

#include <taut/taut.hpp>

using namespace taut;
using G = Grad<CpuArray>;

namespace {

struct Settings {
  int width = 3;
  std::string title = "plain";
};

template <AnyTensor T> struct Block {
  nn::Linear<T> first;
  Buffer<T> running;
};

template <AnyTensor T> struct Everything {
  T scale;
  Block<T> block;
  std::vector<nn::Linear<T>> layers;
  std::array<T, 2> pair;
  std::optional<nn::Linear<T>> head;
  Settings settings;
  bool flag = true;
};

template <AnyTensor T> Everything<T> make() {
  Rng rng(1);
  const auto leaf = [](const Shape& shape) { return nn::parameter(T::ones(shape)); };
  Everything<T> model{leaf({2}),
                      {nn::Linear<T>::make(2, 3, rng), {T::zeros({4})}},
                      {nn::Linear<T>::make(3, 3, rng), nn::Linear<T>::make(3, 1, rng, {.bias = false})},
                      {leaf({5}), leaf({6})},
                      std::nullopt,
                      {},
                      true};
  return model;
}

std::vector<std::string> names(const auto& model) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : named_tensors(model)) result.push_back(name);
  return result;
}

TEST(Model, NamesTensorsAsPyTorchDoes) {
  auto model = make<G>();
  EXPECT_EQ(names(model), (std::vector<std::string>{"scale", "block.first.weight", "block.first.bias",
                                                    "block.running", "layers.0.weight", "layers.0.bias",
                                                    "layers.1.weight", "pair.0", "pair.1"}));
  Rng rng(2);
  model.head = nn::Linear<G>::make(1, 1, rng);
  EXPECT_EQ(names(model).back(), "head.bias");
}

TEST(Model, CountsAndFindsWhatIsTrained) {
  auto model = make<G>();
  EXPECT_EQ(parameter_count(model), 2 + (6 + 3) + (9 + 3) + 3 + 5 + 6);
  const auto trained = parameters(model);
  EXPECT_EQ(trained.size(), 8u);
  for (const auto* parameter : trained) EXPECT_TRUE(parameter->is_leaf());
  EXPECT_EQ(trained.front(), &model.scale);
}

static_assert(Model<Everything<G>> && Model<const nn::Linear<CpuArray>>);
static_assert(!Model<CpuArray> && !Model<Settings> && !Model<int>);
static_assert(std::same_as<TensorOf<Everything<G>>, G>);
static_assert(std::same_as<TensorOf<nn::Mlp<ShapeTensor>>, ShapeTensor>);

TEST(Model, RebindsToOtherInterpretations) {
  auto model = make<G>();
  const auto inference = rebind<CpuArray>(model);
  static_assert(std::same_as<decltype(inference), const Everything<CpuArray>>);
  EXPECT_EQ(names(inference), names(model));
  EXPECT_EQ(inference.layers[0].weight.data(), model.layers[0].weight.value().data()) << "shared, not copied";
  EXPECT_EQ(inference.settings.title, "plain");
  EXPECT_FALSE(inference.head.has_value());
  EXPECT_FALSE(inference.layers[1].bias.has_value());

  const auto shapes = rebind<ShapeTensor>(model);
  EXPECT_EQ(shapes.block.running.value.shape(), Shape{4});

  const auto again = rebind<G>(inference);
  EXPECT_TRUE(again.scale.is_leaf());
  EXPECT_FALSE(again.block.running.value.is_leaf()) << "a buffer is not trained";

  const auto twin = rebind<G>(model);
  EXPECT_TRUE(twin.scale.is_leaf());
  EXPECT_FALSE(twin.scale.slot() == model.scale.slot()) << "a leaf of its own";

  const auto doubles = rebind<BasicCpuArray<double>>(model);
  EXPECT_EQ(doubles.layers[0].weight.to_host()[0], static_cast<double>(model.layers[0].weight.to_host()[0]));
}

TEST(Model, ASnapshotDoesNotFollowTheTraining) {
  Rng rng(3);
  auto line = nn::Linear<G>::make(1, 1, rng);
  const auto snapshot = rebind<CpuArray>(line);
  const float before = snapshot.weight.item();
  optim::Sgd sgd(line, {.lr = 0.5f});
  Tape<CpuArray> tape;
  tape.backward(sum(square(line(CpuArray::full({1, 1}, 2)) - 100.0f)));
  sgd.step();
  EXPECT_EQ(snapshot.weight.item(), before);
  EXPECT_NE(line.weight.item(), before);
}

TEST(Linear, MatchesItsFormula) {
  const nn::Linear<CpuArray> layer{CpuArray::from_host(std::array{1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3}),
                                   CpuArray::from_host(std::array{10.f, 20.f}, {2})};
  const auto x = CpuArray::from_host(std::array{1.f, 0.f, -1.f, 2.f, 1.f, 0.f}, {2, 3});
  EXPECT_EQ(layer(x).to_host(), (std::vector<float>{8, 18, 14, 33}));
  EXPECT_EQ(layer(reshape(x, {2, 1, 3})).shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(layer(CpuArray::zeros({0, 3})).shape(), (Shape{0, 2}));
}

TEST(Linear, StartsAsPyTorchDoes) {
  Rng rng(4);
  const auto layer = nn::Linear<CpuArray>::make(100, 200, rng);
  const auto values = layer.weight.to_host();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -0.1f);
  EXPECT_LT(*high, 0.1f);
  EXPECT_LT(*low, -0.099f);
  EXPECT_GT(*high, 0.099f);
  EXPECT_NEAR(mean(square(layer.weight)).item(), 0.01 / 3, 1e-4);  // the variance of a uniform on ±0.1
  EXPECT_NE(layer.bias->to_host()[0], layer.bias->to_host()[1]);
  Rng same(4);
  EXPECT_EQ(nn::Linear<CpuArray>::make(100, 200, same).weight.to_host(), values);
}

TEST(Mlp, IsLinearLayersWithReluBetween) {
  Rng rng(5);
  const auto mlp = nn::Mlp<CpuArray>::make({4, 3, 2}, rng);
  const auto x = CpuArray::normal({5, 4}, 0, 1, rng);
  EXPECT_EQ(mlp(x).to_host(), mlp.layers[1](relu(mlp.layers[0](x))).to_host());
  EXPECT_EQ(names(mlp)[0], "layers.0.weight");
}

}  // namespace
