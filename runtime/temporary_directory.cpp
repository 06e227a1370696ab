#include "runtime/temporary_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright {
namespace {

std::string parent_directory() {
  const char* chosen = std::getenv("TMPDIR");
  return chosen && *chosen ? chosen : "/tmp";
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(std::string_view purpose) {
  std::string name = fmt::format("{}/tilewright-{}-XXXXXX", parent_directory(), purpose);
  if (!mkdtemp(name.data())) {
    throw Error(ErrorCode::disk,
                fmt::format("cannot make a temporary directory in {}: {}", parent_directory(),
                            std::strerror(errno)),
                "set TMPDIR to a directory that can be written to and has free space");
  }
  std::error_code ignored;  // absolute, so that a later chdir does not lose it
  path_ = std::filesystem::absolute(name, ignored);
  if (ignored) path_ = name;
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryDirectory& TemporaryDirectory::operator=(TemporaryDirectory&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::exchange(other.path_, {});
  }
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() {
  remove();
}

void TemporaryDirectory::remove() noexcept {
  std::error_code ignored;  // a leftover in /tmp is no reason to fail what was done in it
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  path_.clear();
}

}  // namespace tilewright
