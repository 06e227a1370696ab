#include "tests/cache/faults.hpp"

#include <cerrno>

#include <sys/syscall.h>
#include <unistd.h>

namespace faults {

std::atomic<int> flock_errno{0};
std::atomic<int> fsync_errno{0};
std::atomic<int> renameat_errno{0};

namespace {

template <typename... Arguments>
int call(const std::atomic<int>& error, long number, Arguments... arguments) {
  if (error != 0) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(number, arguments...));
}

}  // namespace
}  // namespace faults

extern "C" int flock(int file, int operation) noexcept {
  return faults::call(faults::flock_errno, SYS_flock, file, operation);
}

extern "C" int fsync(int file) {
  return faults::call(faults::fsync_errno, SYS_fsync, file);
}

extern "C" int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return faults::call(faults::renameat_errno, SYS_renameat2, from_folder, from, to_folder, to, 0);
}
