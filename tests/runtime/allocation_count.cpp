#include "tests/runtime/allocation_count.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> count = 0;

[[maybe_unused]] void* counted(void* memory) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::int64_t allocation_count() {
  return count.load();
}

// AddressSanitizer has its own, which would be mixed up with these; under it the count stays 0.
#if defined(__SANITIZE_ADDRESS__)
#define TILEWRIGHT_TEST_HAS_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILEWRIGHT_TEST_HAS_ASAN
#endif
#endif

#if !defined(TILEWRIGHT_TEST_HAS_ASAN)

// The array and nothrow forms call these.
void* operator new(std::size_t size) {
  return counted(std::malloc(size ? size : 1));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(step, (size + step - 1) / step * step));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#endif
