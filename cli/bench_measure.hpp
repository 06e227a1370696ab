#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "runtime/attention.hpp"
#include "runtime/staged_call.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::cli {

struct Samples {
  double median_ms = 0;
  double least_ms = 0;
  std::size_t count = 0;
};

inline constexpr std::size_t kLeastSamples = 5;
inline constexpr std::size_t kMostSamples = 200;

/// Times calls of `body`: one to warm up, then as many as the budget allows.
template <typename Body>
Samples sample(double budget_ms, Body body) {
  body();
  std::vector<double> times;
  const Stopwatch total;
  while (times.size() < kLeastSamples || (times.size() < kMostSamples && total.ms() < budget_ms)) {
    const Stopwatch watch;
    body();
    times.push_back(watch.ms());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.size()};
}

/// A call on random data of its own, ready to be made again and again.
class PreparedCall {
 public:
  /// @throws Error as Attention; with code memory
  PreparedCall(const Spec& spec, const Shape& shape, std::uint64_t seed, ThreadPool& threads,
               const Device& device = Device::automatic());

  /// Empty where the spec has no mask_mod.
  const std::optional<BlockMask>& mask() const { return mask_; }
  std::string tactic() const;

  void build_mask() const;
  void forward() const;

  /// Floating-point operations of the two products, over the tiles that are visited.
  double operations() const;

 private:
  ForwardTensors host_tensors() const;
  static verify::Inputs random_inputs(const Spec& spec, const Shape& shape, std::uint64_t seed);

  Attention attention_;
  verify::Inputs inputs_;
  verify::Problem view_;
  Tensor out_;
  std::optional<Tensor> lse_;
  std::unique_ptr<const StagedCall> staged_;  // on the device
  Bindings bindings_;
  std::optional<BlockMask> mask_;
};

}  // namespace tilewright::cli
