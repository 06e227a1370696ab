#include "tests/cache/support.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cache_test {

using namespace tilewright::cache;

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tilewright-test-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

tilewright::DiagnosticsSink Warnings::sink() {
  return [this](tilewright::Severity, std::string_view text) {
    const std::lock_guard lock(mutex_);
    texts_.emplace_back(text);
  };
}

std::vector<std::string> Warnings::texts() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

Key key_named(const std::string& name) {
  return make_key(make_request({{"name", name}}), "compiler 1");
}

Entry entry_named(const std::string& name, std::size_t bytes) {
  Entry entry;
  entry.key = key_named(name);
  entry.metadata = {{"kernel", name}, {"target", "cpu"}};
  while (entry.payload.size() < bytes) {
    entry.payload.push_back(std::byte(name[entry.payload.size() % name.size()]));
  }
  return entry;
}

std::filesystem::path entry_path(const std::filesystem::path& directory, const Key& key) {
  const std::string hex = key.digest.hex();
  return directory / "v1" / hex.substr(0, 2) / (hex + ".twk");
}

std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (!item.is_directory()) files.push_back(item.path().lexically_relative(folder).native());
  }
  std::sort(files.begin(), files.end());
  return files;
}

pid_t start_child(const std::function<int()>& work) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 99;
  try {
    status = work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(status);
}

int wait_for_child(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return 98;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int run_in_child(const std::function<int()>& work) {
  return wait_for_child(start_child(work));
}

void become_nobody() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) return;
  if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) {
    throw std::runtime_error("cannot become nobody");
  }
}

void count_in(const std::filesystem::path& file) {
  const int number = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (number < 0 || ::write(number, "x", 1) != 1) throw std::runtime_error("cannot count");
  ::close(number);
}

}  // namespace cache_test
