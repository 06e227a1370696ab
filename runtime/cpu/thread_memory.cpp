#include "runtime/cpu/thread_memory.hpp"

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <pthread.h>

#include "base/error.hpp"

namespace tilewright::cpu {
namespace {

constexpr std::align_val_t kBlockAlignment{64};

struct Block {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

// A thread_local with a destructor would be gone when the caller's own thread_local destructors and
// atexit handlers run, and they may call forward. These blocks have none: a key's destructor, which
// runs after all of those, frees them, and runs again if a later destructor made new ones.
constinit thread_local Block t_blocks[3];
static_assert(std::is_trivially_destructible_v<Block>);

void free_block(Block& block) {
  ::operator delete(std::exchange(block, {}).data, kBlockAlignment);
}

extern "C" void tilewright_free_thread_memory(void*) {
  for (Block& block : t_blocks) free_block(block);
}

void free_at_end_of_thread() {
  static const std::pair<pthread_key_t, int> key = [] {
    pthread_key_t made = 0;
    const int error = pthread_key_create(&made, &tilewright_free_thread_memory);
    return std::pair(made, error);
  }();
  if (key.second == 0 && pthread_setspecific(key.first, &t_blocks) == 0) return;
  throw Error(ErrorCode::memory, "the system gives no key for memory of a thread's own",
              "the process has used up PTHREAD_KEYS_MAX thread-specific keys; free some");
}

}  // namespace

void* thread_memory(ThreadMemory kind, std::int64_t bytes) {
  Block& block = t_blocks[static_cast<std::size_t>(kind)];
  if (bytes <= block.bytes) return block.data;
  free_block(block);
  free_at_end_of_thread();
  void* const data = ::operator new(static_cast<std::size_t>(bytes), kBlockAlignment, std::nothrow);
  if (!data) throw Error(ErrorCode::memory, "no memory for a thread's scratch space");
  block = {data, bytes};
  return data;
}

}  // namespace tilewright::cpu
