#pragma once

#include <string_view>

namespace tilewright {

/// A range of the calling thread on the time line of a profiler that understands NVTX (Nsight
/// Systems, Nsight Compute). The profiler names its library in NVTX_INJECTION64_PATH, as for every
/// program with NVTX version 3; without one a range costs a load and a branch.
class NvtxRange {
 public:
  /// @param name of the range, with `suffix` after it; "tilewright" if empty
  explicit NvtxRange(std::string_view name, std::string_view suffix = {}) noexcept;
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange();

 private:
  int (*pop_)() = nullptr;
};

}  // namespace tilewright
