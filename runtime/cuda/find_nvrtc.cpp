#include "runtime/cuda/find_nvrtc.hpp"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "cache/store.hpp"
#include "runtime/compile/worker_pool.hpp"

namespace tilewright::cuda {
namespace {

namespace fs = std::filesystem;

// Changes with every way to replace a file: ctime cannot be set back.
std::string stamp(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "absent";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

std::string stamp_of_library(const NvrtcFacts& facts) {
  const fs::path builtins = fs::path(facts.path).parent_path() /
                            fmt::format("libnvrtc-builtins.so.{}.{}", facts.major, facts.minor);
  return stamp(facts.path) + ' ' + stamp(builtins);
}

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

// Everything that decides which library Nvrtc::get() takes.
std::string places() {
  const std::vector<std::string> candidates = Nvrtc::candidates();
  const std::string library_path = value_of("LD_LIBRARY_PATH");
  std::string text = fmt::format("NVRTC {}\nLD_LIBRARY_PATH {}\nld.so.cache {}\nworker {}\n",
                                 value_of("TILEWRIGHT_NVRTC"), library_path,
                                 stamp("/etc/ld.so.cache"), find_worker().program.string());
  for (const std::string& candidate : candidates) {
    text += candidate;
    if (candidate.find('/') != std::string::npos) {
      text += ' ' + stamp(candidate);
    } else {
      std::istringstream folders(library_path);
      for (std::string folder; std::getline(folders, folder, ':');) {
        text += ' ' + stamp(fs::path(folder) / candidate);
      }
    }
    text += '\n';
  }
  return text;
}

std::string to_note(const NvrtcFacts& facts) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", stamp_of_library(facts), facts.path, facts.major,
                     facts.minor, fmt::join(facts.architectures, " "), facts.identity);
}

std::optional<NvrtcFacts> from_note(const std::string& note) {
  std::istringstream lines(note);
  NvrtcFacts facts;
  std::string noted_stamp, major, minor, architectures;
  for (std::string* line :
       {&noted_stamp, &facts.path, &major, &minor, &architectures, &facts.identity}) {
    if (!std::getline(lines, *line)) return std::nullopt;
  }
  facts.major = std::atoi(major.c_str());
  facts.minor = std::atoi(minor.c_str());
  std::istringstream numbers(architectures);
  for (int sm; numbers >> sm;) facts.architectures.push_back(sm);
  if (facts.architectures.empty() || noted_stamp != stamp_of_library(facts)) return std::nullopt;
  return facts;
}

NvrtcFacts ask() {
  const std::optional<WorkerResponse> response =
      run_in_worker({.task = WorkerRequest::Task::find_nvrtc,
                     .limits = compile_limits(),
                     .environment = current_environment()},
                    "nothing yet");
  if (!response) return Nvrtc::get().facts();
  if (!response->nvrtc) throw Error(ErrorCode::internal, "a worker did not say what it found");
  return *response->nvrtc;
}

NvrtcFacts recall_or_ask() {
  const cache::Store store({.directory = cache::default_directory()});
  const std::string name = "which NVRTC\n" + places();
  if (const std::optional<std::string> note = store.note(name)) {
    if (std::optional<NvrtcFacts> facts = from_note(*note)) return *std::move(facts);
  }
  NvrtcFacts facts = ask();
  // The file that is there now must be the one that was opened.
  if (Nvrtc::identity_of(facts) == facts.identity) store.keep_note(name, to_note(facts));
  return facts;
}

}  // namespace

NvrtcFacts find_nvrtc() {
  static std::mutex mutex;
  static auto& found = *new std::optional<NvrtcFacts>;
  static auto& found_stamp = *new std::string;
  const std::lock_guard lock(mutex);
  if (found && stamp_of_library(*found) == found_stamp) return *found;
  found = recall_or_ask();
  found_stamp = stamp_of_library(*found);
  return *found;
}

}  // namespace tilewright::cuda
