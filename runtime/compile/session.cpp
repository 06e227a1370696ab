#include "runtime/compile/session.hpp"

#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <unistd.h>

#include "base/proc_file.hpp"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

struct Stat {
  std::string name;
  char state;
  pid_t session;
  double processor_seconds;
};

// "PID (NAME) STATE PPID PGRP SESSION ...", where the name may hold anything (proc(5)). After the
// session come seven fields, then the ticks that it ran for itself and in the kernel.
std::optional<Stat> stat_of(const fs::path& directory) {
  const std::string text = read_proc_file(directory / "stat");
  const std::size_t name = text.find('(');
  const std::size_t end_of_name = text.rfind(')');
  if (name == std::string::npos || end_of_name == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(end_of_name + 1));
  Stat stat = {.name = text.substr(name + 1, end_of_name - name - 1)};
  pid_t parent = 0, group = 0;
  if (!(rest >> stat.state >> parent >> group >> stat.session)) return std::nullopt;
  std::string skipped;
  for (int i = 0; i < 7; ++i) rest >> skipped;
  double user = 0, kernel = 0;
  rest >> user >> kernel;
  stat.processor_seconds = (user + kernel) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return stat;
}

std::optional<pid_t> process_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  pid_t process = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return process;
}

bool has_ended(const Stat& stat) {
  return stat.state == 'Z' || stat.state == 'X';
}

std::string describe_thread(const fs::path& directory) {
  const std::optional<Stat> stat = stat_of(directory);
  if (!stat || stat->state == 'R') return "running";
  const std::string place = read_proc_file(directory / "wchan");
  return place.empty() || place == "0" ? "sleeping" : place;
}

std::string describe(const fs::path& directory, const Stat& stat) {
  std::vector<std::string> threads;
  std::error_code ignored;
  for (fs::directory_iterator entry(directory / "task", ignored), end; entry != end;
       entry.increment(ignored)) {
    threads.push_back(describe_thread(entry->path()));
  }
  return fmt::format("{}, {:.2f} s of processor time: {}", stat.name, stat.processor_seconds,
                     fmt::join(threads, ", "));
}

}  // namespace

std::vector<pid_t> processes_of_session(pid_t session) {
  std::vector<pid_t> members;
  std::error_code ignored;
  for (fs::directory_iterator entry("/proc", ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::optional<pid_t> process = process_of(entry->path());
    if (!process) continue;
    const std::optional<Stat> stat = stat_of(entry->path());
    if (stat && stat->session == session && !has_ended(*stat)) members.push_back(*process);
  }
  return members;
}

std::vector<std::string> describe_session(pid_t session) {
  std::vector<std::string> descriptions;
  for (const pid_t process : processes_of_session(session)) {
    const fs::path directory = "/proc/" + std::to_string(process);
    const std::optional<Stat> stat = stat_of(directory);
    if (stat) descriptions.push_back(describe(directory, *stat));
  }
  return descriptions;
}

void kill_session(pid_t session) {
  // More than once: one may start another while the list is read.
  constexpr int kPasses = 5;
  for (int pass = 0; pass < kPasses; ++pass) {
    bool killed = false;
    for (const pid_t process : processes_of_session(session)) {
      if (process != ::getpid()) killed = ::kill(process, SIGKILL) == 0 || killed;
    }
    if (!killed) return;
  }
}

}  // namespace tilewright
