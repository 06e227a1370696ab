#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/diagnostics.hpp"
#include "cache/store.hpp"

namespace cache_test {

/// An empty folder of mode 0700, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Collects what a sink is told.
class Warnings {
 public:
  tilewright::DiagnosticsSink sink();
  std::vector<std::string> texts() const;
  std::size_t count() const { return texts().size(); }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

tilewright::cache::Key key_named(const std::string& name);

/// An entry whose payload says which key it belongs to, repeated to `bytes` bytes.
tilewright::cache::Entry entry_named(const std::string& name, std::size_t bytes = 100);

/// Where the entry of a key is, as docs/cache.md states it.
std::filesystem::path entry_path(const std::filesystem::path& directory,
                                 const tilewright::cache::Key& key);

/// Regular files below a folder, sorted, as paths relative to it.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// Runs `work` in a forked child and returns its process id. The child exits with what `work`
/// returns, or 99 where it throws.
pid_t start_child(const std::function<int()>& work);

/// The child's exit status, or minus the signal that ended it.
int wait_for_child(pid_t child);

/// start_child() and wait_for_child(), for faults that would stay with this process.
int run_in_child(const std::function<int()>& work);

/// In a child: gives up root's rights, which would make every permission moot.
void become_nobody();

/// Appends one byte to a file: counts across processes.
void count_in(const std::filesystem::path& file);

}  // namespace cache_test
