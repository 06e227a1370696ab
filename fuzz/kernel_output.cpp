#include "fuzz/kernel_output.hpp"

#include <array>
#include <cstdio>

#include <stdio_ext.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tilewright::verify::fuzz {

KernelOutput::KernelOutput() : file_(::memfd_create("kernel output", MFD_CLOEXEC)) {
  __fpurge(stdout);  // what the parent has not written yet is the parent's
  if (file_ >= 0) ::dup2(file_, STDOUT_FILENO);
}

KernelOutput::~KernelOutput() {
  if (file_ >= 0) ::close(file_);
}

std::string KernelOutput::take() {
  std::fflush(stdout);
  std::string text;
  if (file_ < 0) return text;
  std::array<char, 4096> buffer = {};
  ::lseek(file_, 0, SEEK_SET);
  for (ssize_t got = 0; (got = ::read(file_, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (::ftruncate(file_, 0) == 0) ::lseek(file_, 0, SEEK_SET);
  return text;
}

}  // namespace tilewright::verify::fuzz
