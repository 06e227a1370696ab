#include "base/temporary_files.hpp"

#include <array>
#include <cstring>

#include <unistd.h>

namespace tilewright {
namespace {

enum State { kFree, kChanging, kKnown };

struct KnownFile {
  std::atomic<int> state{kFree};
  std::atomic<pid_t> process{0};  // a child that was forked must not remove its parent's files
  int folder = -1;
  char name[256] = {};  // NAME_MAX and its end
};

std::array<KnownFile, 64> known_files;

static_assert(std::atomic<int>::is_always_lock_free, "read in signal handlers");

}  // namespace

TemporaryFile::TemporaryFile(int folder, const std::string& name) {
  if (name.size() >= sizeof(KnownFile::name)) return;
  for (std::size_t i = 0; i < known_files.size(); ++i) {
    int expected = kFree;
    KnownFile& file = known_files[i];
    if (!file.state.compare_exchange_strong(expected, kChanging)) continue;
    file.process = ::getpid();
    file.folder = folder;
    std::memcpy(file.name, name.c_str(), name.size() + 1);
    file.state = kKnown;
    slot_ = static_cast<int>(i);
    return;
  }
}

TemporaryFile::~TemporaryFile() {
  if (slot_ >= 0) known_files[static_cast<std::size_t>(slot_)].state = kFree;
}

void remove_temporary_files() noexcept {
  for (KnownFile& file : known_files) {
    if (file.state == kKnown && file.process == ::getpid()) {
      ::unlinkat(file.folder, file.name, 0);
    }
  }
}

}  // namespace tilewright
