#pragma once
// Cross-entropy and selection by label on the device. Labels stay there, so a label that is no class is not
// an `Error`: all that it has an influence on is NaN instead.

#include "../op/cross_entropy.hpp"
#include "cross_entropy_launch.hpp"
#include "softmax.hpp"

namespace taut {

template <class E>
BasicCudaTensor<E> eval(const op::Pick& op, const BasicCudaTensor<E>& x,
                        const BasicCudaTensor<std::int64_t>& labels) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape(), labels.shape()));
  cuda::launch_pick(x.shape()[0], x.shape()[1], x.data(), labels.data(), out.mutable_data(),
                    cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::Unpick& op, const BasicCudaTensor<E>& x,
                        const BasicCudaTensor<std::int64_t>& labels) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape(), labels.shape()));
  cuda::launch_unpick(x.shape()[0], op.classes, x.data(), labels.data(), out.mutable_data(),
                      cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::CrossEntropy& op, const BasicCudaTensor<E>& x,
                        const BasicCudaTensor<std::int64_t>& labels) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(x.shape(), labels.shape()));
  auto losses = BasicCudaTensor<float>::uninitialized(labels.shape());
  cuda::launch_cross_entropy(x.shape()[0], x.shape()[1], x.data(), labels.data(), losses.mutable_data(),
                             out.mutable_data(), cuda::current_stream());
  return out;
}

template <class E>
BasicCudaTensor<E> eval(const op::CrossEntropyGradient& op, const BasicCudaTensor<E>& g,
                        const BasicCudaTensor<E>& x, const BasicCudaTensor<std::int64_t>& labels) {
  auto out = BasicCudaTensor<E>::uninitialized(op.shape(g.shape(), x.shape(), labels.shape()));
  cuda::launch_cross_entropy_gradient(x.shape()[0], x.shape()[1], g.data(), x.data(), labels.data(),
                                      out.mutable_data(), cuda::current_stream());
  return out;
}

}  // namespace taut
