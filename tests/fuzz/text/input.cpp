#include "tests/fuzz/text/input.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tilewright::fuzz {

std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::span<const std::byte> as_bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "must hold: %s\n", what);
  std::abort();
}

std::filesystem::path memory_file(std::span<const std::byte> bytes) {
  static const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  const auto size = static_cast<ssize_t>(bytes.size());
  require(::fchmod(file, 0600) == 0 && ::ftruncate(file, 0) == 0 &&
              ::pwrite(file, bytes.data(), bytes.size(), 0) == size,
          "a file in memory can be written");
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace tilewright::fuzz
