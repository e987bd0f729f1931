// Streams that are late show where one should wait for another and does not.

#include <gtest/gtest.h>
#include <taut/cuda/device.hpp>

#include "emulator.hpp"

namespace taut::test {
namespace {

/// Two streams, of which the emulator knows `first` before the other, and a byte that is 0 at first.
class CudaLateStreams : public testing::Test {
 protected:
  void SetUp() override { set_byte(0, first); }
  void TearDown() override {
    emulator::set_late(emulator::Late::none);
    cuda::destroy_event(event_);
    cuda::release(byte_);
  }

  void set_byte(unsigned char value, cuda::Stream stream) { cuda::fill_bytes(byte_, value, 1, stream); }
  void read_byte(cuda::Stream stream) { cuda::copy_to_host(&read_, byte_, 1, stream); }
  void wait(cuda::Stream stream, cuda::Stream other) {
    cuda::record(event_, other);
    cuda::wait(stream, event_);
  }
  int byte_that_was_read() {
    for (const auto stream : {first, second}) cuda::synchronize(stream);
    return read_;
  }

  static inline const cuda::Stream first = cuda::create_stream(), second = cuda::create_stream();

 private:
  unsigned char read_ = 0;
  void* byte_ = cuda::allocate(1);
  cuda::Event event_ = cuda::create_event();
};

TEST_F(CudaLateStreams, WriteAfterOthersHaveRead) {
  emulator::set_late(emulator::Late::others);
  set_byte(1, second);
  read_byte(first);
  EXPECT_EQ(byte_that_was_read(), 0) << "without a wait";
  set_byte(2, second);
  wait(first, second);
  read_byte(first);
  EXPECT_EQ(byte_that_was_read(), 2);
}

TEST_F(CudaLateStreams, ReadWhatOthersHaveWrittenSince) {
  emulator::set_late(emulator::Late::first);
  read_byte(first);
  set_byte(1, second);
  EXPECT_EQ(byte_that_was_read(), 1) << "without a wait";
  read_byte(first);
  wait(second, first);
  set_byte(2, second);
  EXPECT_EQ(byte_that_was_read(), 1);
}

TEST_F(CudaLateStreams, PassEventsOnceSomebodyWaits) {
  emulator::set_late(emulator::Late::first);
  const cuda::Event event = cuda::create_event();
  EXPECT_TRUE(cuda::is_complete(event)) << "it was never recorded";
  set_byte(1, first);
  cuda::record(event, first);
  EXPECT_FALSE(cuda::is_complete(event));
  cuda::synchronize(event);
  EXPECT_TRUE(cuda::is_complete(event));
  cuda::destroy_event(event);
}

}  // namespace
}  // namespace taut::test
