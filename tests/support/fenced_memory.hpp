#pragma once

#include <cstddef>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.hpp"

namespace tilewright::test {

/// Memory between two pages that may not be touched. It ends where the second begins, and begins
/// where the first ends if it fills whole pages.
class FencedMemory {
 public:
  explicit FencedMemory(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = (bytes + page - 1) / page * page;
    size_ = usable + 2 * page;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw Error(ErrorCode::memory, "no memory between fences");
    char* const fence = static_cast<char*>(memory_) + page + usable;
    mprotect(memory_, page, PROT_NONE);
    mprotect(fence, page, PROT_NONE);
    data_ = fence - bytes;
  }
  ~FencedMemory() { munmap(memory_, size_); }
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  void* data() const { return data_; }

 private:
  void* memory_ = nullptr;
  std::size_t size_ = 0;
  char* data_ = nullptr;
};

}  // namespace tilewright::test
