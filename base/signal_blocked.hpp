#pragma once

#include <csignal>

namespace tilewright {

/// Keeps a signal that a call raises in its own thread (SIGPIPE, SIGXFSZ) from ending the process,
/// for a scope: the call fails with an error number instead. One that was pending before stays so.
class SignalBlocked {
 public:
  explicit SignalBlocked(int signal);
  SignalBlocked(const SignalBlocked&) = delete;
  SignalBlocked& operator=(const SignalBlocked&) = delete;
  ~SignalBlocked();

 private:
  int signal_;
  sigset_t set_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace tilewright
