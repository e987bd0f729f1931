// Profiling on the device: what is booked, and when.

#include <gtest/gtest.h>
#include <taut/cuda/cuda.hpp>
#include <taut/interpret/profiled.hpp>
#include <taut/optim/sgd.hpp>

#include <algorithm>
#include <thread>

namespace taut {
namespace {

using P = Profiled<CudaTensor>;
using G = Grad<P>;

struct Scale {
  G factor;
};

TEST(CudaProfiled, BooksATrainingStep) {
  Scale model{G(P(CudaTensor::ones({3}))).track()};
  optim::Sgd sgd{model, {.lr = 0.1}};
  reset_profile();
  {
    Tape<P> tape;
    tape.backward(sum(exp(model.factor)));
    sgd.step();
  }
  const auto entries = profile_entries();
  ASSERT_TRUE(entries.contains("exp") && entries.contains("sum") && entries.contains("update.sgd"));
  for (const auto& [name, entry] : entries) {
    EXPECT_GT(entry.calls, 0) << name;
    EXPECT_GE(entry.seconds, 0) << name;
    EXPECT_LT(entry.seconds, 10) << name;
  }
  EXPECT_EQ(entries.at("exp").calls, 2) << "forward and backward";
  EXPECT_EQ(entries.at("exp").bytes, 4 * (2 * 3 + 3 * 3));
  EXPECT_EQ(profile_entries().at("exp").calls, entries.at("exp").calls) << "booked twice";
  reset_profile();
  EXPECT_TRUE(profile_entries().empty());
}

TEST(CudaProfiled, RecordsWhatHappenedInTheRecording) {
  const P x(CudaTensor::ones({1000}));
  (void)exp(x);
  TraceRecording trace;
  {
    const TraceSpan span("both");
    (void)log(x);
    std::thread([&] { (void)sin(x); }).join();
  }
  trace.stop();
  (void)exp(x);
  const auto events = trace.events();
  ASSERT_EQ(events.size(), 3u);
  const auto find = [&](std::string_view name) {
    return *std::find_if(events.begin(), events.end(), [&](const auto& event) { return event.name == name; });
  };
  EXPECT_LE(find("log").stop(), find("sin").start + 1'000'000);  // each time is good to a millionth
  EXPECT_NE(find("log").thread, find("sin").thread);
  EXPECT_EQ(find("log").thread, find("both").thread);
  EXPECT_LE(find("both").start, find("log").start + 1'000'000);
}

TEST(CudaProfiled, BooksNoneThatThrow) {
  reset_profile();
  EXPECT_THROW((void)(P(CudaTensor::ones({2})) + P(CudaTensor::ones({3}))), ShapeError);
  EXPECT_FALSE(profile_entries().contains("add"));
}

TEST(CudaProfiled, TimesNothingWithinACapture) {
  auto step = cuda::capture([](const CudaTensor& x) { return exp(P(x)).value(); });
  const auto x = CudaTensor::ones({4});
  step(x), step(x);
  reset_profile();
  step(x), step(x);
  EXPECT_TRUE(step.captured()) << step.reason();
  EXPECT_FALSE(profile_entries().contains("exp"));
}

TEST(CudaProfiled, BooksMoreCallsThanWait) {
  const P x(CudaTensor::ones({1}));
  reset_profile();
  for (int i = 0; i < 10'000; ++i) (void)exp(x);
  EXPECT_EQ(profile_entries().at("exp").calls, 10'000);
}

}  // namespace
}  // namespace taut
