#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/compile/worker_pool.hpp"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgramName = "tilewright";

#ifndef TILEWRIGHT_INSTALLED_PROGRAM
#define TILEWRIGHT_INSTALLED_PROGRAM ""
#endif

bool is_program(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// The file that this code was loaded from: the shared library, or the program itself.
fs::path own_file() {
  Dl_info info{};
  std::error_code error;
  if (::dladdr(reinterpret_cast<const void*>(&find_worker), &info) == 0 || !info.dli_fname) {
    return {};
  }
  return fs::canonical(info.dli_fname, error);
}

WorkerLocation found_beside(const fs::path& file, std::string_view what) {
  for (const char* way : {".", "../bin", "../../bin"}) {
    std::error_code error;
    const fs::path program = fs::canonical(file.parent_path() / way / kProgramName, error);
    if (!error && is_program(program)) {
      return {.program = program, .reason = fmt::format("next to this {}", what)};
    }
  }
  return {};
}

WorkerLocation found_in_path() {
  const char* value = std::getenv("PATH");
  std::string_view rest = value ? value : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path program = fs::path(rest.substr(0, end)) / kProgramName;
    // A relative folder is whatever the working directory is now.
    if (program.is_absolute() && is_program(program)) {
      return {.program = program, .reason = "in PATH"};
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

WorkerLocation search() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error && self.filename() == kProgramName && is_program(self)) {
    return {.program = self, .reason = "this program"};
  }
  const fs::path own = own_file();
  if (!own.empty()) {
    WorkerLocation location = found_beside(own, own == self ? "program" : "library");
    if (!location.program.empty()) return location;
  }
  if (!error && own != self) {
    WorkerLocation location = found_beside(self, "program");
    if (!location.program.empty()) return location;
  }
  if (const fs::path installed = TILEWRIGHT_INSTALLED_PROGRAM; is_program(installed)) {
    return {.program = installed, .reason = "where it was installed"};
  }
  WorkerLocation location = found_in_path();
  if (location.program.empty()) {
    location.reason =
        "the executable tilewright was found neither next to this program or library "
        "nor in PATH";
  }
  return location;
}

}  // namespace

WorkerLocation find_worker() {
  if (const char* given = std::getenv("TILEWRIGHT_WORKER"); given && *given) {
    if (std::string_view(given) == "off") return {.is_given = true, .reason = "TILEWRIGHT_WORKER"};
    std::error_code error;
    return {.program = fs::absolute(given, error), .is_given = true, .reason = "TILEWRIGHT_WORKER"};
  }
  // Looked for once: a set-user-id program's environment and PATH belong to another user.
  static const auto& location =
      *new WorkerLocation(::getuid() == ::geteuid() && ::getgid() == ::getegid()
                              ? search()
                              : WorkerLocation{.reason = "set-user-id program"});
  return location;
}

}  // namespace tilewright
