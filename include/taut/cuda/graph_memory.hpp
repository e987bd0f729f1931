#pragma once
// Memory that belongs to a graph of captured work.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "pool.hpp"

namespace taut::cuda {

/// The memory of a graph, from the beginning of its capture on. Work that is captured runs when the graph is
/// replayed, so until this object is destroyed nobody else gets what was allocated during the capture, or
/// what was used there and has been freed since. The graph must be replayed in the stream that it was
/// captured from, or that stream wait for it.
class GraphMemory {
 public:
  /// To be made right before the stream's capture begins. Throws `Error` if the stream is being captured.
  GraphMemory(Pool& pool, Stream stream) : pool_(pool), graph_(pool.begin_capture(stream)) {}
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory() { pool_.release_graph(graph_); }

  /// To be called right after the stream's capture has ended, whether it was successful or not.
  void end_capture() noexcept { pool_.end_capture(graph_); }

  /// The bytes that only the graph keeps.
  std::size_t bytes() const { return pool_.ask(graph_, std::mem_fn(&detail::GraphBlocks::bytes)); }

  /// How many buffers that were allocated during the capture are still held.
  std::size_t live() const { return pool_.ask(graph_, std::mem_fn(&detail::GraphBlocks::live)); }

  /// Whether what the capture has used and was there before is still held, and what it has written to is held
  /// by one handle: a replay then reads and writes what the program means, and nobody else sees that.
  bool is_intact() const { return pool_.ask(graph_, std::mem_fn(&detail::GraphBlocks::is_intact)); }

 private:
  Pool& pool_;
  std::uint64_t graph_;
};

}  // namespace taut::cuda
