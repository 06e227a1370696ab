#include "base/temporary_files.hpp"

#include <array>
#include <cstring>

#include <unistd.h>

namespace tilewright {
namespace {

enum State { kFree, kChanging, kKnown };

struct Slot {
  std::atomic<int> state{kFree};
  std::atomic<pid_t> process{0};  // a child that was forked must not remove its parent's files
  int folder = -1;
  char name[256] = {};  // NAME_MAX and its end
};

std::array<Slot, 64> slots;

static_assert(std::atomic<int>::is_always_lock_free, "read in signal handlers");

}  // namespace

TemporaryFile::TemporaryFile(int folder, const std::string& name) {
  if (name.size() >= sizeof(Slot::name)) return;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    int expected = kFree;
    Slot& slot = slots[i];
    if (!slot.state.compare_exchange_strong(expected, kChanging)) continue;
    slot.process = ::getpid();
    slot.folder = folder;
    std::memcpy(slot.name, name.c_str(), name.size() + 1);
    slot.state = kKnown;
    slot_ = static_cast<int>(i);
    return;
  }
}

TemporaryFile::~TemporaryFile() {
  if (slot_ >= 0) slots[static_cast<std::size_t>(slot_)].state = kFree;
}

void remove_temporary_files() noexcept {
  for (Slot& slot : slots) {
    if (slot.state == kKnown && slot.process == ::getpid()) {
      ::unlinkat(slot.folder, slot.name, 0);
    }
  }
}

}  // namespace tilewright
