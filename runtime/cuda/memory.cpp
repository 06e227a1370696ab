#include "runtime/cuda/memory.hpp"

#include <algorithm>

#include "runtime/cuda/memory_pool.hpp"

namespace tilewright::cuda {
namespace {

constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED: the GPU has no memory pools

}  // namespace

StreamMemory::StreamMemory(const Driver& driver, const ContextScope& scope, std::size_t bytes,
                           Stream stream, Release release)
    : driver_(driver),
      context_(scope.context()),
      context_id_(scope.id()),
      stream_(stream),
      release_(release) {
  const DriverFunctions& f = driver.functions();
  bytes = std::max<std::size_t>(bytes, 1);  // the driver refuses 0
  if (f.allocate_async && f.free_async && !is_memory_pool_being_made()) {
    const int result = f.allocate_async(&pointer_, bytes, stream);
    is_ordered_ = result == 0;
    if (is_ordered_) return;
    if (result != kNotSupported) driver.check(result, "allocating GPU memory");
  }
  const NoPartInCaptures no_part(driver);
  driver.check(f.allocate(&pointer_, bytes), "allocating GPU memory");
}

StreamMemory::~StreamMemory() {
  const DriverFunctions& f = driver_.functions();
  if (release_ == Release::in_order) {
    if (is_ordered_) {
      f.free_async(pointer_, stream_);
    } else {
      const NoPartInCaptures no_part(driver_);
      f.free(pointer_);
    }
    return;
  }
  const ReleaseScope scope(driver_, context_, context_id_);
  if (!scope) return;
  // The driver frees memory of a pool at once, whatever still reads it.
  f.context_synchronize();
  f.free(pointer_);
}

}  // namespace tilewright::cuda
