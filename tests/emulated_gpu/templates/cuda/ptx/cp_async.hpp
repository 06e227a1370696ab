#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/cache_policy.hpp"

// In place of templates/cuda/ptx/cp_async.hpp. A copy happens when it is waited for, no sooner.

namespace tw_kernel {

TW_INLINE void copy_async_up_to_16(unsigned to, const void* from, int bytes) {
  if (to % 16 != 0 || reinterpret_cast<unsigned long long>(from) % 16 != 0) {
    emulated_core->fail("cp.async: an address is no multiple of 16");
  }
  emulated::thread().copies.push_back([=] {
    std::memset(emulated::at_shared(to), 0, 16);
    if (bytes > 0) std::memcpy(emulated::at_shared(to), from, bytes);
  });
}
TW_INLINE void copy_async_16(unsigned to, const void* from, bool present) {
  copy_async_up_to_16(to, from, present ? 16 : 0);
}

TW_INLINE void copy_async_up_to_16(unsigned to, const void* from, int bytes, CachePolicy, bool) {
  copy_async_up_to_16(to, from, bytes);
}

TW_INLINE void commit_copies() {
  emulated::Thread& thread = emulated::thread();
  thread.copy_groups.push_back(std::move(thread.copies));
  thread.copies.clear();
}

template <int kPending>
TW_INLINE void wait_for_groups() {
  auto& groups = emulated::thread().copy_groups;
  while (groups.size() > kPending) {
    for (const emulated::Action& copy : groups.front()) copy();
    groups.erase(groups.begin());
  }
}

}  // namespace tw_kernel
