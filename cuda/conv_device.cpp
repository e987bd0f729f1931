// The one step of planning that needs a device.

#include "conv_plan.hpp"

namespace taut::cuda {

Descriptor describe_device(int device) {
  Descriptor result(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  result.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, {static_cast<std::int32_t>(device)});
  return std::move(result.finalize());
}

}  // namespace taut::cuda
