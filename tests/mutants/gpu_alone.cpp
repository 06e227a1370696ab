#include "tests/mutants/gpu_alone.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>

#include <fcntl.h>
#include <sys/file.h>
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

// Closing the file gives the lock back.
FileDescriptor take_lock(const std::string& name) {
  FileDescriptor file(::open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!file || ::flock(file.get(), LOCK_EX) != 0) {
    throw Error(ErrorCode::internal, "no lock of the GPU in " + name);
  }
  return file;
}

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
  const FileDescriptor lock = take_lock(lock_file);
  const Alarm alarm(seconds, say_last_words);
  work();
}

}  // namespace tilewright::mutants
