#pragma once
// Dropout on dense arrays: the mask is drawn on the fly, four words a Philox block.

#include <algorithm>

#include "../op/dropout.hpp"
#include "array.hpp"

namespace taut {

template <class E> BasicCpuArray<E> eval(const op::Dropout& op, const BasicCpuArray<E>& x) {
  auto out = BasicCpuArray<E>::uninitialized(op.shape(x.shape()));
  const E scale = op.p < 1 ? static_cast<E>(1 / (1 - op.p)) : E(0);
  const auto size = x.shape().size();
  const E* const from = x.data();
  E* const to = out.mutable_data();
  cpu::parallel_for((size + 3) / 4, cpu::default_grain / 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto block = begin; block < end; ++block) {
      const auto words = op.stream.block(static_cast<std::uint64_t>(block));
      for (std::int64_t i = 4 * block; i < std::min(4 * block + 4, size); ++i) {
        const bool kept =
            RandomStream::to_uniform(words[static_cast<std::size_t>(i % 4)]) >= static_cast<float>(op.p);
        to[i] = kept ? from[i] * scale : E(0);
      }
    }
  });
  return out;
}

}  // namespace taut
