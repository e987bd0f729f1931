// A GPU as a device of the benchmarks, and the sessions on it.

#include <taut/cuda/cuda.hpp>

#include "device.hpp"
#include "session_impl.hpp"

using namespace taut;

namespace bench {

template <class E> struct Captured<BasicCudaTensor<E>> {
  template <class Step> static Step of(const Step& step, optim::Optimizer& optimizer) {
    const auto captured =
        std::make_shared<decltype(cuda::capture(step, optimizer))>(cuda::capture(step, optimizer));
    return [captured](const auto& images, const auto& labels) { return (*captured)(images, labels); };
  }
};

namespace {

using Half = BasicCudaTensor<bfloat16>;

class CudaDevice final : public Device {
 public:
  std::unique_ptr<Session> open(const std::string& rung, Start start) const override {
    cuda::require_device();
    const std::string precision = rung.substr(0, rung.find('+'));
    start.folded = rung == precision + "+folded";
    start.captured = rung == precision + "+graph";
    start.workers = 4;  // one would keep the device waiting
    cuda::allow_tf32(precision == "tf32");
    const bool known = start.folded || start.captured || rung == precision;
    if (known && (precision == "f32" || precision == "tf32"))
      return make_session<CudaTensor>(std::move(start));
    if (known && precision == "bf16") return make_session<Half>(std::move(start));
    throw Error("there is no rung '" + rung + "' on the GPU");
  }

  void finish() const override { cuda::synchronize(cuda::current_stream()); }

  double peak_bytes() const override { return static_cast<double>(cuda::pool().statistics().peak); }

  std::vector<std::pair<std::string, std::string>> about() const override {
    const auto& gpu = cuda::device_properties();
    return {{"device", gpu.name},
            {"compute capability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor)},
            {"device memory, GiB", std::to_string(gpu.total_bytes >> 30)}};
  }
};

}  // namespace

template std::unique_ptr<Session> make_session<CudaTensor>(Start);
template std::unique_ptr<Session> make_session<Half>(Start);

const Device& cuda_device() {
  static const CudaDevice device;
  return device;
}

}  // namespace bench
