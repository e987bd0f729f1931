// Events of operators and spans while a recording is in scope.
#include <gtest/gtest.h>

#include <taut/taut.hpp>

#include <map>
#include <memory>
#include <thread>

using namespace taut;
using P = Profiled<CpuArray>;
using G = Grad<P>;

namespace {

std::vector<std::string> names(const TraceRecording& trace) {
  std::vector<std::string> result;
  for (const auto& event : trace.events()) result.emplace_back(event.name);
  return result;
}

/// Expects that the events are in order and that, on each thread, two of them overlap only if one is within
/// the other. Returns how deep they nest.
std::size_t expect_nesting(const std::vector<TraceEvent>& events) {
  std::map<int, std::vector<const TraceEvent*>> open;
  std::size_t depth = 0;
  std::int64_t last = 0;
  for (const auto& event : events) {
    EXPECT_GE(event.start, last) << event.name;
    EXPECT_GE(event.duration, 0) << event.name;
    last = event.start;
    auto& around = open[event.thread];
    while (!around.empty() && around.back()->stop() <= event.start) around.pop_back();
    EXPECT_TRUE(around.empty() || event.stop() <= around.back()->stop()) << event.name;
    around.push_back(&event);
    depth = std::max(depth, around.size());
  }
  return depth;
}

TEST(TraceRecording, RecordsOperatorsWithTheirWork) {
  exp(P::ones({4}));
  TraceRecording trace;
  const P x = CpuArray::ones({2, 3});
  reset_profile();  // what was recorded stays
  matmul(x, exp(x), {.transpose_b = true});
  reset_profile();
  trace.stop();
  exp(P::ones({4}));
  ASSERT_EQ(names(trace), (std::vector<std::string>{"exp", "matmul"}));
  const auto event = trace.events()[1];
  EXPECT_EQ(std::vector<Shape>(event.operands.begin(), event.operands.end()),
            (std::vector<Shape>{{2, 3}, {2, 3}}));
  EXPECT_EQ(event.flops, 2 * 4 * 3);
  EXPECT_EQ(event.bytes, 4 * (6 + 6 + 4));
  EXPECT_EQ(event.conversions, 0);
  EXPECT_FALSE(event.span);
  EXPECT_GT(event.duration, 0);
  EXPECT_EQ(trace.dropped(), 0);
}

TEST(TraceRecording, CountsConversionsOfLayouts) {
  auto x = CpuArray::uninitialized({1, 16, 2, 2}, cpu::Layout::blocked16);
  std::fill_n(x.mutable_data(), 64, 1.0f);
  TraceRecording trace;
  softmax(P(x), 1);
  EXPECT_EQ(trace.events().at(0).conversions, 1);
}

TEST(TraceRecording, PutsAWholeTrainingStepIntoSpans) {
  Rng rng{1};
  auto model = nn::Mlp<G>::make({6, 5, 4}, rng);
  optim::Sgd sgd(model, {.lr = 0.1});
  const P x = CpuArray::ones({3, 6});
  const auto labels = CpuArray::Index::zeros({3});
  TraceRecording trace;
  {
    const TraceSpan step("step");
    Tape<P> tape;
    auto part = std::make_unique<TraceSpan>("forward");
    const auto loss = cross_entropy(model(x), labels);
    part.reset();
    part = std::make_unique<TraceSpan>("backward");
    tape.backward(loss);
    part.reset();
    part = std::make_unique<TraceSpan>("optimizer");
    sgd.step();
  }
  const auto events = trace.events();
  EXPECT_EQ(expect_nesting(events), 3u);
  std::map<std::string, std::string> within;  // the innermost span of each operator
  const TraceEvent* part = nullptr;
  for (const auto& event : events) {
    if (event.span)
      part = &event;
    else if (part->stop() >= event.stop())
      within[std::string(event.name)] = part->name;
  }
  EXPECT_EQ(events.at(0).name, "step");
  EXPECT_EQ(within.at("linear"), "forward");
  EXPECT_EQ(within.at("cross_entropy"), "forward");
  EXPECT_EQ(within.at("cross_entropy_gradient"), "backward");
  EXPECT_EQ(within.at("update.sgd"), "optimizer");
}

TEST(TraceRecording, RecordsSecondDerivatives) {
  using T = BasicCpuArray<double>;
  const auto f = [](const auto& x) { return sum(x * x * x); };
  TraceRecording trace;
  const Profiled<T> x = T::full({2}, 3), v = T::ones({2});
  const auto product = hessian_vector_product(f, x, v);
  EXPECT_EQ(product.to_host(), std::vector<double>(2, 18));
  const auto events = trace.events();
  EXPECT_GT(events.size(), 6u);
  EXPECT_EQ(expect_nesting(events), 1u);
}

TEST(TraceRecording, NumbersThreads) {
  const auto work = [](const char* name) {
    const TraceSpan span(name);
    for (int i = 0; i < 50; ++i) {
      const P x = CpuArray::ones({4});
      exp(x);
    }
  };
  TraceRecording trace;
  std::thread one(work, "one"), two(work, "two");
  for (int i = 0; i < 20; ++i) (void)trace.events();
  one.join();
  two.join();
  const auto events = trace.events();
  EXPECT_EQ(events.size(), 102u);
  EXPECT_EQ(expect_nesting(events), 2u);
  std::map<int, int> counts;
  std::map<std::string_view, int> threads;
  for (const auto& event : events) {
    ++counts[event.thread];
    if (event.span) threads[event.name] = event.thread;
  }
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts.begin()->second, 51);
  EXPECT_NE(threads.at("one"), threads.at("two"));
}

TEST(TraceRecording, KeepsOuterSpansWhenItIsFull) {
  TraceRecording trace(3);
  EXPECT_EQ(trace.limit(), 3u);
  {
    const TraceSpan outer("outer");
    const P x = CpuArray::ones({4});
    for (int i = 0; i < 5; ++i) exp(x);
    const TraceSpan inner("inner");
  }
  EXPECT_EQ(names(trace), (std::vector<std::string>{"outer", "exp", "exp"}));
  EXPECT_EQ(trace.dropped(), 4);
  EXPECT_EQ(expect_nesting(trace.events()), 2u);
}

TEST(TraceRecording, EndsOpenSpansWhereItStops) {
  TraceRecording trace;
  const TraceSpan outer("outer");
  exp(P::ones({4}));
  EXPECT_EQ(expect_nesting(trace.events()), 2u) << "still open";
  trace.stop();
  const auto duration = trace.events().at(0).duration;
  EXPECT_EQ(expect_nesting(trace.events()), 2u);
  exp(P::ones({1000}));
  EXPECT_EQ(trace.events().at(0).duration, duration);
  EXPECT_EQ(trace.events().size(), 2u);
}

TEST(TraceRecording, IsOneAtATime) {
  {
    TraceRecording trace;
    EXPECT_THROW(TraceRecording(), Error);
    exp(P::ones({4}));
    EXPECT_EQ(trace.events().size(), 1u) << "the first one goes on";
  }
  TraceRecording next;
  EXPECT_TRUE(next.events().empty());
}

TEST(TraceSpan, OfAnEarlierRecordingIsNoneOfTheNext) {
  alignas(TraceRecording) std::byte place[sizeof(TraceRecording)];
  auto* trace = new (place) TraceRecording;
  auto span = std::make_unique<TraceSpan>("old");
  trace->~TraceRecording();
  trace = new (place) TraceRecording;
  const TraceSpan now("new");
  span.reset();
  const auto before = trace->events().at(0).duration;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(trace->events().at(0).duration, before) << "it must still be open";
  EXPECT_EQ(names(*trace), std::vector<std::string>{"new"});
  trace->~TraceRecording();
}

TEST(TraceSpan, DoesNothingWithoutARecording) {
  const TraceSpan before("before");
  TraceRecording trace;
  trace.stop();
  const TraceSpan after("after");
  EXPECT_TRUE(trace.events().empty());
}

TEST(TraceSpan, KeepsItsName) {
  TraceRecording trace;
  for (int i = 0; i < 3; ++i) TraceSpan span("a name made in the loop " + std::to_string(i));
  EXPECT_EQ(names(trace).at(2), "a name made in the loop 2");
}

}  // namespace
