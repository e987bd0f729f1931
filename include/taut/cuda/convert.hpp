#pragma once
// Conversion between float and bfloat16 on the device. The layout stays.

#include "../op/convert.hpp"
#include "convert_launch.hpp"
#include "tensor.hpp"

namespace taut {

template <class To, class From>
BasicCudaTensor<To> eval(const op::Convert<BasicCudaTensor<To>>&, const BasicCudaTensor<From>& x) {
  auto out = BasicCudaTensor<To>::uninitialized(x.shape(), x.layout());
  cuda::launch_convert(x.shape().size(), x.data(), out.mutable_data(), cuda::current_stream());
  return out;
}

}  // namespace taut
