#include "base/signal_blocked.hpp"

#include <cerrno>
#include <ctime>

#include <pthread.h>

namespace tilewright {

SignalBlocked::SignalBlocked(int signal) : signal_(signal) {
  sigemptyset(&set_);
  sigaddset(&set_, signal);
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, signal) == 1;
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

SignalBlocked::~SignalBlocked() {
  const int error = errno;  // of the call that was guarded
  const timespec no_time{};
  while (!was_pending_ && sigtimedwait(&set_, nullptr, &no_time) == signal_) continue;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace tilewright
