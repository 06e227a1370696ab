#include "tests/emulated_gpu/graph.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace emulated {
namespace {

using Graph = std::vector<std::function<int()>>;

thread_local std::unique_ptr<Graph> captured;

}  // namespace

bool is_capturing() {
  return captured != nullptr;
}

void capture(std::function<int()> work) {
  captured->push_back(std::move(work));
}

}  // namespace emulated

namespace {

constexpr int kInvalidValue = 1;

using Shared = std::shared_ptr<emulated::Graph>;

}  // namespace

extern "C" {

int cuStreamBeginCapture_v2(void* stream, int) {
  if (stream == nullptr || emulated::captured) return kInvalidValue;
  emulated::captured = std::make_unique<emulated::Graph>();
  return 0;
}
int cuStreamEndCapture(void*, void** graph) {
  if (!emulated::captured) return kInvalidValue;
  return *graph = new Shared(std::move(emulated::captured)), 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return *executable = new Shared(*static_cast<Shared*>(graph)), 0;
}
int cuGraphLaunch(void* executable, void*) {
  if (executable == nullptr) return kInvalidValue;
  for (const auto& work : **static_cast<Shared*>(executable)) {
    if (const int result = work(); result != 0) return result;
  }
  return 0;
}
int cuGraphExecDestroy(void* executable) {
  return delete static_cast<Shared*>(executable), 0;
}
int cuGraphDestroy(void* graph) {
  return delete static_cast<Shared*>(graph), 0;
}

}  // extern "C"
