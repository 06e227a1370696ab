#pragma once

#include <functional>

#include "runtime/cuda/driver.hpp"

/// Functions of the driver that only tests need.
struct TestDriver {
  using Graph = struct CUgraph_st*;
  using GraphExec = struct CUgraphExec_st*;

  int (*stream_create)(tilewright::cuda::Stream* stream, unsigned flags) = nullptr;
  int (*stream_destroy)(tilewright::cuda::Stream stream) = nullptr;
  int (*begin_capture)(tilewright::cuda::Stream stream, int mode) = nullptr;
  int (*end_capture)(tilewright::cuda::Stream stream, Graph* graph) = nullptr;
  int (*instantiate)(GraphExec* exec, Graph graph, unsigned long long flags) = nullptr;
  int (*graph_launch)(GraphExec exec, tilewright::cuda::Stream stream) = nullptr;
  int (*exec_destroy)(GraphExec exec) = nullptr;
  int (*graph_destroy)(Graph graph) = nullptr;
  int (*context_create)(tilewright::cuda::Context* context, unsigned flags, int device) = nullptr;
  int (*context_destroy)(tilewright::cuda::Context context) = nullptr;

  static const TestDriver& get();
};

/// Whether there is no GPU to test on; then it says why, as "[SKIP] ...".
bool gpu_is_missing();

/// @throws std::runtime_error where a function of the driver failed
void require_success(int result, const char* doing);

/// A stream of the current context that does not wait for the default one.
class TestStream {
 public:
  TestStream();
  ~TestStream();
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  tilewright::cuda::Stream get() const { return stream_; }
  void synchronize() const;

 private:
  tilewright::cuda::Stream stream_ = nullptr;
};

/// What `enqueue` puts into a stream, captured as a graph that replays in it.
class TestGraph {
 public:
  enum class Capture { global, of_thread, relaxed };  // CUstreamCaptureMode

  TestGraph(const TestStream& stream, Capture mode, const std::function<void()>& enqueue);
  ~TestGraph();
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;
  void launch() const;

 private:
  const TestStream& stream_;
  TestDriver::Graph graph_ = nullptr;
  TestDriver::GraphExec exec_ = nullptr;
};
