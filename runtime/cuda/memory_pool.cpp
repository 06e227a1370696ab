#include "runtime/cuda/memory_pool.hpp"

#include <atomic>
#include <system_error>

#include "base/error.hpp"
#include "runtime/cuda/context.hpp"

namespace tilewright::cuda {
namespace {

constexpr int kRelaxedCapture = 2;                           // CU_STREAM_CAPTURE_MODE_RELAXED
const Stream kStreamOfThread = reinterpret_cast<Stream>(2);  // CU_STREAM_PER_THREAD

std::atomic<int> pools_being_made = 0;

// The caller may begin to capture a stream meanwhile. So this goes into the thread's own stream, on
// which no other depends.
void allocate_once(const Driver& driver, int ordinal) {
  const DriverFunctions& f = driver.functions();
  const ContextScope scope(driver, ordinal);
  const NoPartInCaptures no_part(driver);
  DevicePointer pointer = 0;
  if (f.allocate_async(&pointer, 1, kStreamOfThread) == 0) f.free_async(pointer, kStreamOfThread);
}

}  // namespace

std::future<void> make_memory_pool(const Driver& driver, int ordinal) {
  const DriverFunctions& f = driver.functions();
  if (!f.allocate_async || !f.free_async || !f.exchange_capture_mode) return {};
  ++pools_being_made;
  try {
    return std::async(std::launch::async, [&driver, ordinal] {
      try {
        allocate_once(driver, ordinal);
      } catch (const Error&) {
      }
      --pools_being_made;
    });
  } catch (const std::system_error&) {  // no thread is to be had
    --pools_being_made;
    return {};
  }
}

bool is_memory_pool_being_made() {
  return pools_being_made > 0;
}

NoPartInCaptures::NoPartInCaptures(const Driver& driver) : driver_(driver), mode_(kRelaxedCapture) {
  const auto exchange = driver_.functions().exchange_capture_mode;
  if (exchange) exchange(&mode_);
}

NoPartInCaptures::~NoPartInCaptures() {
  const auto exchange = driver_.functions().exchange_capture_mode;
  if (exchange) exchange(&mode_);
}

}  // namespace tilewright::cuda
