#include "runtime/session.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <signal.h>
#include <unistd.h>

namespace tilewright {
namespace {

namespace fs = std::filesystem;

struct Stat {
  char state;
  pid_t session;
};

// "PID (NAME) STATE PPID PGRP SESSION ...", where the name may hold anything (proc(5)).
std::optional<Stat> stat_of(const fs::path& directory) {
  std::ifstream file(directory / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(end_of_name + 1));
  Stat stat = {};
  pid_t parent = 0, group = 0;
  if (!(rest >> stat.state >> parent >> group >> stat.session)) return std::nullopt;
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
