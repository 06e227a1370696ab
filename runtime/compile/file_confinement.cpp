#include "runtime/compile/file_confinement.hpp"

#include <cstdint>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_io.hpp"

namespace tilewright {
namespace {

// From linux/landlock.h, which headers of older systems lack.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr int kPathBeneath = 1;
constexpr std::uint64_t kReadFile = 1 << 2;
constexpr std::uint64_t kReadFolder = 1 << 3;

struct RulesetAttributes {
  std::uint64_t handled_access_fs;
};

struct [[gnu::packed]] PathBeneathAttributes {
  std::uint64_t allowed_access;
  std::int32_t parent_fd;
};

constexpr const char* kFolders[] = {"/lib",
                                    "/lib32",
                                    "/lib64",
                                    "/usr/lib",
                                    "/usr/lib64",
                                    "/usr/local/lib",
                                    "/sys/devices/system/cpu"};
constexpr const char* kFiles[] = {"/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/proc/cpuinfo",
                                  "/proc/meminfo"};

void allow(int ruleset, const char* path, std::uint64_t access) {
  const FileDescriptor parent(::open(path, O_PATH | O_CLOEXEC));
  if (!parent) return;
  const PathBeneathAttributes rule{.allowed_access = access, .parent_fd = parent.get()};
  ::syscall(kAddRule, ruleset, kPathBeneath, &rule, 0);
}

bool confine(const std::filesystem::path& library) {
  const RulesetAttributes attributes{.handled_access_fs = kReadFile | kReadFolder};
  const FileDescriptor ruleset(
      static_cast<int>(::syscall(kCreateRuleset, &attributes, sizeof attributes, 0)));
  if (!ruleset) return false;
  allow(ruleset.get(), library.parent_path().c_str(), kReadFile | kReadFolder);
  for (const char* folder : kFolders) allow(ruleset.get(), folder, kReadFile | kReadFolder);
  for (const char* file : kFiles) allow(ruleset.get(), file, kReadFile);
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(kRestrictSelf, ruleset.get(), 0) == 0;
}

}  // namespace

bool confine_reading_to_libraries(const std::filesystem::path& library) {
  static const bool confined = confine(library);
  return confined;
}

}  // namespace tilewright
