#include "tests/mutants/gpu_alone.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"

namespace tilewright::mutants {
namespace {

// What the handler prints: a handler may not take memory.
std::array<char, 1024> words;
std::size_t words_size = 0;

void say_last_words(int) {
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, words.data(), words_size);
  ::_exit(0);
}

// Waits until a process has ended wholly, its GPU context included. Its locks are gone earlier.
void wait_for_end_of(pid_t process) {
  const FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!handle) return;  // it has ended, and was reaped
  constexpr int kMostMilliseconds = 60'000;
  pollfd ended = {handle.get(), POLLIN, 0};
  ::poll(&ended, 1, kMostMilliseconds);
}

// While it lives, no other process has it. The file holds the number of the process that has the
// lock, and goes on to hold it where that one ended in the middle of its work: then the GPU may
// still be busy, and the next process waits for its end.
class Lock {
 public:
  explicit Lock(const std::string& name)
      : file_(::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)) {
    if (!file_ || ::flock(file_.get(), LOCK_EX) != 0) {
      throw Error(ErrorCode::internal, "no lock of the GPU in " + name);
    }
    pid_t before = 0;
    if (::pread(file_.get(), &before, sizeof before, 0) == sizeof before && before != 0) {
      wait_for_end_of(before);
    }
    write(::getpid());
  }
  ~Lock() { write(0); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  void write(pid_t process) const {
    [[maybe_unused]] const ssize_t size = ::pwrite(file_.get(), &process, sizeof process, 0);
  }

  FileDescriptor file_;  // closing it gives the lock back
};

// While it lives, SIGALRM after some seconds.
class Alarm {
 public:
  Alarm(unsigned seconds, void (*handler)(int)) : before_(std::signal(SIGALRM, handler)) {
    ::alarm(seconds);
  }
  ~Alarm() {
    ::alarm(0);
    std::signal(SIGALRM, before_);
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace

void run_with_gpu_alone(const std::string& lock_file, unsigned seconds,
                        const std::string& last_words, const std::function<void()>& work) {
  words_size = std::min(last_words.size(), words.size());
  std::copy_n(last_words.begin(), words_size, words.begin());
  const Lock lock(lock_file);
  const Alarm alarm(seconds, say_last_words);
  work();
}

}  // namespace tilewright::mutants
