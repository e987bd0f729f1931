// Runs the tests of the CUDA leaf on a GPU. Exit status 77 means that there is none.

#include <gtest/gtest.h>
#include <taut/cuda/device.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    taut::cuda::require_device();
  } catch (const taut::DeviceError& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  std::printf("on %s\n", taut::cuda::device_properties().name);
  return RUN_ALL_TESTS();
}
