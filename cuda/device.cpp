// The door to the device by the CUDA runtime. Host code alone, so that the host's compiler compiles it.

#include "taut/cuda/device.hpp"

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <taut/cuda/ongoing_capture.hpp>

#include <cstdio>
#include <map>
#include <mutex>

namespace taut::cuda {

namespace {

/// Throws unless the runtime's call succeeded. Its error is taken back, so that later calls do not report it.
void check(const char* call, cudaError_t code) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();
  throw DeviceError(call, static_cast<int>(code), std::string("cuda: ") + cudaGetErrorString(code));
}

DeviceProperties read_properties(int device) {
  DeviceProperties properties;
  cudaDeviceProp all;
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&all, device));
  std::snprintf(properties.name, sizeof properties.name, "%s", all.name);
  properties.major = all.major;
  properties.minor = all.minor;
  properties.multiprocessors = all.multiProcessorCount;
  properties.total_bytes = all.totalGlobalMem;
  return properties;
}

/// Lets calls through that a capture of a stream would refuse, though they have nothing to do with it.
class DespiteCapture {
 public:
  DespiteCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~DespiteCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  DespiteCapture(const DespiteCapture&) = delete;
  DespiteCapture& operator=(const DespiteCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

cudaStream_t native(Stream stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaGraphExec_t native(Graph graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }
cudaEvent_t native(Event event) { return reinterpret_cast<cudaEvent_t>(event); }

void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Stream stream) {
  if (bytes > 0) check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, kind, native(stream)));
}

}  // namespace

int device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return count;
  (void)cudaGetLastError();
  return 0;
}

void require_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return;
  (void)cudaGetLastError();
  throw DeviceError("cudaGetDeviceCount", static_cast<int>(code),
                    std::string("cuda: no device was found, run with --device cpu: ") +
                        (code == cudaSuccess ? "there is none" : cudaGetErrorString(code)));
}

const DeviceProperties& device_properties() {
  static std::mutex mutex;
  static std::map<int, DeviceProperties> known;
  const int device = current_device();
  const std::lock_guard lock(mutex);
  const auto found = known.find(device);
  return found != known.end() ? found->second : known.emplace(device, read_properties(device)).first->second;
}

int current_device() {
  int device = 0;
  if (cudaGetDevice(&device) == cudaSuccess) return device;
  require_device();
  check("cudaGetDevice", cudaGetDevice(&device));
  return device;
}

void set_current_device(int device) { check("cudaSetDevice", cudaSetDevice(device)); }

Stream create_stream() {
  require_device();
  cudaStream_t stream = nullptr;
  check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return reinterpret_cast<Stream>(stream);
}

void destroy_stream(Stream stream) noexcept { (void)cudaStreamDestroy(native(stream)); }

void synchronize(Stream stream) {
  leave_capture(stream, "waits for the device");
  check("cudaStreamSynchronize", cudaStreamSynchronize(native(stream)));
}

Event create_event(bool timed) {
  cudaEvent_t event = nullptr;
  check("cudaEventCreateWithFlags",
        cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  return reinterpret_cast<Event>(event);
}

void destroy_event(Event event) noexcept { (void)cudaEventDestroy(native(event)); }

void record(Event event, Stream stream) {
  leave_capture(stream, "records an event");
  check("cudaEventRecord", cudaEventRecord(native(event), native(stream)));
}

void wait(Stream stream, Event event) {
  leave_capture(stream, "waits for another stream");
  check("cudaStreamWaitEvent", cudaStreamWaitEvent(native(stream), native(event), 0));
}

bool is_complete(Event event) {
  const DespiteCapture scope;
  const cudaError_t code = cudaEventQuery(native(event));
  if (code == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check("cudaEventQuery", code);
  return true;
}

void synchronize(Event event) {
  const DespiteCapture scope;
  check("cudaEventSynchronize", cudaEventSynchronize(native(event)));
}

float elapsed_milliseconds(Event begin, Event end) {
  float milliseconds = 0;
  check("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, native(begin), native(end)));
  return milliseconds;
}

void push_range(std::string_view name) { (void)nvtxRangePushA(std::string(name).c_str()); }
void pop_range() { (void)nvtxRangePop(); }

void begin_capture(Stream stream) {
  // Taut's own calls that other modes refuse, such as allocations, do not harm a capture.
  check("cudaStreamBeginCapture", cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeRelaxed));
}

Graph end_capture(Stream stream) {
  cudaGraph_t captured = nullptr;
  check("cudaStreamEndCapture", cudaStreamEndCapture(native(stream), &captured));
  cudaGraphExec_t graph = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&graph, captured, 0);
  (void)cudaGraphDestroy(captured);
  check("cudaGraphInstantiate", code);
  return reinterpret_cast<Graph>(graph);
}

void replay(Graph graph, Stream stream) {
  check("cudaGraphLaunch", cudaGraphLaunch(native(graph), native(stream)));
}

// One that is still running is freed by the runtime when it is done.
void destroy_graph(Graph graph) noexcept { (void)cudaGraphExecDestroy(native(graph)); }

void* allocate(std::size_t bytes) {
  require_device();
  const DespiteCapture scope;
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check("cudaMalloc", code);
  return memory;
}

void release(void* memory) noexcept {
  const DespiteCapture scope;
  (void)cudaFree(memory);
}

bool memory_is_on_host() noexcept { return false; }

void* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check("cudaMallocHost", cudaMallocHost(&memory, bytes));
  return memory;
}

void release_pinned(void* memory) noexcept { (void)cudaFreeHost(memory); }

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  check("cudaMemGetInfo", cudaMemGetInfo(&free, &total));
  return free;
}

void copy_to_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  copy(to, from, bytes, cudaMemcpyHostToDevice, stream);
}

void copy_to_host(void* to, const void* from, std::size_t bytes, Stream stream) {
  copy(to, from, bytes, cudaMemcpyDeviceToHost, stream);
}

void copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) {
  copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

void fill_bytes(void* to, unsigned char value, std::size_t bytes, Stream stream) {
  if (bytes > 0) check("cudaMemsetAsync", cudaMemsetAsync(to, value, bytes, native(stream)));
}

}  // namespace taut::cuda
