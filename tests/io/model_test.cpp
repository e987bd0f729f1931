#include <gtest/gtest.h>

#include <fstream>
#include <taut/taut.hpp>

#include "../temporary_directory.hpp"

using namespace taut;
using G = Grad<CpuArray>;

namespace {

class ModelFile : public testing::Test {
 protected:
  const test::TemporaryDirectory directory;
  const std::string path = directory / "model.safetensors";

  template <class T>
  static nn::Mlp<T> model(std::uint64_t seed, std::vector<std::int64_t> widths = {4, 3, 2}) {
    Rng rng(seed);
    return nn::Mlp<T>::make(widths, rng);
  }
  static std::string failure(const auto& action) {
    try {
      action();
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }
};

TEST_F(ModelFile, RoundTripsBitByBit) {
  const auto saved = model<G>(1);
  io::save(saved, path);
  auto loaded = model<G>(2);
  const auto* const slot_owner = &*loaded.layers[0].weight.slot();
  io::load(loaded, path);
  EXPECT_EQ(loaded.layers[0].weight.to_host(), saved.layers[0].weight.to_host());
  EXPECT_EQ(loaded.layers[1].bias->to_host(), saved.layers[1].bias->to_host());
  EXPECT_EQ(&*loaded.layers[0].weight.slot(), slot_owner) << "stays the same leaf";

  auto plain = model<CpuArray>(3);
  io::load(plain, path);
  EXPECT_EQ(plain.layers[0].weight.to_host(), saved.layers[0].weight.to_host());
  auto doubles = model<BasicCpuArray<double>>(3);
  io::load(doubles, path);
  EXPECT_EQ(doubles.layers[0].weight.to_host()[0], static_cast<double>(saved.layers[0].weight.to_host()[0]));
}

TEST_F(ModelFile, SavesBuffersToo) {
  const Buffer<CpuArray> running{CpuArray::full({2}, 7)};
  struct Norm {
    CpuArray weight;
    Buffer<CpuArray> running_mean;
  };
  io::save(Norm{CpuArray::ones({2}), running}, path);
  Norm loaded{CpuArray::zeros({2}), {CpuArray::zeros({2})}};
  io::load(loaded, path);
  EXPECT_EQ(loaded.running_mean.value.to_host(), std::vector<float>(2, 7));
}

TEST_F(ModelFile, NamesEachTensorThatDoesNotFitAndChangesNothing) {
  io::save(model<G>(1, {4, 3, 2}), path);
  auto other = model<G>(2, {4, 5, 2});
  const auto before = other.layers[1].bias->to_host();
  const auto message = failure([&] { io::load(other, path); });
  EXPECT_NE(message.find("layers.0.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("[3, 4]"), std::string::npos) << message;
  EXPECT_NE(message.find("[5, 4]"), std::string::npos) << message;
  EXPECT_EQ(other.layers[1].bias->to_host(), before) << "its shape fits, but the file does not";

  auto deeper = model<G>(2, {4, 3, 2, 2});
  EXPECT_NE(failure([&] { io::load(deeper, path); }).find("layers.2.weight"), std::string::npos);
  auto shallower = model<G>(2, {4, 3});
  EXPECT_NE(failure([&] { io::load(shallower, path); }).find("layers.1.bias"), std::string::npos);
}

TEST_F(ModelFile, PassesOverPyTorchsStepCounters) {
  std::vector<float> values{1, 2};
  std::vector<std::int64_t> steps{7};
  const std::vector<io::TensorView> tensors{
      {"weight", io::dtype_of<float>, {1, 2}, io::little_endian_bytes(std::span(values))},
      {"bn.num_batches_tracked", io::dtype_of<std::int64_t>, {1}, io::little_endian_bytes(std::span(steps))}};
  io::write_safetensors(path, tensors, {});
  auto layer = nn::Linear<CpuArray>{CpuArray::zeros({1, 2}), std::nullopt};
  io::load(layer, path);
  EXPECT_EQ(layer.weight.to_host(), (std::vector<float>{1, 2}));
}

TEST_F(ModelFile, RefusesDamagedFiles) {
  auto target = model<G>(1);
  EXPECT_NE(failure([&] { io::load(target, path + ".missing"); }).find("missing"), std::string::npos);
  io::save(target, path);
  const std::string bytes = test::file_contents(path);
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{30}, bytes.size() - 1}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(size));
    EXPECT_NE(failure([&] { io::load(target, path); }).find(path), std::string::npos) << size;
  }
}

TEST_F(ModelFile, KeepsTheOldFileWhenWritingFails) {
  const auto old = model<G>(1);
  EXPECT_NE(failure([&] { io::save(old, directory / "no/such/folder/x.safetensors"); }), "no DataError");
}

}  // namespace
