#pragma once

#include <cstdint>

namespace tilewright::cpu {

/// What a thread needs memory for while it works on an item of a call.
enum class ThreadMemory { tile_scratch, mask_runs, gradient_sums };

/// At least `bytes` bytes of the calling thread's own memory, aligned to 64 bytes. The thread keeps
/// it for its next call and frees it when it ends, so the contents last until the thread asks for
/// more of the same kind. May be called at any time: in destructors of thread_local objects, from
/// atexit handlers, while static objects are destroyed, and in a forked child.
/// @throws Error with code memory
void* thread_memory(ThreadMemory kind, std::int64_t bytes);

}  // namespace tilewright::cpu
