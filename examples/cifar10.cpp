// Trains a convolutional network on CIFAR-10's 60,000 colour images of 32 x 32; without the data, on pictures
// that it draws itself.
//
//     cifar10 --model resnet20 --epochs 20 --augment --schedule cosine --save cifar.safetensors
//     cifar10 --resume cifar.safetensors --epochs 40 ...      goes on from there
//     cifar10 --device cuda ...                               on a GPU

#include <taut/concepts.hpp>
#include <taut/data/augment.hpp>
#include <taut/data/cifar.hpp>
#include <taut/data/drawn_shapes.hpp>
#include <taut/io/checkpoint.hpp>
#include <taut/nn/summary.hpp>
#include <taut/optim/ema.hpp>
#include <taut/optim/schedule.hpp>
#include <taut/optim/sgd.hpp>
#include <taut/train/csv_log.hpp>
#include <taut/train/fit.hpp>
#include <taut/train/predictions.hpp>
#include <taut/train/progress.hpp>
#include <taut/train/report.hpp>
#include <taut/train/report_image.hpp>
#include <taut/train/tensorboard.hpp>

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cifar_networks.hpp"
#include "command_line.hpp"
#include "device.hpp"
#include "loader.hpp"

using namespace taut;

namespace {

struct Options {
  std::string data, device = "cpu", model = "resnet18", schedule = "cosine", load, save, resume, csv,
                    report = "report.html", tensorboard;
  double lr = 0.1, momentum = 0.9, weight_decay = 5e-4, clip = 0, label_smoothing = 0, ema = 0;
  int epochs = 10, batch_size = 128, threads = 0, workers = 1;
  std::uint64_t seed = 1;
  bool augment = false, raw = false;
};

void declare(CommandLine& line, Options& options) {
  line.choice("--model", options.model, cifar_networks,
              "network; resnet18-imagenet has the stem for large images and biases");
  line.text("--data", options.data,
            "directory of CIFAR-10's binary files; unless given, data/cifar-10, or else pictures drawn here");
  line.choice("--device", options.device, devices, "what computes");
  line.integer("--epochs", options.epochs, 0,
               "passes over the training images, those before --resume included");
  line.integer("--batch-size", options.batch_size, 1, "images a step");
  line.positive("--lr", options.lr, "learning rate at the start");
  line.number("--momentum", options.momentum, 0, 1, "of stochastic gradient descent");
  line.number("--weight-decay", options.weight_decay, 0, 1, "of all parameters");
  line.number("--clip", options.clip, 0, 1e9, "largest global norm of the gradients; 0 does not clip");
  line.flag("--augment", options.augment, "crop with padding 4 and flip at random");
  line.flag("--raw", options.raw, "leave pixels from 0 to 1, instead of giving them mean 0 and deviation 1");
  line.number("--label-smoothing", options.label_smoothing, 0, 1, "probability given to all classes alike");
  line.choice("--schedule", options.schedule, {"constant", "step", "cosine"},
              "of the learning rate; step takes a tenth after every 20 epochs");
  line.number("--ema", options.ema, 0, 0.99999,
              "decay of a moving average of the weights that is measured, too; 0: none");
  line.integer("--seed", options.seed,
               "of the first weights, the order of the images and their augmentation");
  line.integer("--threads", options.threads, 0, "threads that compute; 0 takes one a core");
  line.integer("--workers", options.workers, 0, "threads that read and augment batches ahead");
  line.text("--load", options.load, "safetensors file of the weights to start from");
  line.text("--resume", options.resume, "checkpoint of --save to go on from");
  line.text("--save", options.save,
            "checkpoint to write after each epoch; with --ema, also that name with .ema, the average");
  line.text("--csv", options.csv, "file for a table of the epochs, to which --resume appends");
  line.text("--report", options.report,
            "HTML file for curves, confusions and the worst mistakes; '' writes none");
  line.text("--tensorboard", options.tensorboard, "directory for TensorBoard's event files");
}

/// CIFAR-10, or pictures drawn in its place.
struct Images : data::ByteImages {
  std::string name;
  std::vector<std::string> class_names;
};

Images load_images(const std::string& directory, data::Split split) {
  const auto& names = data::cifar10_classes;
  return {data::Cifar10::load(directory, split), "CIFAR-10", {names.begin(), names.end()}};
}

Images draw_images(std::int64_t count, std::uint64_t seed) {
  const data::DrawnShapes shapes(count, seed);
  const Shape shape = shapes.sample_shape();
  std::vector<std::uint8_t> pixels, labels;
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  Rng none{0};
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::uint8_t>(shapes.get(i, values, none)));
    const auto bytes = train::to_pixels(values);
    pixels.insert(pixels.end(), bytes.begin(), bytes.end());
  }
  const auto& names = data::drawn_shapes_classes;
  return {data::ByteImages("DrawnShapes", shape, std::move(pixels), std::move(labels)),
          "drawn shapes",
          {names.begin(), names.end()}};
}

struct Data {
  Images train, test;
};

Data load_data(const Options& options) {
  const std::string here = "data/cifar-10", directory = options.data.empty() ? here : options.data;
  if (options.data.empty() && !data::Cifar10::is_present(here)) {
    std::cout << "data: there is no " << here << " (`sh examples/download.sh cifar-10 " << here
              << "` gets it): training on pictures drawn here\n";
    return {draw_images(10'000, 1), draw_images(2'000, 2)};
  }
  Data data{load_images(directory, data::Split::train), load_images(directory, data::Split::test)};
  std::cout << "data: " << directory << ", " << data.train.size() << " images to train, " << data.test.size()
            << " to test\n";
  return data;
}

auto prepared(const Images& images, bool augment, const Options& options) {
  constexpr std::array<float, 3> zeros{0, 0, 0}, ones{1, 1, 1};
  return data::Augmented{
      images, data::RandomCrop{augment ? 4 : 0}, data::HorizontalFlip{augment ? 0.5 : 0.0},
      options.raw ? data::Normalize{zeros, ones} : data::Normalize{data::cifar10_mean, data::cifar10_std}};
}

struct SmoothedLoss {
  double smoothing = 0;
  template <AnyTensor X, AnyTensor Labels> auto operator()(const X& logits, const Labels& labels) const {
    return cross_entropy(logits, labels, smoothing);
  }
};

/// The learning rate of a step.
std::function<double(std::int64_t)> make_schedule(const Options& options, std::int64_t steps_per_epoch) {
  if (options.schedule == "cosine")
    return optim::CosineSchedule{options.lr, steps_per_epoch * options.epochs};
  const optim::StepSchedule by_epoch{options.lr, 20, options.schedule == "step" ? 0.1 : 1.0};
  return [by_epoch, steps_per_epoch](std::int64_t step) { return by_epoch(step / steps_per_epoch); };
}

/// Writes a checkpoint after each epoch, and keeps the moving average of the weights.
template <class Network> struct Keeper {
  const Network& network;
  const optim::Optimizer& optimizer;
  const Options& options;
  io::Metadata about;  // what `predict` has to know
  std::optional<optim::Ema<Network>> ema;

  void on_batch(const train::BatchEvent& event) {
    if (ema && event.phase == train::Phase::train) ema->update(network);
  }
  void on_epoch(const train::EpochResult& result) {
    if (options.save.empty()) return;
    about["epoch"] = std::to_string(result.epoch);
    io::save_checkpoint(network, optimizer, options.save, about);
    if (ema) io::save(ema->model(), options.save + ".ema", about);
  }
};

/// Goes on from a checkpoint of the same network on the same data; returns how many epochs have been done.
template <class Network>
int resume(const std::string& path, Network& network, optim::Optimizer& optimizer,
           const io::Metadata& about) {
  const auto texts = io::load_checkpoint(network, optimizer, path);
  for (const auto& [key, wanted] : about) {
    const auto found = texts.find(key);
    if (found == texts.end() || found->second != wanted)
      throw DataError(path, -1,
                      "cifar10: to resume, '" + key + "' must be '" + wanted + "', got '" +
                          (found == texts.end() ? "" : found->second) + "'");
  }
  const std::string text = texts.contains("epoch") ? texts.at("epoch") : "";
  int done = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), done);
  if (error != std::errc() || end != text.data() + text.size() || done < 0)
    throw DataError(path, -1, "cifar10: expected the number of an epoch, got '" + text + "'");
  std::cout << "going on after epoch " << done << " of " << path << '\n';
  return done;
}

/// What `predict` has to know of a network, and --resume compares.
io::Metadata describe(const Options& options, const Images& images) {
  std::string classes;
  for (const auto& name : images.class_names) (classes += classes.empty() ? "" : ",") += name;
  return {{"model", options.model}, {"pixels", options.raw ? "raw" : "normalized"}, {"classes", classes}};
}

/// What it takes to repeat a run, for its report.
std::vector<std::pair<std::string, std::string>> settings(const Options& options) {
  const auto number = [](double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  };
  return {{"--device", options.device},
          {"--model", options.model},
          {"--epochs", std::to_string(options.epochs)},
          {"--batch-size", std::to_string(options.batch_size)},
          {"--lr", number(options.lr)},
          {"--momentum", number(options.momentum)},
          {"--weight-decay", number(options.weight_decay)},
          {"--clip", number(options.clip)},
          {"--schedule", options.schedule},
          {"augmented", options.augment ? "yes" : "no"},
          {"pixels", options.raw ? "raw" : "normalized"},
          {"--label-smoothing", number(options.label_smoothing)},
          {"--ema", number(options.ema)},
          {"--seed", std::to_string(options.seed)},
          {"--threads", std::to_string(threads())}};
}

/// Adds to a report which classes the network confuses, and the images that it is most wrong about.
template <class Network, class Loader>
void show_mistakes(train::HtmlReport& report, const Network& network, Loader& loader, const Images& images) {
  using T = typename TensorOf<Network>::Inner;
  const auto plain = rebind<T>(network);
  train::Predictions predictions;
  for (const auto& batch : loader)
    predictions.add(plain(batch.template tensor<T>(), Mode::eval).to_host(), batch.labels);
  report.set_confusion(images.class_names, predictions.labels, predictions.predicted);
  std::vector<train::ReportImage> worst;
  for (const auto i : predictions.worst(24)) {
    const auto pixels = images.image(static_cast<std::int64_t>(i));
    const auto name = [&](std::int64_t label) { return images.class_names[static_cast<std::size_t>(label)]; };
    worst.push_back({images.sample_shape(),
                     {pixels.begin(), pixels.end()},
                     name(predictions.labels[i]),
                     name(predictions.predicted[i]),
                     predictions.label_probability[i],
                     predictions.predicted_probability[i]});
  }
  report.set_images(worst);
  report.write();
}

template <class Network> void run(const Options& options, Network network) {
  const Data data = load_data(options);
  std::cout << summary(network);
  if (!options.load.empty()) io::load(network, options.load);
  optim::Sgd sgd{network,
                 {.lr = options.lr, .momentum = options.momentum, .weight_decay = options.weight_decay}};
  sgd.set_clip_norm(options.clip);
  int done = 0;
  const auto about = describe(options, data.test);
  if (!options.resume.empty()) done = resume(options.resume, network, sgd, about);
  if (!options.save.empty()) {  // throws now, not after an epoch
    io::ReplacementFile writable(options.save);
    if (options.ema > 0) io::ReplacementFile average(options.save + ".ema");
  }

  using T = typename TensorOf<Network>::Inner;
  auto train_loader =
      make_loader<T>(prepared(data.train, options.augment, options), {.batch_size = options.batch_size,
                                                                      .seed = options.seed,
                                                                      .workers = options.workers,
                                                                      .first_epoch = done});
  auto test_loader = make_loader<T>(prepared(data.test, false, options),
                                    {.batch_size = 250, .shuffle = false, .workers = options.workers});
  Keeper<Network> keeper{network, sgd, options, about, {}};
  if (options.ema > 0) keeper.ema.emplace(network, options.ema, sgd.steps());
  if (keeper.ema && done > 0) io::load(keeper.ema->model(), options.resume + ".ema");
  train::Optional<train::CsvLog> log;
  if (!options.csv.empty())
    log.callback.emplace(options.csv, done > 0 ? train::CsvMode::append : train::CsvMode::create);
  train::Optional<train::HtmlReport> report;
  if (!options.report.empty())
    report.callback.emplace(options.report,
                            train::ReportOptions{.title = options.model + " on " + data.test.name,
                                                 .settings = settings(options),
                                                 .model = summary(network)});
  train::Optional<train::TensorBoardLog> tensorboard;
  if (!options.tensorboard.empty()) tensorboard.callback.emplace(options.tensorboard);

  train::FitOptions<SmoothedLoss> fit{.epochs = options.epochs,
                                      .epochs_done = done,
                                      .lr_by_step = make_schedule(options, train_loader.batches_per_epoch()),
                                      .loss = {options.label_smoothing}};
  train::fit(network, sgd, train_loader, test_loader, fit, train::ProgressBar{std::cout}, keeper, log, report,
             tensorboard);

  if (report.callback) show_mistakes(*report.callback, network, test_loader, data.test);
  const auto result = train::evaluate(network, test_loader);
  std::cout << "test loss " << result.loss << ", test accuracy " << 100 * result.accuracy << "%\n";
  if (keeper.ema)
    std::cout << "test accuracy of the averaged weights "
              << 100 * train::evaluate(keeper.ema->model(), test_loader).accuracy << "%\n";
}

/// The whole run on the device of T.
template <ImageTensor T> void run(const Options& options) {
  if (options.threads > 0) set_threads(options.threads);
  Rng rng{options.seed};
  with_network<Grad<T>>(options.model, rng,  // `Grad`: this one can be trained
                        [&](auto network) { run(options, std::move(network)); });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CommandLine line("Trains a convolutional network to recognise the images of CIFAR-10.");
    declare(line, options);
    if (!line.parse(argc, argv)) return 0;
    with_device(options.device, [&]<class T>() { run<T>(options); });
  } catch (const std::exception& error) {
    std::cerr << "cifar10: " << error.what() << '\n';
    return 1;
  }
}
