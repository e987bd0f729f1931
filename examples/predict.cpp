// Says what is in a picture, by a network that cifar10 has trained.
//
//     predict cat.jpg cifar.safetensors

#include <taut/concepts.hpp>
#include <taut/data/augment.hpp>
#include <taut/data/cifar.hpp>
#include <taut/data/image.hpp>
#include <taut/data/resize.hpp>
#include <taut/io/model.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "cifar_networks.hpp"
#include "command_line.hpp"
#include "device.hpp"

using namespace taut;

namespace {

constexpr std::int64_t side = data::Cifar10::side;

/// A text that cifar10 has put into the file beside the weights.
std::string text_of(const io::SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw DataError(file.path(), -1,
                    "predict: '" + key + "' is missing: expected a checkpoint of cifar10 --save");
  return found->second;
}

/// The picture as the network has seen those that it learnt from: [1, 3, 32, 32].
template <class T> T read_picture(const std::string& path, bool raw) {
  std::vector<float> values(data::Cifar10::pixels);
  data::crop_and_resize(data::read_image(path), side, side, values);
  Rng none{0};
  if (!raw) data::Normalize{data::cifar10_mean, data::cifar10_std}(values, {3, side, side}, none);
  return T::from_host(values, {1, 3, side, side});
}

/// The names that a text has with commas between them.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream stream(text);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

/// The probabilities of the classes, by the network that the checkpoint is of, on the device of T.
template <ImageTensor T>
std::vector<float> classify(const std::string& picture, const io::SafetensorsFile& file) {
  const auto x = read_picture<T>(picture, text_of(file, "pixels") == "raw");
  const auto name = text_of(file, "model");
  if (std::ranges::find(cifar_networks, name) == cifar_networks.end())
    throw DataError(file.path(), -1, "predict: there is no network '" + name + "'");
  Rng rng{0};
  return with_network<T>(name, rng, [&](auto network) {
    io::load(network, file.path());
    return softmax(network(x, Mode::eval)).to_host();
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string picture, checkpoint, device = "cpu";
    int top = 5;
    CommandLine line("Says what is in a picture, by a network that cifar10 has trained.");
    line.text("picture", picture, "PNG or JPEG file; its middle is taken and scaled to 32 x 32");
    line.text("checkpoint", checkpoint, "file that cifar10 --save has written");
    line.integer("--top", top, 1, "classes to list");
    line.choice("--device", device, devices, "what computes");
    if (!line.parse(argc, argv)) return 0;
    const auto file = io::SafetensorsFile::read(checkpoint);
    const auto share = with_device(device, [&]<class T>() { return classify<T>(picture, file); });
    const auto names = split(text_of(file, "classes"));
    if (names.size() != share.size())
      throw DataError(checkpoint, -1, "predict: expected a name for each class");
    std::vector<std::size_t> order(share.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return share[a] > share[b]; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(top)));
    for (const auto i : order)
      std::printf("%6.2f%%  %s\n", 100 * static_cast<double>(share[i]), names[i].c_str());
  } catch (const std::exception& error) {
    std::cerr << "predict: " << error.what() << '\n';
    return 1;
  }
}
