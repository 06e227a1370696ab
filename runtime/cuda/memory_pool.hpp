#pragma once

#include <future>

#include "driver.hpp"

namespace tilewright::cuda {

/// Makes the driver's memory pool of a GPU in the background, once in a process. The driver does so
/// at the first allocation in a stream's order, in 8 ms, for which the first block mask would wait.
///
/// Where it fails, the next allocation says why. The future ends with the work, and has no state
/// where the pool was asked for before; drop it before the driver.
/// @param ordinal of the GPU, whose primary context is used
std::future<void> make_memory_pool(const Driver& driver, int ordinal);

/// Whether a pool is being made, so that plain memory is to be had sooner.
bool is_memory_pool_being_made();

/// The next make_memory_pool makes it again, for tests.
void forget_memory_pools();

/// While it lives, the calling thread has no part in captures: it may allocate and free plain
/// memory while another thread captures a stream, which CU_STREAM_CAPTURE_MODE_GLOBAL else forbids.
class NoPartInCaptures {
 public:
  explicit NoPartInCaptures(const Driver& driver);
  ~NoPartInCaptures();
  NoPartInCaptures(const NoPartInCaptures&) = delete;
  NoPartInCaptures& operator=(const NoPartInCaptures&) = delete;

 private:
  const Driver& driver_;
  int mode_;  // the other one
};

}  // namespace tilewright::cuda
