#include "runtime/cuda/memory_pool.hpp"

#include <atomic>
#include <mutex>
#include <set>
#include <system_error>

#include "base/error.hpp"
#include "runtime/cuda/context.hpp"

namespace tilewright::cuda {
namespace {

constexpr int kRelaxedCapture = 2;    // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

std::atomic<int> pools_being_made = 0;

// The GPUs whose pools are made or being made.
struct Made {
  std::mutex mutex;
  std::set<int> ordinals;

  static Made& of_process() {
    static auto& made = *new Made;
    return made;
  }
};

// The caller may begin to capture a stream meanwhile, so this goes into a stream on which no other
// depends. It is kept as long as the process lives: CU_STREAM_PER_THREAD would be destroyed as this
// thread ends, and the driver was seen to wait for ever there while another thread was in
// cuCtxSynchronize (docs/decisions/0027-a-first-mask-takes-plain-memory.md).
void allocate_once(const Driver& driver, int ordinal) {
  const DriverFunctions& f = driver.functions();
  const ContextScope scope(driver, ordinal);
  const NoPartInCaptures no_part(driver);
  Stream stream = nullptr;
  if (f.stream_create(&stream, kNonBlocking, 0) != 0) return;
  DevicePointer pointer = 0;
  if (f.allocate_async(&pointer, 1, stream) == 0) f.free_async(pointer, stream);
}

}  // namespace

std::future<void> make_memory_pool(const Driver& driver, int ordinal) {
  const DriverFunctions& f = driver.functions();
  if (!f.allocate_async || !f.free_async || !f.exchange_capture_mode || !f.stream_create) return {};
  {
    Made& made = Made::of_process();
    const std::lock_guard lock(made.mutex);
    if (!made.ordinals.insert(ordinal).second) return {};
  }
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

void forget_memory_pools() {
  Made& made = Made::of_process();
  const std::lock_guard lock(made.mutex);
  made.ordinals.clear();
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
