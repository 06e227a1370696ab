#include "tests/compile_matrix/progress.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace tilewright::compile_matrix {

Progress::Progress(std::size_t kernels)
    : kernels_(kernels), is_terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_terminal_) fmt::print(stderr, "\r\x1b[K");
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void Progress::one_more(bool is_wrong) {
  const std::lock_guard lock(mutex_);
  ++done_;
  if (is_wrong) ++wrong_;
  if (!is_terminal_ && seconds() - last_said_ < 10) return;
  last_said_ = seconds();
  fmt::print(stderr, "{}{} of {} kernels, {} wrong, {:.0f} s{}", is_terminal_ ? "\r\x1b[K" : "",
             done_, kernels_, wrong_, last_said_, is_terminal_ ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace tilewright::compile_matrix
