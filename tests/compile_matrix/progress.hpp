#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

namespace tilewright::compile_matrix {

/// How far the kernels are, on stderr: one line that is written over on a terminal, a line every
/// ten seconds elsewhere. May be told from many threads.
class Progress {
 public:
  explicit Progress(std::size_t kernels);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void one_more(bool is_wrong);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  Clock::time_point start_ = Clock::now();
  double last_said_ = 0;
  std::size_t kernels_;
  std::size_t done_ = 0;
  std::size_t wrong_ = 0;
  bool is_terminal_;
};

}  // namespace tilewright::compile_matrix
