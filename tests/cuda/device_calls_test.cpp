// What device.cpp asks of CUDA's runtime when work is captured, with a model of that on the host in its
// place: of streams that refuse, while they are captured, what a device's refuse. Needs the runtime's
// headers, but neither the library nor a GPU.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "taut/cuda/recording.hpp"

namespace {

enum class Capture { none, active, invalid };

/// The model: of one stream that can be captured, and what there is of graphs.
struct Model {
  Capture capture = Capture::none;
  cudaError_t instantiation = cudaSuccess;  ///< what the next one returns
  int graphs = 0, executables = 0;          ///< that are not destroyed
  int copies = 0, captured = 0;             ///< that were run, and put into the graph
  int launches = 0;

  /// What the stream does not allow while it is captured.
  cudaError_t forbidden() {
    if (capture == Capture::none) return cudaSuccess;
    capture = Capture::invalid;
    return cudaErrorStreamCaptureUnsupported;
  }
  cudaError_t copy() {
    if (capture == Capture::none)
      ++copies;
    else
      ++captured;
    return cudaSuccess;
  }
} model;

int name;  // something to point at

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode mode) {
  EXPECT_EQ(model.capture, Capture::none);
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed) << "the pool allocates";
  model.capture = Capture::active;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  EXPECT_NE(model.capture, Capture::none);
  const bool valid = std::exchange(model.capture, Capture::none) == Capture::active;
  *graph = valid ? reinterpret_cast<cudaGraph_t>(&name) : nullptr;
  model.graphs += valid;
  return valid ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t, unsigned long long) {
  if (const cudaError_t code = std::exchange(model.instantiation, cudaSuccess)) return code;
  *executable = reinterpret_cast<cudaGraphExec_t>(&name);
  ++model.executables;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  ++model.launches;
  return model.forbidden();
}
cudaError_t cudaGraphDestroy(cudaGraph_t) {
  --model.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  --model.executables;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return model.forbidden(); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return model.forbidden(); }
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) { return model.copy(); }
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t) { return model.copy(); }

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::aligned_alloc(256, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(&name);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(&name);
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

// What has no effect here.
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t*, size_t*) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int) { return cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
}

namespace taut::cuda {
namespace {

class CudaDevice : public testing::Test {
 protected:
  CudaDevice() { model = Model{}; }
  void TearDown() override {
    EXPECT_EQ(model.capture, Capture::none);
    EXPECT_EQ(model.graphs, 0);
    EXPECT_EQ(model.executables, 0);
  }

  const Stream stream_ = current_stream();
  std::byte memory_[64] = {};
};

TEST_F(CudaDevice, ReplaysWhatWasCaptured) {
  begin_capture(stream_);
  copy_on_device(memory_, memory_ + 32, 32, stream_);
  const Graph graph = end_capture(stream_);
  EXPECT_EQ(model.captured, 1);
  EXPECT_EQ(model.launches, 0);
  EXPECT_EQ(model.graphs, 0) << "only its executable form is needed";
  for (int i = 0; i < 3; ++i) replay(graph, stream_);
  EXPECT_EQ(model.launches, 3);
  destroy_graph(graph);
}

TEST_F(CudaDevice, KeepsNothingOfAGraphThatFails) {
  begin_capture(stream_);
  model.instantiation = cudaErrorMemoryAllocation;
  EXPECT_THROW((void)end_capture(stream_), DeviceError);
  begin_capture(stream_);
  EXPECT_THROW(synchronize(stream_), DeviceError) << "nobody has ended the capture for it";
  EXPECT_THROW((void)end_capture(stream_), DeviceError);
}

TEST_F(CudaDevice, EndsARecordingBeforeTheHostTakesPart) {
  const std::pair<std::function<void()>, std::string> cases[] = {
      {[&] { synchronize(stream_); }, "waits for the device"},
      {[&] { record(create_event(), stream_); }, "records an event"},
      {[&] { upload(memory_, memory_ + 32, 32, stream_); }, "takes values from the host"},
  };
  for (const auto& [act, reason] : cases) {
    model = Model{};
    Recording recording({});
    fill_bytes(memory_, 1, 32, stream_);
    EXPECT_EQ(model.captured, 1);
    act();
    EXPECT_EQ(model.capture, Capture::none);
    EXPECT_EQ(model.launches, 1) << "what was captured has run";
    EXPECT_EQ(recording.reason(), reason);
    const int before = model.copies;
    fill_bytes(memory_, 2, 32, stream_);
    EXPECT_EQ(model.copies, before + 1) << "and from then on all is run";
    recording.finish();
    EXPECT_EQ(model.launches, 1);
  }
}

TEST_F(CudaDevice, RunsWhatWasCapturedOfAStepThatThrows) {
  { const Recording recording({}); }
  EXPECT_EQ(model.launches, 1);
}

}  // namespace
}  // namespace taut::cuda
