#pragma once

#include <string>

namespace tilewright::verify::fuzz {

/// What kernels of this process print: on a GPU a wait without end says what it waits for, before
/// it traps. Takes the stdout of a process that was forked and prints nothing itself.
class KernelOutput {
 public:
  /// Without memory for a file, output goes where stdout went.
  KernelOutput();
  KernelOutput(const KernelOutput&) = delete;
  KernelOutput& operator=(const KernelOutput&) = delete;
  ~KernelOutput();

  /// What was printed since the last call.
  std::string take();

 private:
  int file_;
};

}  // namespace tilewright::verify::fuzz
