#include "cli/bench/plan_timing.hpp"

#include <functional>
#include <vector>

#include "cli/bench/replayed_graph.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/event.hpp"

namespace tilewright::cli {
namespace {

constexpr int kRebuilds = 50;  // one after another, whose mean is one sample

bool plans_on_cpu(const Device& device) {
  return device.kind() == Device::Kind::cpu;
}

void enqueue_rebuilds(const PreparedCall& call, cuda::Stream stream) {
  for (int i = 0; i < kRebuilds; ++i) call.enqueue_rebuild(stream);
}

std::vector<double> times_of_plans(const cuda::Driver& driver, cuda::Stream stream,
                                   double budget_ms, const std::function<void()>& enqueue) {
  enqueue();
  cuda::Event start(driver);
  cuda::Event end(driver);
  std::vector<double> times;
  const Stopwatch total;
  while (times.size() < kLeastSamples || (times.size() < kMostSamples && total.ms() < budget_ms)) {
    start.record(stream);
    enqueue();
    end.record(stream);
    times.push_back(end.ms_since(start) / kRebuilds);
  }
  return times;
}

std::vector<double> plan_times_on_gpu(const PreparedCall& call, const cuda::Driver& driver,
                                      double budget_ms) {
  if (!ReplayedGraph::is_available()) {
    return times_of_plans(driver, nullptr, budget_ms, [&] { enqueue_rebuilds(call, nullptr); });
  }
  call.wait();
  const ReplayedGraph graph(driver, [&](cuda::Stream stream) { enqueue_rebuilds(call, stream); });
  return times_of_plans(driver, graph.stream(), budget_ms, [&] { graph.launch(); });
}

}  // namespace

Samples time_rebuild(const PreparedCall& call, const Timing& timing) {
  if (plans_on_cpu(call.device())) {
    return sample(timing.budget_ms, [&] { call.enqueue_rebuild(); });
  }
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::ContextScope scope(driver, call.device().index());
  const Samples samples = summarize(plan_times_on_gpu(call, driver, timing.budget_ms));
  call.enqueue_rebuild();  // so that the plan is one of the default stream again
  call.wait();
  return samples;
}

std::string_view describe_rebuild_timing(const Device& device) {
  if (plans_on_cpu(device)) return "the host's clock";
  return ReplayedGraph::is_available() ? "CUDA events, replayed graph"
                                       : "CUDA events, launches back to back";
}

}  // namespace tilewright::cli
