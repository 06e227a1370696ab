#include "runtime/cuda/context.hpp"

#include <map>
#include <mutex>

#include "base/activity.hpp"

namespace tilewright::cuda {
namespace {

// Retained once and kept as long as the process lives: making one takes a tenth of a second.
Context primary_context(const Driver& driver, int ordinal) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<int, Context>;
  const std::lock_guard lock(mutex);
  Context& context = contexts[ordinal];
  if (!context) {
    const Activity activity("makes a GPU's primary context");
    const DeviceHandle device = device_handle(driver, ordinal);
    driver.check(driver.functions().primary_context_retain(&context, device),
                 "making a GPU's primary context");
  }
  return context;
}

// 0 where the driver refuses.
std::uint64_t id_of(const Driver& driver, Context context) {
  if (!driver.functions().context_id) return reinterpret_cast<std::uintptr_t>(context);
  unsigned long long id = 0;
  return driver.functions().context_id(context, &id) == 0 ? id : 0;
}

}  // namespace

ContextScope::ContextScope(const Driver& driver, int ordinal) : driver_(driver) {
  driver.check(driver.functions().context_current(&context_), "asking for the current context");
  if (!context_) {
    context_ = primary_context(driver, ordinal);
    driver.check(driver.functions().context_push(context_), "making a context current");
    pushed_ = true;
  }
  id_ = id_of(driver, context_);
}

ContextScope::~ContextScope() {
  Context popped = nullptr;
  if (pushed_) driver_.functions().context_pop(&popped);
}

int ContextScope::ordinal() const {
  DeviceHandle device = 0;
  driver_.check(driver_.functions().context_device(&device), "asking for a context's GPU");
  for (int ordinal = 0; ordinal < driver_.device_count(); ++ordinal) {
    if (device_handle(driver_, ordinal) == device) return ordinal;
  }
  return 0;
}

bool ContextScope::is_primary() const {
  if (pushed_) return true;
  const int gpu = ordinal();
  unsigned flags = 0;
  int is_active = 0;  // else asking for it would make it
  driver_.check(
      driver_.functions().primary_context_state(device_handle(driver_, gpu), &flags, &is_active),
      "asking for a GPU's primary context");
  return is_active && primary_context(driver_, gpu) == context_;
}

ReleaseScope::ReleaseScope(const Driver& driver, Context context, std::uint64_t id) noexcept
    : driver_(driver) {
  if (id_of(driver, context) != id) return;
  pushed_ = driver.functions().context_push(context) == 0;
}

ReleaseScope::~ReleaseScope() {
  Context popped = nullptr;
  if (pushed_) driver_.functions().context_pop(&popped);
}

}  // namespace tilewright::cuda
