// Trains a small network to recognise images of 28 x 28: MNIST's digits, or any data set in the same format.
//
//     mnist --epochs 3 --save mnist.safetensors     trains and keeps the weights
//     mnist --load mnist.safetensors --epochs 0     measures them
//     mnist --device cuda                           trains on a GPU

#include <taut/concepts.hpp>
#include <taut/data/mnist.hpp>
#include <taut/io/model.hpp>
#include <taut/nn/linear.hpp>
#include <taut/nn/summary.hpp>
#include <taut/optim/adam.hpp>
#include <taut/optim/schedule.hpp>
#include <taut/optim/sgd.hpp>
#include <taut/train/csv_log.hpp>
#include <taut/train/fit.hpp>
#include <taut/train/progress.hpp>

#include <iostream>
#include <memory>
#include <string>

#include "command_line.hpp"
#include "device.hpp"
#include "loader.hpp"

using namespace taut;

namespace {

/// Images [n, 1, 28, 28] to logits [n, 10].
template <BlasTensor T> struct Classifier {
  nn::Linear<T> hidden1, hidden2, out;

  static Classifier make(Rng& rng) {
    return {nn::Linear<T>::make(data::Mnist::pixels, 128, rng), nn::Linear<T>::make(128, 64, rng),
            nn::Linear<T>::make(64, data::Mnist::classes, rng)};
  }

  T operator()(const T& images) const { return out(hidden2.relu(hidden1.relu(flatten(images)))); }
};

struct Options {
  std::string data, device = "cpu", optimizer = "sgd", load, save, csv;
  double lr = 0;
  int epochs = 10, batch_size = 64, threads = 1, workers = 1;
  std::uint64_t seed = 1;
};

void declare(CommandLine& line, Options& options) {
  line.text(
      "--data", options.data,
      "directory of the four IDX files; unless given, data/mnist, or else the Fashion-MNIST of Debian's "
      "package dataset-fashion-mnist");
  line.choice("--device", options.device, devices, "what computes");
  line.integer("--epochs", options.epochs, 0, "passes over the training images; 0 only measures");
  line.integer("--batch-size", options.batch_size, 1, "images a step");
  line.choice("--optimizer", options.optimizer, {"sgd", "adam", "adamw"}, "update rule");
  line.positive("--lr", options.lr,
                "learning rate, halved every 5 epochs; unless given, 0.01 for sgd, 0.001 for the others");
  line.integer("--seed", options.seed, "of the first weights and of the order of the images");
  line.integer("--threads", options.threads, 0,
               "threads that compute, of which a network this small gains little; 0 takes one a core");
  line.integer("--workers", options.workers, 0, "threads that read batches ahead");
  line.text("--load", options.load, "safetensors file of the weights to start from");
  line.text("--save", options.save, "safetensors file for the weights at the end");
  line.text("--csv", options.csv, "file for a table of the epochs");
}

template <class Network>
std::unique_ptr<optim::Optimizer> make_optimizer(const Options& options, Network& network) {
  std::unique_ptr<optim::Optimizer> optimizer;
  if (options.optimizer == "sgd")
    optimizer = std::make_unique<optim::Sgd>(
        network, optim::SgdRule{.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-4});
  else if (options.optimizer == "adam")
    optimizer = std::make_unique<optim::Adam>(network, optim::AdamRule<false>{.lr = options.lr});
  else
    optimizer = std::make_unique<optim::AdamW>(network, optim::AdamRule<true>{.lr = options.lr});
  optimizer->set_clip_norm(35);
  return optimizer;
}

std::string find_data(const Options& options) {
  if (!options.data.empty()) return options.data;
  const std::string here = "data/mnist";
  const bool only_debian =
      !data::Mnist::is_present(here) && data::Mnist::is_present(data::fashion_mnist_directory);
  return only_debian ? data::fashion_mnist_directory : here;
}

/// The whole run on the device of T.
template <BlasTensor T> void run(const Options& options) {
  if (options.threads > 0) set_threads(options.threads);

  const std::string directory = find_data(options);
  const auto train_data = data::Mnist::load(directory, data::Split::train);
  const auto test_data = data::Mnist::load(directory, data::Split::test);
  std::cout << "data: " << directory << ", " << train_data.size() << " images to train, " << test_data.size()
            << " to test\n";
  auto train_loader = make_loader<T>(
      train_data, {.batch_size = options.batch_size, .seed = options.seed, .workers = options.workers});
  auto test_loader =
      make_loader<T>(test_data, {.batch_size = 500, .shuffle = false, .workers = options.workers});

  Rng rng{options.seed};
  auto network = Classifier<Grad<T>>::make(rng);  // `Grad`: this one can be trained
  std::cout << summary(network);
  if (!options.load.empty()) io::load(network, options.load);
  if (!options.save.empty())
    io::ReplacementFile writable(options.save);  // throws now, not after the training
  const auto optimizer = make_optimizer(options, network);
  train::Optional<train::CsvLog> log;
  if (!options.csv.empty()) log.callback.emplace(options.csv);

  const optim::StepSchedule halve_every_5{options.lr, 5, 0.5};
  train::fit(network, *optimizer, train_loader, test_loader,
             {.epochs = options.epochs, .lr_by_epoch = halve_every_5}, train::ProgressBar{std::cout}, log);

  if (!options.save.empty()) io::save(network, options.save);
  const auto result = train::evaluate(network, test_loader);
  std::cout << "test loss " << result.loss << ", test accuracy " << 100 * result.accuracy << "%\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CommandLine line("Trains a network to recognise the images of MNIST, or of a data set in its format.");
    declare(line, options);
    if (!line.parse(argc, argv)) return 0;
    if (options.lr == 0) options.lr = options.optimizer == "sgd" ? 0.01 : 0.001;
    with_device(options.device, [&]<class T>() { run<T>(options); });
  } catch (const std::exception& error) {
    std::cerr << "mnist: " << error.what() << '\n';
    return 1;
  }
}
