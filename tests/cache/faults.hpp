#pragma once

#include <atomic>

/// System calls that fail on demand. The test executable defines flock(), fsync() and renameat()
/// itself, so the library needs no seam for it. An errno of 0 lets the call through.
namespace faults {

extern std::atomic<int> flock_errno;
extern std::atomic<int> fsync_errno;
extern std::atomic<int> renameat_errno;

/// Sets one for a scope.
class Fault {
 public:
  Fault(std::atomic<int>& call, int error) : call_(call) { call_ = error; }
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  ~Fault() { call_ = 0; }

 private:
  std::atomic<int>& call_;
};

}  // namespace faults
