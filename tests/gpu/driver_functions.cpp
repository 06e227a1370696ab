#include "tests/gpu/driver_functions.hpp"

#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "runtime/cuda/targets.hpp"
#include "tests/support/skip.hpp"

using namespace tilewright;

const TestDriver& TestDriver::get() {
  static const TestDriver driver = [] {
    static const DynamicLibrary library = DynamicLibrary::open("libcuda.so.1");
    TestDriver d;
    const auto load = [&](auto& function, const char* name) {
      using Type = std::remove_pointer_t<std::remove_reference_t<decltype(function)>>;
      function = library.function<Type>(name);
      if (!function) throw std::runtime_error(std::string("the driver has no ") + name);
    };
    load(d.stream_create, "cuStreamCreate");
    load(d.stream_destroy, "cuStreamDestroy_v2");
    load(d.begin_capture, "cuStreamBeginCapture_v2");
    load(d.end_capture, "cuStreamEndCapture");
    load(d.instantiate, "cuGraphInstantiateWithFlags");
    load(d.graph_launch, "cuGraphLaunch");
    load(d.exec_destroy, "cuGraphExecDestroy");
    load(d.graph_destroy, "cuGraphDestroy");
    load(d.context_create, "cuCtxCreate_v2");
    load(d.context_destroy, "cuCtxDestroy_v2");
    return d;
  }();
  return driver;
}

bool gpu_is_missing() {
  const std::string reason = cuda::why_not_available();
  if (reason.empty()) return false;
  test::say_skipped("no GPU: " + reason);
  return true;
}

void require_success(int result, const char* doing) {
  if (result == 0) return;
  throw std::runtime_error(std::string(doing) + ": " + cuda::Driver::get().describe(result));
}

TestStream::TestStream() {
  constexpr unsigned kNonBlocking = 1;
  require_success(TestDriver::get().stream_create(&stream_, kNonBlocking), "making a stream");
}

TestStream::~TestStream() {
  TestDriver::get().stream_destroy(stream_);
}

void TestStream::synchronize() const {
  require_success(cuda::Driver::get().functions().stream_synchronize(stream_),
                  "waiting for a stream");
}

TestGraph::TestGraph(const TestStream& stream, Capture mode, const std::function<void()>& enqueue)
    : stream_(stream) {
  const TestDriver& driver = TestDriver::get();
  require_success(driver.begin_capture(stream.get(), static_cast<int>(mode)),
                  "beginning a capture");
  enqueue();
  require_success(driver.end_capture(stream.get(), &graph_), "ending a capture");
  require_success(driver.instantiate(&exec_, graph_, 0), "instantiating a graph");
}

TestGraph::~TestGraph() {
  TestDriver::get().exec_destroy(exec_);
  TestDriver::get().graph_destroy(graph_);
}

void TestGraph::launch() const {
  require_success(TestDriver::get().graph_launch(exec_, stream_.get()), "launching a graph");
}
