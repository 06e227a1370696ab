#include "runtime/compile/spawn.hpp"

#include <cerrno>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

namespace tilewright {
namespace {

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }

  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(bool new_session) {
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    const int apart = new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(
        &attributes_, static_cast<short>(apart | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

std::vector<std::string> environment_with(const EnvironmentChanges& given) {
  std::map<std::string, std::optional<std::string>> changes(given.begin(), given.end());
  std::vector<std::string> result;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (value) result.push_back(name + '=' + *value);
  }
  return result;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

pid_t spawn(const std::vector<std::string>& arguments, const SpawnOptions& options) {
  FileActions actions;
  const int streams[] = {options.input, options.output, options.errors};
  for (int number = 0; number < 3; ++number) {
    if (streams[number] < 0) {
      posix_spawn_file_actions_addopen(actions.get(), number, "/dev/null",
                                       number == 0 ? O_RDONLY : O_WRONLY, 0);
    } else {
      posix_spawn_file_actions_adddup2(actions.get(), streams[number], number);
    }
  }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(actions.get(), 3);
#endif
  if (!options.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(actions.get(), options.directory.c_str());
  }
  const std::vector<std::string> environment = environment_with(options.environment);
  const Attributes attributes(options.new_session);
  pid_t child = -1;
  const int error = posix_spawnp(&child, arguments[0].c_str(), actions.get(), attributes.get(),
                                 pointers_to(arguments).data(), pointers_to(environment).data());
  if (error != 0) throw cannot_start(arguments[0], options.error_code, error);
  return child;
}

Error cannot_start(const std::string& program, ErrorCode code, int error) {
  std::string hint;
  if (error == ENOENT) hint = "install it, or give its full path";
  if (error == EACCES) hint = "check that the file may be executed";
  if (error == EMFILE || error == ENFILE) hint = "too many files are open; raise `ulimit -n`";
  if (error == EAGAIN || error == ENOMEM) hint = "the machine is out of processes or memory";
  return Error(code, fmt::format("cannot start \"{}\": {}", program, std::strerror(error)), hint);
}

}  // namespace tilewright
