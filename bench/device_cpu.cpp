// The processor as a device of the benchmarks.

#include <taut/cpu/cpu.hpp>
#include <taut/interpret/profiled.hpp>

#include <fstream>

#include "device.hpp"

using namespace taut;

namespace bench {
namespace {

class CpuDevice final : public Device {
 public:
  std::unique_ptr<Session> open(const std::string& rung, Start start) const override {
    start.folded = rung == "folded";
    if (rung == "f32" || rung == "folded") return make_session<CpuArray>(std::move(start));
    if (rung == "f64") return make_session<BasicCpuArray<double>>(std::move(start));
    if (rung == "profiled") return make_session<Profiled<CpuArray>>(std::move(start));
    throw Error("there is no rung '" + rung + "'");
  }

  /// Not getrusage's, which also knows what the parent had when it started this process.
  double peak_bytes() const override {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:")) return 1024 * std::stod(line.substr(6));
    throw Error("this system does not tell the largest resident set");
  }

  std::vector<std::pair<std::string, std::string>> about() const override {
#if TAUT_HAS_ONEDNN
    const auto* const onednn = dnnl_version();
    return {
        { "oneDNN",
          std::to_string(onednn->major) + "." + std::to_string(onednn->minor) + "." +
              std::to_string(onednn->patch) }};
#else
    return {};
#endif
  }
};

}  // namespace

const Device& cpu_device() {
  static const CpuDevice device;
  return device;
}

}  // namespace bench
