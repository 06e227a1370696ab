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

void launch_merge(const Driver& driver, const Kernel& kernel, abi::MergeArguments call,
                  std::size_t element_bytes, Stream stream) {
  call.lane_bits = lane_bits(call, element_bytes);
  const std::int64_t rows_of_block = abi::kMergeThreads >> call.lane_bits;
  const auto blocks = static_cast<unsigned>(ceil_div(call.all_rows, rows_of_block));
  void* parameters[] = {&call};
  driver.check(driver.functions().launch(kernel.function, blocks, 1, 1, abi::kMergeThreads, 1, 1, 0,
                                         stream, parameters, nullptr),
               "launching merge");
}

}  // namespace tilewright::cuda
