#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"

// In place of templates/cuda/ptx/bulk_copy.hpp.

namespace tw_kernel {

TW_INLINE void require_whole_chunks(unsigned shared, const void* global, unsigned bytes) {
  if (shared % 16 != 0 || reinterpret_cast<unsigned long long>(global) % 16 != 0 ||
      bytes % 16 != 0) {
    emulated_core->fail("a copy of bytes begins or ends at no multiple of 16");
  }
}

TW_INLINE void load_bytes(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  require_whole_chunks(to, from, bytes);
  if (emulated::thread().block->has_unpublished_barriers) {
    emulated_core->fail("the copy engine is given a barrier that was not published");
  }
  emulated::thread().block->in_flight.push_back([=] {
    std::memcpy(emulated::at_shared(to), from, bytes);
    complete_bytes(barrier, bytes);
  });
}

// What was read is NaN afterwards: a second addition adds that. It is added at a random time after
// it was read.
TW_INLINE void add_floats(float* to, unsigned from, unsigned bytes) {
  require_whole_chunks(from, to, bytes);
  if (!emulated::is_fenced(from, bytes)) {
    emulated_core->fail("the copy engine reads what was written and not fenced");
  }
  emulated::Thread& thread = emulated::thread();
  ++thread.stores_unwritten;
  thread.stores.push_back([=, &thread] {
    std::vector<float> read(bytes / 4);
    std::memcpy(read.data(), emulated::at_shared(from), bytes);
    const std::vector<float> gone(bytes / 4, __builtin_nanf(""));
    std::memcpy(emulated::at_shared(from), gone.data(), bytes);
    --thread.stores_in_flight;
    thread.block->in_flight.push_back([=, &thread, added = std::move(read)] {
      for (std::size_t i = 0; i < added.size(); ++i) atomicAdd(to + i, added[i]);
      --thread.stores_unwritten;
    });
  });
}

TW_INLINE void wait_until_stores_written() {
  const emulated::Thread& thread = emulated::thread();
  emulated::wait_until(
      "its stores", [&] { return thread.stores_in_flight == 0 && thread.stores_unwritten == 0; });
}

}  // namespace tw_kernel
