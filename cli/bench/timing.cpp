#include "cli/bench/timing.hpp"

#include <algorithm>
#include <deque>

#include "runtime/cuda/context.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "runtime/cuda/event.hpp"

namespace tilewright::cli {
namespace {

constexpr std::size_t kWarmUps = 3;
constexpr std::size_t kLooks = 16;  // elements of out that are looked at after each of them
constexpr int kTurns = 3;
constexpr std::size_t kTimesL2 = 4;  // bytes written, so that nothing of a call stays in the cache

bool is_cpu(const Device& device) {
  return device.kind() == Device::Kind::cpu;
}

// Overwrites a GPU's L2 cache.
class L2Flush {
 public:
  L2Flush(const cuda::Driver& driver, const Device& device)
      : driver_(driver), memory_(device, kTimesL2 * l2_bytes(driver, device)) {}

  void enqueue() const {
    driver_.check(driver_.functions().fill_bytes(reinterpret_cast<std::uintptr_t>(memory_.data()),
                                                 0, memory_.bytes(), nullptr),
                  "flushing the L2 cache");
  }

 private:
  static std::size_t l2_bytes(const cuda::Driver& driver, const Device& device) {
    return static_cast<std::size_t>(cuda::device_facts(driver, device.index()).l2_bytes);
  }

  const cuda::Driver& driver_;
  cuda::DeviceMemory memory_;
};

void warm_up(const PreparedCall& call) {
  for (std::size_t i = 0; i < kWarmUps; ++i) {
    call.poison_out();
    call.forward();
    for (std::size_t look = 0; look < kLooks; ++look) {
      call.require_result_at(i * kLooks + look);
    }
  }
}

// The host queues the fills and the call while the GPU still writes, so that no waiting for the
// host lies between the events.
std::vector<double> times_after_flush(const PreparedCall& call, const cuda::Driver& driver,
                                      double budget_ms) {
  const L2Flush flush(driver, call.device());
  cuda::Event start(driver);
  cuda::Event end(driver);
  std::vector<double> times;
  const Stopwatch total;
  while (times.size() < kLeastSamples || (times.size() < kMostSamples && total.ms() < budget_ms)) {
    call.poison_out();
    flush.enqueue();
    start.record();
    call.enqueue();
    end.record();
    times.push_back(end.ms_since(start));
    call.require_result_at(times.size());
  }
  return times;
}

std::vector<double> times_back_to_back(const PreparedCall& call, const cuda::Driver& driver,
                                       double budget_ms) {
  const Stopwatch watch;
  call.forward();
  const auto affordable = static_cast<std::size_t>(budget_ms / watch.ms());
  const std::size_t count = std::clamp(affordable, kLeastSamples, kMostSamples);
  std::deque<cuda::Event> events;
  for (std::size_t i = 0; i <= count; ++i) events.emplace_back(driver);
  call.poison_out();
  events[0].record();
  for (std::size_t i = 1; i <= count; ++i) {
    call.enqueue();
    events[i].record();
  }
  std::vector<double> times;
  for (std::size_t i = 1; i <= count; ++i) times.push_back(events[i].ms_since(events[i - 1]));
  return times;
}

// Of rounds of the same call.
Samples over_rounds(const std::vector<Samples>& rounds) {
  std::vector<double> medians;
  Samples all{.least_ms = rounds.front().least_ms};
  for (const Samples& round : rounds) {
    medians.push_back(round.median_ms);
    all.least_ms = std::min(all.least_ms, round.least_ms);
    all.count += round.count;
  }
  all.median_ms = summarize(std::move(medians)).median_ms;
  return all;
}

Samples time_on_cpu(const PreparedCall& call, double budget_ms) {
  call.poison_out();
  const Samples samples = sample(budget_ms, [&] { call.forward(); });
  call.require_result();
  return samples;
}

}  // namespace

std::string_view describe_timing(const Device& device, const Timing& timing) {
  if (is_cpu(device)) return "the host's clock";
  return timing.hot ? "CUDA events, calls back to back"
                    : "CUDA events, L2 flushed before each call";
}

Samples time_forward(const PreparedCall& call, const Timing& timing) {
  if (is_cpu(call.device())) return time_on_cpu(call, timing.budget_ms);
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::ContextScope scope(driver, call.device().index());
  warm_up(call);
  std::vector<double> times = timing.hot ? times_back_to_back(call, driver, timing.budget_ms)
                                         : times_after_flush(call, driver, timing.budget_ms);
  call.require_result();
  return summarize(std::move(times));
}

std::pair<Samples, Samples> time_in_turns(const PreparedCall& one, const PreparedCall& other,
                                          const Timing& timing) {
  Timing turn = timing;
  turn.budget_ms /= kTurns;
  std::vector<Samples> of_one, of_other;
  for (int round = 0; round < kTurns; ++round) {
    of_one.push_back(time_forward(one, turn));
    of_other.push_back(time_forward(other, turn));
  }
  return {over_rounds(of_one), over_rounds(of_other)};
}

}  // namespace tilewright::cli
