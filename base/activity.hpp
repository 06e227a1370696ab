#pragma once

#include <string_view>

namespace tilewright {

/// While it lives, says what the calling thread does or waits for, for tools that wonder why a
/// process gives no answer: "compiles", "forward_masked for sm_90a". For what may take long: one
/// costs a few hundred nanoseconds. Never throws; more than 64 at a time are not noted.
class Activity {
 public:
  explicit Activity(std::string_view does, std::string_view what = {}) noexcept;
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

 private:
  int slot_ = -1;
};

/// Writes a line for each activity of this process to a descriptor: "  thread 71 for 31.2 s:
/// compiles forward_masked for sm_90a". May be called from a signal's handler.
void write_activities(int descriptor) noexcept;

}  // namespace tilewright
