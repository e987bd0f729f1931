#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <taut/cpu/cpu.hpp>
#include <taut/data/data_loader.hpp>
#include <taut/interpret/profiled.hpp>
#include <taut/nn/linear.hpp>
#include <taut/optim/schedule.hpp>
#include <taut/optim/sgd.hpp>
#include <taut/train/fit.hpp>
#include <taut/train/progress.hpp>
#include <vector>

using namespace taut;
using namespace taut::train;

namespace {

// Points around three corners of a triangle; the corner is the label, and no two corners' points mix.
struct Triangle {
  std::int64_t count = 96;
  std::int64_t nan_sample = -1;

  std::int64_t size() const { return count; }
  Shape sample_shape() const { return {2}; }
  std::int64_t get(std::int64_t index, std::span<float> values, Rng&) const {
    const std::int64_t corner = index % 3;
    Rng noise = Rng{7}.fork(static_cast<std::uint64_t>(index));
    values[0] = (corner == 0 ? -1.0f : 1.0f) + static_cast<float>(noise.uniform() - 0.5);
    values[1] = (corner == 1 ? -1.0f : 1.0f) + static_cast<float>(noise.uniform() - 0.5);
    if (index == nan_sample) values[0] = std::numeric_limits<float>::quiet_NaN();
    return corner;
  }
};

using Triangles = data::DataLoader<Triangle>;

Triangles triangles(Triangle set = {}, bool shuffle = true) {
  return Triangles{set, {.batch_size = 16, .shuffle = shuffle, .seed = 3, .workers = 0}};
}

template <AnyTensor T> struct Net {
  nn::Linear<T> hidden, out;

  static Net make(std::uint64_t seed = 1) {
    Rng rng{seed};
    return {nn::Linear<T>::make(2, 8, rng), nn::Linear<T>::make(8, 3, rng)};
  }
  T operator()(const T& x) const { return out(tanh(hidden(x))); }
};

// One output for each sample: nothing to take the largest of.
template <AnyTensor T> struct FlatNet {
  T scale = T::ones({2});
  T operator()(const T& x) const { return sum(x * scale, {1}); }
};

// Its two meanings differ.
template <AnyTensor T> struct ModalNet {
  T weight;
  T operator()(const T& x, Mode mode) const {
    return matmul(x, weight) * (mode == Mode::train ? 1.0f : 0.0f);
  }
};

using Trained = Net<Grad<CpuArray>>;

// Notes all that it is told, under its name, in a list that callbacks can share.
struct Recorder {
  std::string name;
  std::vector<std::string>& heard;

  void on_batch(const BatchEvent& event) {
    heard.push_back(name + (event.phase == Phase::train ? " train " : " test ") +
                    std::to_string(event.epoch) + "/" + std::to_string(event.epochs) + " " +
                    std::to_string(event.batch) + "/" + std::to_string(event.batches) + " of " +
                    std::to_string(event.samples));
  }
  void on_epoch(const EpochResult& result) {
    heard.push_back(name + " epoch " + std::to_string(result.epoch));
  }
};

// The loss and the learning rate of every step.
struct StepLog {
  const optim::Optimizer& optimizer;
  std::vector<double> losses{}, rates{};

  void on_batch(const BatchEvent& event) {
    if (event.phase == Phase::test) return;
    losses.push_back(event.loss);
    rates.push_back(optimizer.learning_rate());
  }
};

struct StopAtBatch {
  Phase phase = Phase::train;
  std::int64_t batch = 1;
  Control on_batch(const BatchEvent& event) const {
    return event.phase == phase && event.batch == batch ? Control::stop : Control::proceed;
  }
};

struct StopAtEpoch {
  int epoch = 1;
  Control on_epoch(const EpochResult& result) const {
    return result.epoch == epoch ? Control::stop : Control::proceed;
  }
};

struct NotACallback {};
static_assert(Callback<Recorder> && Callback<StopAtBatch&> && Callback<StopAtEpoch> &&
              Callback<ProgressBar&>);
static_assert(!Callback<NotACallback>);
static_assert(Loader<Triangles> && Loader<const data::Epoch>);
static_assert(!Loader<Triangle> && !Loader<FitOptions<>>);

std::vector<float> weights(const Trained& model) {
  std::vector<float> all;
  for (const auto* parameter : parameters(model))
    for (const float w : parameter->to_host()) all.push_back(w);
  return all;
}

template <class Call> std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Fit, GoesOnAfterEpochsThatAreDone) {
  const auto rate = [](std::int64_t step) { return 0.1 / (1.0 + static_cast<double>(step)); };
  auto at_once = Net<Grad<CpuArray>>::make(), in_parts = Net<Grad<CpuArray>>::make();
  optim::Sgd sgd{at_once, {.lr = 0.1}}, other{in_parts, {.lr = 0.1}};
  auto loader = triangles();
  const auto whole = fit(at_once, sgd, loader, {.epochs = 4, .lr_by_step = rate});

  auto first_loader = triangles();
  fit(in_parts, other, first_loader, {.epochs = 2, .lr_by_step = rate});
  Triangles rest{Triangle{}, {.batch_size = 16, .seed = 3, .workers = 0, .first_epoch = 2}};
  const auto history = fit(in_parts, other, rest, {.epochs = 4, .epochs_done = 2, .lr_by_step = rate});
  ASSERT_EQ(history.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(history[i].epoch, static_cast<int>(i) + 3);
    EXPECT_EQ(history[i].train_loss, whole[i + 2].train_loss);
    EXPECT_EQ(history[i].learning_rate, whole[i + 2].learning_rate);
  }
  EXPECT_THROW(fit(in_parts, other, rest, {.epochs_done = -1}), Error);
}

}  // namespace

TEST(Fit, LearnsToSeparate) {
  auto model = Trained::make();
  optim::Sgd sgd{model, {.lr = 0.5f, .momentum = 0.9f}};
  auto train = triangles();
  auto test = triangles({.count = 30}, false);
  const auto history = fit(model, sgd, train, test, {.epochs = 10});
  ASSERT_EQ(history.size(), 10u);
  EXPECT_GT(history.front().train_loss, 0.1);
  EXPECT_LT(history.back().train_loss, 0.1 * history.front().train_loss);
  EXPECT_EQ(history.back().train_accuracy, 1.0);
  EXPECT_EQ(history.back().test_accuracy, 1.0);
  EXPECT_LT(history.back().test_loss, 0.1);
  EXPECT_EQ(sgd.steps(), 60);
}

TEST(Fit, TakesTheStepsOfTheLoopWrittenByHand) {
  auto by_hand = Trained::make(), fitted = Trained::make();
  optim::Sgd hand_sgd{by_hand, {.lr = 0.1f, .momentum = 0.9f}},
      fit_sgd{fitted, {.lr = 0.1f, .momentum = 0.9f}};
  auto hand_loader = triangles(), fit_loader = triangles();
  RunningMean loss_mean;
  for (const auto& batch : hand_loader) {
    Tape<CpuArray> tape;
    const auto loss = cross_entropy(by_hand(batch.tensor<CpuArray>()), batch.targets<CpuArray>());
    tape.backward(loss);
    hand_sgd.step();
    loss_mean.add(static_cast<double>(loss.item()), batch.size());
  }
  const auto history = fit(fitted, fit_sgd, fit_loader);
  EXPECT_EQ(weights(fitted), weights(by_hand));
  EXPECT_NE(weights(fitted), weights(Trained::make()));
  EXPECT_EQ(history.at(0).train_loss, loss_mean.value());
}

TEST(Fit, GivesTheSameLossesTwice) {
  const auto losses = [] {
    auto model = Trained::make();
    optim::Sgd sgd{model, {.lr = 0.3f, .momentum = 0.9f, .weight_decay = 1e-4f}};
    sgd.set_clip_norm(1);
    data::DataLoader loader{Triangle{}, {.batch_size = 7, .seed = 5, .workers = 2}};
    StepLog log{sgd};
    fit(model, sgd, loader, {.epochs = 3}, log);
    return log.losses;
  };
  const auto first = losses();
  ASSERT_EQ(first.size(), 42u);
  EXPECT_EQ(first, losses());
}

TEST(Fit, TellsCallbacksInOrder) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto train = triangles({.count = 20});
  auto test = triangles({.count = 3});
  std::vector<std::string> heard;
  Recorder first{"a", heard};
  fit(model, sgd, train, test, {.epochs = 2}, first, Recorder{"b", heard});
  const std::vector<std::string> expected{"a train 1/2 1/2 of 16",
                                          "b train 1/2 1/2 of 16",
                                          "a train 1/2 2/2 of 4",
                                          "b train 1/2 2/2 of 4",
                                          "a test 1/2 1/1 of 3",
                                          "b test 1/2 1/1 of 3",
                                          "a epoch 1",
                                          "b epoch 1",
                                          "a train 2/2 1/2 of 16",
                                          "b train 2/2 1/2 of 16",
                                          "a train 2/2 2/2 of 4",
                                          "b train 2/2 2/2 of 4",
                                          "a test 2/2 1/1 of 3",
                                          "b test 2/2 1/1 of 3",
                                          "a epoch 2",
                                          "b epoch 2"};
  EXPECT_EQ(heard, expected);
}

TEST(Fit, WeighsTheLastBatchByItsSamples) {
  auto model = Trained::make();
  optim::Sgd still{model, {.lr = 0}};
  auto loader = triangles({.count = 20});
  const auto history = fit(model, still, loader);
  data::DataLoader whole{Triangle{.count = 20}, {.batch_size = 20, .workers = 0}};
  const auto measured = evaluate(model, whole);
  EXPECT_NEAR(history.at(0).train_loss, measured.loss, 1e-6);
  EXPECT_DOUBLE_EQ(history.at(0).train_accuracy, measured.accuracy);
  EXPECT_EQ(measured.samples, 20);
}

TEST(Fit, RecordsTimeAndRate) {
  auto model = Trained::make();
  optim::Sgd sgd{model, {.lr = 0.25f}};
  auto loader = triangles();
  const auto result = fit(model, sgd, loader).at(0);
  EXPECT_EQ(result.epoch, 1);
  EXPECT_EQ(result.learning_rate, 0.25);
  EXPECT_GT(result.seconds, 0);
  EXPECT_DOUBLE_EQ(result.samples_per_second * result.seconds, 96);
  EXPECT_TRUE(std::isnan(result.test_loss) && std::isnan(result.test_accuracy));
}

TEST(Fit, SetsTheRateOfEachEpoch) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles({.count = 32});
  StepLog log{sgd};
  const auto history =
      fit(model, sgd, loader, {.epochs = 3, .lr_by_epoch = optim::StepSchedule{0.5, 2, 0.5}}, log);
  EXPECT_EQ(log.rates, (std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.25, 0.25}));
  EXPECT_EQ(history.at(2).learning_rate, 0.25);
}

TEST(Fit, SetsTheRateOfEachStep) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles({.count = 32});
  StepLog log{sgd};
  fit(model, sgd, loader, {.epochs = 2, .lr_by_step = [](std::int64_t step) { return 0.125 * double(step); }},
      log);
  EXPECT_EQ(log.rates, (std::vector<double>{0, 0.125, 0.25, 0.375}));
}

TEST(Fit, TakesAnyLoss) {
  auto model = Trained::make();
  optim::Sgd sgd{model, {.lr = 0.1f}};
  auto loader = triangles({}, false);
  const auto twice = [](const auto& logits, const auto& labels) {
    return 2.0f * cross_entropy(logits, labels);
  };
  const FitOptions options{.epochs = 1, .loss = twice};
  const double plain = evaluate(model, loader).loss;
  EXPECT_DOUBLE_EQ(evaluate(model, loader, options).loss, 2 * plain);
  StepLog log{sgd};
  fit(model, sgd, loader, options, log);
  EXPECT_LT(log.losses.back(), log.losses.front());
}

TEST(Fit, MeasuresNoAccuracyWhereThereIsNone) {
  auto model = Trained::make();
  auto loader = triangles();
  EXPECT_TRUE(std::isnan(evaluate(model, loader, {.accuracy = false}).accuracy));

  FlatNet<CpuArray> flat;
  const auto mean_square = [](const auto& outputs, const auto&) { return mean(square(outputs)); };
  const auto measured = evaluate(flat, loader, FitOptions{.loss = mean_square});
  EXPECT_GT(measured.loss, 0);
  EXPECT_TRUE(std::isnan(measured.accuracy));
}

TEST(Fit, EndsAtALossThatIsNotFinite) {
  auto model = Trained::make();
  optim::Sgd sgd{model, {.lr = 0.1f}};
  auto loader = triangles({.nan_sample = 40}, false);
  std::vector<std::string> heard;
  std::vector<float> before;
  struct Keep {
    const Trained& model;
    std::vector<float>& kept;
    void on_batch(const BatchEvent&) { kept = weights(model); }
  };
  const auto text = error_of([&] {
    fit(model, sgd, loader, {.epochs = 2}, Keep{model, before}, Recorder{"a", heard});
  });
  EXPECT_NE(text.find("fit: the loss is NaN in epoch 1, batch 3"), std::string::npos) << text;
  EXPECT_EQ(heard.size(), 2u);
  EXPECT_EQ(weights(model), before);  // the bad step has changed nothing
}

TEST(Fit, NamesTheEpochOfABadLoss) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles();
  const auto nan_in_epoch_2 = [](std::int64_t epoch) { return epoch == 1 ? not_measured : 0.1; };
  EXPECT_NE(error_of([&] {
              fit(model, sgd, loader, {.epochs = 3, .lr_by_epoch = nan_in_epoch_2});
            }).find("the loss is NaN in epoch 2, batch 2"),
            std::string::npos);

  auto other = Trained::make();
  optim::Sgd other_sgd{other};
  const auto infinite = [](const auto& logits, const auto& labels) {
    return cross_entropy(logits, labels) + std::numeric_limits<float>::infinity();
  };
  EXPECT_NE(error_of([&] {
              fit(other, other_sgd, loader, FitOptions{.loss = infinite});
            }).find("the loss is infinite in epoch 1, batch 1"),
            std::string::npos);
}

TEST(Fit, GoesOnWithABadLossIfAllowed) {
  auto model = Trained::make();
  optim::Sgd sgd{model, {.lr = 0.1f}};
  auto loader = triangles({.nan_sample = 40});
  const auto history = fit(model, sgd, loader, {.epochs = 2, .allow_non_finite = true});
  ASSERT_EQ(history.size(), 2u);
  EXPECT_TRUE(std::isnan(history.back().train_loss));
  EXPECT_EQ(sgd.steps(), 12);
}

TEST(Fit, StopsAfterAnEpoch) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles();
  std::vector<std::string> heard;
  const auto history = fit(model, sgd, loader, {.epochs = 5}, StopAtEpoch{2}, Recorder{"later", heard});
  EXPECT_EQ(history.size(), 2u);
  EXPECT_EQ(heard.back(), "later epoch 2");  // the other callbacks hear of it
}

TEST(Fit, StopsAfterABatch) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles();
  auto test = triangles({.count = 30});
  std::vector<std::string> heard;
  const auto history =
      fit(model, sgd, loader, test, {.epochs = 5}, StopAtBatch{.batch = 2}, Recorder{"a", heard});
  EXPECT_EQ(sgd.steps(), 2);
  ASSERT_EQ(history.size(), 1u);
  const std::vector<std::string> expected{"a train 1/5 1/6 of 16", "a train 1/5 2/6 of 16",
                                          "a test 1/5 1/2 of 16", "a test 1/5 2/2 of 14", "a epoch 1"};
  EXPECT_EQ(heard, expected);
  EXPECT_TRUE(std::isfinite(history.at(0).train_loss) && std::isfinite(history.at(0).test_loss));
}

TEST(Fit, StopsInTheTest) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles(), test = triangles();
  const auto history =
      fit(model, sgd, loader, test, {.epochs = 5}, StopAtBatch{.phase = Phase::test, .batch = 2});
  EXPECT_EQ(history.size(), 1u);
  EXPECT_EQ(sgd.steps(), 6);
}

TEST(Fit, ShowsOnAProgressBar) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles(), test = triangles();
  std::ostringstream shown;
  fit(model, sgd, loader, test, {.epochs = 2}, ProgressBar{shown});
  EXPECT_NE(shown.str().find("epoch 1/2  loss "), std::string::npos) << shown.str();
  EXPECT_NE(shown.str().find("test accuracy "), std::string::npos) << shown.str();
}

TEST(Fit, ChecksItsOptions) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles();
  const auto rate = [](std::int64_t) { return 0.1; };
  EXPECT_EQ(error_of([&] { fit(model, sgd, loader, {.epochs = -3}); }),
            "fit: expected epochs to be at least 0, got -3");
  EXPECT_EQ(error_of([&] { fit(model, sgd, loader, {.lr_by_epoch = rate, .lr_by_step = rate}); }),
            "fit: expected one of lr_by_epoch and lr_by_step, got both");
  EXPECT_TRUE(fit(model, sgd, loader, {.epochs = 0}).empty());
  EXPECT_EQ(sgd.steps(), 0);
}

TEST(Fit, RefusesAnEmptyLoader) {
  auto model = Trained::make();
  optim::Sgd sgd{model};
  data::DataLoader loader{Triangle{.count = 3}, {.batch_size = 16, .drop_last = true}};
  EXPECT_EQ(error_of([&] { fit(model, sgd, loader); }), "fit: the loader of the training data gave no batch");
}

TEST(Fit, LetsExceptionsOfCallbacksThrough) {
  struct Throwing {
    void on_batch(const BatchEvent&) { throw std::runtime_error("enough"); }
  };
  auto model = Trained::make();
  optim::Sgd sgd{model};
  auto loader = triangles();
  EXPECT_THROW(fit(model, sgd, loader, {}, Throwing{}), std::runtime_error);
  EXPECT_EQ(Tape<CpuArray>::innermost(), nullptr);
}

TEST(Fit, TrainsOverOtherInterpretations) {
  auto plain = Trained::make();
  optim::Sgd plain_sgd{plain, {.lr = 0.1f}};
  auto profiled = rebind<Grad<Profiled<CpuArray>>>(plain);
  optim::Sgd profiled_sgd{profiled, {.lr = 0.1f}};
  auto loader = triangles(), same_loader = triangles();
  const auto expected = fit(plain, plain_sgd, loader, loader, {.epochs = 2});
  const auto history = fit(profiled, profiled_sgd, same_loader, same_loader, {.epochs = 2});
  EXPECT_EQ(history.back().train_loss, expected.back().train_loss);
  EXPECT_EQ(history.back().test_loss, expected.back().test_loss);
}

TEST(Evaluate, PassesTheMode) {
  Rng rng{1};
  ModalNet<Grad<CpuArray>> model{nn::parameter(Grad<CpuArray>(CpuArray::normal({2, 3}, 0, 1, rng)))};
  auto loader = triangles();
  EXPECT_NEAR(evaluate(model, loader).loss, std::log(3.0), 1e-6);  // logits of 0
  optim::Sgd still{model, {.lr = 0}};
  EXPECT_GT(std::abs(fit(model, still, loader).at(0).train_loss - std::log(3.0)), 1e-3);
}

TEST(Evaluate, RecordsNothing) {
  const auto model = Trained::make();
  auto loader = triangles({}, false);
  Tape<CpuArray> tape;
  const auto measured = evaluate(model, loader);
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_EQ(measured.loss, evaluate(rebind<CpuArray>(model), loader).loss);
}

TEST(Evaluate, CountsTheRightOnes) {
  // The logits are the inputs' own signs: corner 0 is (-, +), 1 (+, -), 2 (+, +).
  Net<CpuArray> model{
      {CpuArray::from_host(std::vector{9.f, 0.f, 0.f, 9.f}, {2, 2}), std::nullopt},
      {CpuArray::from_host(std::vector{-1.f, 1.f, 1.f, -1.f, 0.9f, 0.9f}, {3, 2}), std::nullopt}};
  auto all = triangles({.count = 9});
  EXPECT_EQ(evaluate(model, all).accuracy, 1.0);
  model.out.weight = CpuArray::from_host(std::vector{1.f, -1.f, 1.f, -1.f, 0.9f, 0.9f}, {3, 2});
  EXPECT_DOUBLE_EQ(evaluate(model, all).accuracy, 1.0 / 3);  // corner 2 alone
}
