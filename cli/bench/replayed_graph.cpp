#include "cli/bench/replayed_graph.hpp"

#include <type_traits>

#include "base/dynamic_library.hpp"

namespace tilewright::cli {
namespace {

using Graph = struct CUgraph_st*;
using Executable = struct CUgraphExec_st*;

// Functions of the driver that a benchmark alone needs.
struct GraphFunctions {
  int (*stream_create)(cuda::Stream* stream, unsigned flags);
  int (*stream_destroy)(cuda::Stream stream);
  int (*begin_capture)(cuda::Stream stream, int mode);
  int (*end_capture)(cuda::Stream stream, Graph* graph);
  int (*instantiate)(Executable* executable, Graph graph, unsigned long long flags);
  int (*launch)(Executable executable, cuda::Stream stream);
  int (*destroy_executable)(Executable executable);
  int (*destroy)(Graph graph);
  bool are_all_there = true;

  static const GraphFunctions& get() {
    static const GraphFunctions functions;
    return functions;
  }

 private:
  GraphFunctions() {
    const DynamicLibrary library = DynamicLibrary::open("libcuda.so.1");
    load(library, stream_create, "cuStreamCreate");
    load(library, stream_destroy, "cuStreamDestroy_v2");
    load(library, begin_capture, "cuStreamBeginCapture_v2");
    load(library, end_capture, "cuStreamEndCapture");
    load(library, instantiate, "cuGraphInstantiateWithFlags");
    load(library, launch, "cuGraphLaunch");
    load(library, destroy_executable, "cuGraphExecDestroy");
    load(library, destroy, "cuGraphDestroy");
  }

  template <typename Function>
  void load(const DynamicLibrary& library, Function*& function, const char* name) {
    function = library ? library.function<Function>(name) : nullptr;
    are_all_there = are_all_there && function != nullptr;
  }
};

}  // namespace

bool ReplayedGraph::is_available() {
  return GraphFunctions::get().are_all_there;
}

ReplayedGraph::ReplayedGraph(const cuda::Driver& driver,
                             const std::function<void(cuda::Stream)>& enqueue)
    : driver_(driver) {
  constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
  constexpr int kCaptureOfThread = 1;   // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  const GraphFunctions& functions = GraphFunctions::get();
  driver.check(functions.stream_create(&stream_, kNonBlocking), "making a stream");
  driver.check(functions.begin_capture(stream_, kCaptureOfThread), "beginning to capture a graph");
  enqueue(stream_);
  driver.check(functions.end_capture(stream_, &graph_), "capturing a graph");
  driver.check(functions.instantiate(&executable_, graph_, 0), "instantiating a graph");
}

ReplayedGraph::~ReplayedGraph() {
  const GraphFunctions& functions = GraphFunctions::get();
  functions.destroy_executable(executable_);
  functions.destroy(graph_);
  functions.stream_destroy(stream_);
}

void ReplayedGraph::launch() const {
  driver_.check(GraphFunctions::get().launch(executable_, stream_), "launching a graph");
}

}  // namespace tilewright::cli
