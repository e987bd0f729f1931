// Captured steps: the same losses, weights and states as those of steps that are run, bit for bit; and what
// becomes of steps that cannot be captured.

#include <gtest/gtest.h>
#include <taut/cuda/cuda.hpp>
#include <taut/nn/batch_norm2d.hpp>
#include <taut/nn/linear.hpp>
#include <taut/op/cross_entropy.hpp>
#include <taut/optim/adam.hpp>
#include <taut/optim/schedule.hpp>
#include <taut/optim/sgd.hpp>

#include <functional>
#include <utility>

namespace taut::test {
namespace {

using G = Grad<CudaTensor>;
using Index = CudaTensor::Index;

/// All kinds of layers of which some change from step to step: running statistics, random numbers.
template <AnyTensor T> struct Net {
  nn::Conv2d<T> conv;
  nn::BatchNorm2d<T> norm;
  nn::Linear<T> out;

  static Net make() {
    Rng rng{3};
    return {nn::Conv2d<T>::make(1, 3, 3, rng), nn::BatchNorm2d<T>::make(3),
            nn::Linear<T>::make(3 * 4 * 4, 5, rng)};
  }
  T operator()(const T& x, Rng& rng) const {
    return out(dropout(flatten(norm.relu(conv(x), Mode::train)), 0.4, Mode::train, rng));
  }
};

CudaTensor images(std::int64_t batch, std::uint64_t seed) {
  Rng rng{seed};
  return CudaTensor::normal({batch, 1, 6, 6}, 0, 1, rng);
}

Index labels(std::int64_t batch, std::uint64_t seed) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < batch; ++i) values.push_back((static_cast<std::int64_t>(seed) + 3 * i) % 5);
  return Index::from_host(values, {batch});
}

/// A model in training, with all that a step changes.
struct Training {
  Net<G> model = Net<G>::make();
  optim::Adam adam{model, {.lr = 0.01, .weight_decay = 1e-3}};
  Rng rng{17};

  Training() { adam.set_clip_norm(0.5); }

  CudaTensor step(const CudaTensor& x, const Index& y) {
    Tape<CudaTensor> tape;
    const G loss = cross_entropy(model(G(x), rng), y);
    tape.backward(loss);
    adam.step();
    return loss.value();
  }
  auto captured() {
    return cuda::capture([this](const CudaTensor& x, const Index& y) { return step(x, y); }, adam, rng);
  }

  /// All numbers of the model and of its optimizer.
  std::vector<std::vector<double>> numbers() const {
    std::vector<std::vector<double>> all;
    for (const auto& [name, tensor] : named_tensors(model)) {
      const auto values = tensor.to_host();
      all.push_back({values.begin(), values.end()});
    }
    for (const auto& state : adam.state()) all.push_back(state.values);
    all.push_back({static_cast<double>(adam.steps()), adam.gradient_norm(),
                   static_cast<double>(rng.state().first_block)});
    return all;
  }
};

using Step = std::function<CudaTensor(const CudaTensor&, const Index&)>;

/// The losses of steps with rates by a schedule; every seventh batch is smaller.
std::vector<float> train(Training& training, const Step& step, int from, int to) {
  const optim::CosineSchedule rate{.base = 0.02, .steps = 20, .warmup = 4};
  std::vector<CudaTensor> losses;
  for (int i = from; i < to; ++i) {
    training.adam.set_learning_rate(rate(i));
    const std::int64_t batch = i % 7 == 6 ? 3 : 4;
    const auto seed = static_cast<std::uint64_t>(i);
    losses.push_back(step(images(batch, seed), labels(batch, seed)));
  }
  std::vector<float> values;
  for (const auto& loss : losses) values.push_back(loss.item());
  return values;
}

Step direct(Training& training) {
  return [&](const CudaTensor& x, const Index& y) { return training.step(x, y); };
}

TEST(CudaGraph, TrainsAsWithout) {
  Training expected, got;
  auto step = got.captured();
  const auto losses = train(expected, direct(expected), 0, 20);
  EXPECT_EQ(train(got, std::ref(step), 0, 2), std::vector(losses.begin(), losses.begin() + 2));
  EXPECT_FALSE(step.captured());
  EXPECT_EQ(train(got, std::ref(step), 2, 20), std::vector(losses.begin() + 2, losses.end()));
  EXPECT_TRUE(step.captured());
  EXPECT_EQ(step.reason(), "");
  EXPECT_EQ(got.numbers(), expected.numbers());
  EXPECT_GT(expected.adam.gradient_norm(), 0.5) << "or else nothing was clipped";
}

TEST(CudaGraph, DoesNotRunTheStepAgain) {
  int runs = 0;
  auto twice = cuda::capture([&](const CudaTensor& x) {
    ++runs;
    return x * 2.0f;
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(twice(CudaTensor::full({3}, static_cast<float>(i))).to_host(),
              std::vector<float>(3, 2.0f * static_cast<float>(i)));
  EXPECT_EQ(runs, 3);
  (void)twice(CudaTensor::ones({4}));
  EXPECT_EQ(runs, 4) << "inputs of another shape";
}

TEST(CudaGraph, GivesEachResultItsOwnMemory) {
  auto step = cuda::capture([](const CudaTensor& x) { return std::tuple(x + 1.0f, argmax(x, 0)); });
  std::vector<std::tuple<CudaTensor, Index>> results;
  for (int i = 0; i < 6; ++i) {
    std::vector<float> values(6);
    values[static_cast<std::size_t>(i)] = 5;
    results.push_back(step(CudaTensor::from_host(values, {6})));
  }
  EXPECT_TRUE(step.captured());
  for (int i = 0; i < 6; ++i) {
    const auto& [sum, place] = results[static_cast<std::size_t>(i)];
    EXPECT_EQ(sum.to_host()[static_cast<std::size_t>(i)], 6);
    EXPECT_EQ(place.item(), i);
  }
}

TEST(CudaGraph, LeavesTheMemoryToTheGraph) {
  // What the captured step frees is not handed out again: its replays write there.
  auto step = cuda::capture([](const CudaTensor& x) { return sum(exp(x) * x + sin(x)); });
  const auto x = CudaTensor::full({1000}, 0.5f);
  const float expected = step(x).item();
  for (int i = 0; i < 3; ++i) (void)step(x);
  std::vector<CudaTensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(CudaTensor::full({1000}, static_cast<float>(i)));
  EXPECT_EQ(step(x).item(), expected);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(others[static_cast<std::size_t>(i)].to_host(), std::vector<float>(1000, static_cast<float>(i)));
}

TEST(CudaGraph, NeverWritesToWhatOthersShare) {
  Training expected, got;
  auto step = got.captured();
  auto losses = train(expected, direct(expected), 0, 5);
  EXPECT_EQ(train(got, std::ref(step), 0, 5), losses);
  ASSERT_TRUE(step.captured());
  // A copy of the weights keeps the values that it has, and training goes on.
  const auto copy = rebind<CudaTensor>(got.model);
  const auto weight = copy.out.weight.to_host(), mean = copy.norm.running_mean.value.to_host();
  losses = train(expected, direct(expected), 7, 12);
  EXPECT_EQ(train(got, std::ref(step), 7, 12), losses);
  EXPECT_TRUE(step.captured()) << step.reason();
  EXPECT_EQ(got.numbers(), expected.numbers());
  EXPECT_EQ(copy.out.weight.to_host(), weight);
  EXPECT_EQ(copy.norm.running_mean.value.to_host(), mean);
}

TEST(CudaGraph, FollowsTensorsThatAreReplaced) {
  CudaTensor factor = CudaTensor::full({}, 2);
  auto step = cuda::capture([&](const CudaTensor& x) { return x * factor; });
  const auto x = CudaTensor::ones({2});
  for (int i = 0; i < 4; ++i) (void)step(x);
  ASSERT_TRUE(step.captured());
  factor = CudaTensor::full({}, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(x).to_host(), std::vector<float>(2, 3));
  EXPECT_TRUE(step.captured());
}

TEST(CudaGraph, TakesANewClippingNorm) {
  Training expected, got;
  auto step = got.captured();
  (void)train(expected, direct(expected), 0, 5);
  (void)train(got, std::ref(step), 0, 5);
  ASSERT_TRUE(step.captured());
  for (Training* each : {&expected, &got}) each->adam.set_clip_norm(0.01);
  EXPECT_EQ(train(got, std::ref(step), 7, 12), train(expected, direct(expected), 7, 12));
  EXPECT_TRUE(step.captured());
  EXPECT_EQ(got.numbers(), expected.numbers());
}

/// Trains with a step that cannot be captured, and expects the same numbers and a reason.
void expect_fallback(const std::function<CudaTensor(Training&, const CudaTensor&, const Index&)>& step,
                     const std::string& reason) {
  Training expected, got;
  auto captured =
      cuda::capture([&](const CudaTensor& x, const Index& y) { return step(got, x, y); }, got.adam, got.rng);
  const auto losses = train(
      expected, [&](const auto& x, const auto& y) { return step(expected, x, y); }, 0, 9);
  EXPECT_EQ(train(got, std::ref(captured), 0, 9), losses);
  EXPECT_FALSE(captured.captured());
  EXPECT_NE(captured.reason().find(reason), std::string::npos) << captured.reason();
  EXPECT_EQ(got.numbers(), expected.numbers());
}

TEST(CudaGraph, RunsStepsThatTheHostTakesPartIn) {
  expect_fallback(
      [](Training& training, const CudaTensor& x, const Index& y) {
        Tape<CudaTensor> tape;
        const G loss = cross_entropy(training.model(G(x), training.rng), y);
        tape.backward(loss);
        if (loss.item() > 0) training.adam.step();
        return loss.value();
      },
      "reads a tensor on the host");
  expect_fallback(
      [](Training& training, const CudaTensor& x, const Index& y) {
        const float scale[] = {0.5f};
        return training.step(x * CudaTensor::from_host(scale, {}), y);
      },
      "takes values from the host");
  expect_fallback(
      [](Training& training, const CudaTensor& x, const Index& y) {
        cuda::synchronize(cuda::current_stream());
        return training.step(x, y);
      },
      "waits for the device");
  expect_fallback(
      [](Training& training, const CudaTensor& x, const Index& y) {
        const CudaTensor loss = training.step(x, y);
        return training.adam.gradient_norm() > 0 ? loss : -loss;
      },
      "reads a tensor on the host");
}

TEST(CudaGraph, RunsStepsThatChangeWhatItWasNotGiven) {
  expect_fallback(
      [](Training& training, const CudaTensor& x, const Index& y) {
        Rng own = training.rng.split();
        return training.step(x + CudaTensor::normal(x.shape(), 0, 1, own), y);
      },
      "draws random numbers");
  expect_fallback(
      [](Training& training, const CudaTensor& x, const Index& y) {
        (void)training.step(x, y);
        return training.step(x, y);
      },
      "takes other steps of optimizers");
  CudaTensor kept;
  expect_fallback(
      [&](Training& training, const CudaTensor& x, const Index& y) {
        kept = x + 1.0f;
        return training.step(x, y);
      },
      "keeps 1 of the tensors");
  expect_fallback(
      [&](Training& training, const CudaTensor& x, const Index& y) {
        kept = x;
        return training.step(x, y);
      },
      "keeps its inputs");

  Training training;
  auto step =
      cuda::capture([&](const CudaTensor& x, const Index& y) { return training.step(x, y); }, training.rng);
  for (int i = 0; i < 5; ++i) (void)step(images(4, 1), labels(4, 1));
  EXPECT_FALSE(step.captured()) << "without the optimizer";
  EXPECT_EQ(training.adam.steps(), 5);
}

TEST(CudaGraph, TellsGeneratorsOfOneSeedApart) {
  Rng named{1}, other{1};
  (void)other.draw(100);
  auto step = cuda::capture([&](const CudaTensor& x) { return dropout(x, 0.5, Mode::train, other); }, named);
  for (int i = 0; i < 4; ++i) (void)step(CudaTensor::ones({4}));
  EXPECT_FALSE(step.captured());
  EXPECT_NE(step.reason().find("random numbers"), std::string::npos) << step.reason();
}

TEST(CudaGraph, IsLeftByStepsThatWaitForOtherStreams) {
  const cuda::Event event = cuda::create_event();
  auto step = cuda::capture([&](const CudaTensor& x) {
    cuda::wait(cuda::current_stream(), event);
    return x + x;
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(step(CudaTensor::ones({1})).item(), 2);
  EXPECT_FALSE(step.captured());
  EXPECT_NE(step.reason().find("another stream"), std::string::npos) << step.reason();
  cuda::destroy_event(event);
}

TEST(CudaGraph, SaysAtOnceThatResultsAreNoTensors) {
  auto step = cuda::capture([](const CudaTensor& x) { return sum(x).item(); });
  EXPECT_NE(step.reason().find("returns something else"), std::string::npos) << step.reason();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(CudaTensor::ones({4})), 4);
}

TEST(CudaGraph, PassesOnWhatTheStepThrows) {
  int runs = 0;
  CudaTensor state = CudaTensor::zeros({2});
  auto step = cuda::capture([&](const CudaTensor& x) {
    state = std::move(state) + x;
    if (++runs == 3) throw Error("the third time");
    return sum(state);
  });
  const auto x = CudaTensor::ones({2});
  EXPECT_EQ(step(x).item(), 2);
  EXPECT_EQ(step(x).item(), 4);
  EXPECT_THROW((void)step(x), Error);
  EXPECT_EQ(state.to_host(), std::vector<float>(2, 3)) << "what the step had done by then, is done";
  for (int i = 4; i < 9; ++i) EXPECT_EQ(step(x).item(), 2.0f * static_cast<float>(i));
  EXPECT_TRUE(step.captured());
  EXPECT_EQ(runs, 4);
}

TEST(CudaGraph, ReturnsNothingIfTheStepDoes) {
  CudaTensor total = CudaTensor::zeros({2});
  auto step = cuda::capture([&](const CudaTensor& x) { total = std::move(total) + x; });
  for (int i = 0; i < 6; ++i) step(CudaTensor::full({2}, static_cast<float>(i)));
  EXPECT_TRUE(step.captured());
  EXPECT_EQ(total.to_host(), std::vector<float>(2, 15));
}

}  // namespace
}  // namespace taut::test
