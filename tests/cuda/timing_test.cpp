// The choice of the fastest candidate, with a model of a device that has a clock and nothing else.

#include "../../cuda/timing.hpp"

#include <gtest/gtest.h>

namespace taut::cuda {

struct OpaqueEvent {
  float time = 0;
};

namespace {
float now = 0;   ///< in milliseconds
int events = 0;  ///< that are not destroyed
}  // namespace

Event create_event(bool timed) {
  EXPECT_TRUE(timed);
  return ++events, new OpaqueEvent;
}
void destroy_event(Event event) noexcept { --events, delete event; }
void record(Event event, Stream) { event->time = now; }
void synchronize(Event) {}
float elapsed_milliseconds(Event begin, Event end) { return end->time - begin->time; }

namespace {

/// Work that takes its time, longer when it is done first, unless it cannot be done.
struct Candidate {
  float milliseconds = 0;
  bool works = true;
  float loading = 0;

  void run() {
    now += milliseconds + std::exchange(loading, 0.0f);
    if (!works) throw DeviceError("run", static_cast<int>(milliseconds));
  }
};

std::size_t fastest_of(std::vector<Candidate> candidates) {
  const auto best = fastest(candidates.size(), nullptr, [&](std::size_t i) { candidates[i].run(); });
  EXPECT_EQ(events, 0);
  return best;
}

TEST(Fastest, WinsWhereverItStands) {
  EXPECT_EQ(fastest_of({{1}, {2}, {3}}), 0u);
  EXPECT_EQ(fastest_of({{3}, {1}, {2}}), 1u);
  EXPECT_EQ(fastest_of({{3}, {2}, {1}}), 2u);
  EXPECT_EQ(fastest_of({{1}}), 0u);
}

TEST(Fastest, IsChosenByWhatItTakesOnceItIsLoaded) { EXPECT_EQ(fastest_of({{2}, {1, true, 100}}), 1u); }

TEST(Fastest, IsNoneThatThrows) {
  EXPECT_EQ(fastest_of({{1, false}, {3}, {2}}), 2u);
  EXPECT_EQ(fastest_of({{3}, {2}, {1, false}}), 1u);
}

TEST(Fastest, ThrowsTheLastErrorIfNoneRuns) {
  try {
    fastest_of({{1, false}, {2, false}});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), 2);
  }
  EXPECT_EQ(events, 0);
}

TEST(Fastest, IsAllThatIsKept) {
  std::vector<Candidate> candidates{{3}, {1, false}, {2}};
  const auto keep = [&] { keep_fastest(candidates, nullptr, [](Candidate& each) { each.run(); }); };
  keep();
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates.front().milliseconds, 2);
  candidates = {{1, false}, {2, false}};
  EXPECT_THROW(keep(), DeviceError);
  EXPECT_EQ(candidates.size(), 2u) << "all stay if none runs";
}

}  // namespace
}  // namespace taut::cuda
