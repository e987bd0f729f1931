#pragma once
// What both sides of a comparison start from, as safetensors files in one directory: `weights.safetensors`,
// under PyTorch's names, and `batches.safetensors` with the tensors images.0, labels.0, images.1, …

#include <string>
#include <vector>

#include "workload.hpp"

namespace bench {

struct Batch {
  taut::Shape shape;
  std::vector<float> values;
  std::vector<std::int64_t> labels;
};

/// Random pixels that can be learned from: uniform noise over one pattern for each of ten classes, about
/// 0 with deviation 1 where the workload is normalised, else from 0 to 1.
std::vector<Batch> draw_batches(const Workload& workload, std::int64_t batch_size, int count, taut::Rng rng);

/// Writes both files, with `count` batches.
void write_exchange(const Workload& workload, const std::string& directory, std::int64_t batch_size,
                    int count);

std::vector<Batch> read_batches(const std::string& directory);
std::string weights_path(const std::string& directory);

}  // namespace bench
