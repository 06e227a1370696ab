#include "runtime/cuda/merge.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/ceil_div.hpp"

namespace tilewright::cuda {
namespace {

// Lanes that share a row, 16 bytes each at a time.
int lane_bits(const abi::MergeArguments& call, std::size_t element_bytes) {
  constexpr unsigned kBytesOfLane = 16, kMostLanes = 32;
  const unsigned bytes = static_cast<unsigned>(call.width) * static_cast<unsigned>(element_bytes);
  const unsigned lanes = std::bit_ceil((bytes + kBytesOfLane - 1) / kBytesOfLane);
  return std::countr_zero(std::min(lanes, kMostLanes));
}

}  // namespace

void launch_merge(const LaunchScope& on, abi::MergeArguments call, tilewright::Stream stream) {
  // The kernel: merge.cu.jinja.
  const Kernel& kernel = on.kernels.kernel(kMerge, "tilewright_merge");

  // The grid: lanes of one warp share a row.
  call.lane_bits = lane_bits(call, size_of(on.spec.output_dtype()));
  const LaunchConfig config = {
      .blocks = ceil_div(call.all_rows, std::int64_t{abi::kMergeThreads >> call.lane_bits}),
      .threads = abi::kMergeThreads,
      .stream = stream,
      .doing = "launching merge"};

  // The launch.
  launch_kernel(on.driver, kernel, config, call);
}

}  // namespace tilewright::cuda
