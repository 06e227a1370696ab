#pragma once

#include <functional>

#include "runtime/cuda/driver.hpp"

namespace tilewright::cli {

/// Work that a CUDA graph repeats: no host lies between its launches. Needs the same context to be
/// current whenever it is used.
class ReplayedGraph {
 public:
  /// Whether the driver has graphs.
  static bool is_available();

  /// Captures what `enqueue` puts into the stream that it is given.
  /// @throws Error with code device
  ReplayedGraph(const cuda::Driver& driver, const std::function<void(cuda::Stream)>& enqueue);
  ~ReplayedGraph();
  ReplayedGraph(const ReplayedGraph&) = delete;
  ReplayedGraph& operator=(const ReplayedGraph&) = delete;

  /// The stream that it was captured in and replays in.
  cuda::Stream stream() const { return stream_; }
  void launch() const;

 private:
  const cuda::Driver& driver_;
  cuda::Stream stream_ = nullptr;
  struct CUgraph_st* graph_ = nullptr;
  struct CUgraphExec_st* executable_ = nullptr;
};

}  // namespace tilewright::cli
