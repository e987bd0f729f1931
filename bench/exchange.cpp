#include "exchange.hpp"

#include <taut/cpu/cpu.hpp>
#include <taut/io/model.hpp>

#include <cmath>

using namespace taut;

namespace bench {

std::vector<Batch> draw_batches(const Workload& workload, std::int64_t batch_size, int count, Rng rng) {
  const auto pixels = workload.batch_shape(1).size();
  std::vector<float> patterns(static_cast<std::size_t>(10 * pixels));
  for (float& value : patterns) value = static_cast<float>(rng.uniform());
  // A mean of two uniform numbers has the deviation 1/sqrt(24).
  const float centre = workload.normalized() ? 0.5f : 0, scale = workload.normalized() ? std::sqrt(24.0f) : 1;
  std::vector<Batch> batches(static_cast<std::size_t>(count));
  for (auto& [shape, values, labels] : batches) {
    shape = workload.batch_shape(batch_size);
    for (std::int64_t i = 0; i < batch_size; ++i) {
      labels.push_back(static_cast<std::int64_t>(rng.integer(10)));
      const auto* const pattern = &patterns[static_cast<std::size_t>(labels.back() * pixels)];
      for (std::int64_t k = 0; k < pixels; ++k)
        values.push_back(((static_cast<float>(rng.uniform()) + pattern[k]) / 2 - centre) * scale);
    }
  }
  return batches;
}

std::string weights_path(const std::string& directory) { return directory + "/weights.safetensors"; }

void write_exchange(const Workload& workload, const std::string& directory, std::int64_t batch_size,
                    int count) {
  Rng rng{1};
  with_network<CpuArray>(workload, rng,
                         [&](const auto& network) { io::save(network, weights_path(directory)); });
  const auto batches = draw_batches(workload, batch_size, count, rng.fork(1));
  std::vector<io::TensorView> views;
  for (const auto& [shape, values, labels] : batches) {
    const auto number = std::to_string(views.size() / 2);
    views.push_back({"images." + number, io::DType::f32, shape, std::as_bytes(std::span(values))});
    views.push_back({"labels." + number, io::DType::i64, Shape{shape[0]}, std::as_bytes(std::span(labels))});
  }
  io::write_safetensors(directory + "/batches.safetensors", views);
}

std::vector<Batch> read_batches(const std::string& directory) {
  const auto file = io::SafetensorsFile::read(directory + "/batches.safetensors");
  std::vector<Batch> batches;
  for (std::size_t i = 0;; ++i) {
    const auto* const images = file.find("images." + std::to_string(i));
    const auto* const labels = file.find("labels." + std::to_string(i));
    if (images == nullptr || labels == nullptr) return batches;
    const auto classes = labels->values<double>();
    batches.push_back({images->shape, images->values<float>(), {classes.begin(), classes.end()}});
  }
}

}  // namespace bench
