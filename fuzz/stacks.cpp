#include "fuzz/stacks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/activity.hpp"
#include "base/error.hpp"
#include "base/proc_file.hpp"
#include "runtime/compile/process.hpp"
#include "runtime/compile/session.hpp"

namespace tilewright::verify::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFrames = 48;
constexpr auto kPatience = std::chrono::seconds(2);
constexpr std::string_view kEnd = "  end of answer\n";

std::atomic<int> stack_file = -1;

// Everything here may be called while the thread holds any lock: memory of the heap is not touched,
// and backtrace() was called before, so that its library is there.
void answer(int, siginfo_t* signal, void*) {
  const int error = errno;
  const int file = stack_file;
  if (signal->si_code == SI_TKILL) {
    std::array<void*, kMostFrames> frames = {};
    const int count = ::backtrace(frames.data(), kMostFrames);
    // The first two are this function and the kernel's return from a signal.
    if (count > 2) ::backtrace_symbols_fd(frames.data() + 2, count - 2, file);
  } else {  // to the process: any thread can say what all do
    write_activities(file);
  }
  const ssize_t ignored = ::write(file, kEnd.data(), kEnd.size());
  static_cast<void>(ignored);
  errno = error;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::vector<int> threads_of(pid_t process) {
  std::vector<int> threads;
  std::error_code ignored;
  for (fs::directory_iterator entry(fmt::format("/proc/{}/task", process), ignored), end;
       entry != end; entry.increment(ignored)) {
    threads.push_back(std::atoi(entry->path().filename().c_str()));
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

std::string read_from(int file, off_t begin) {
  std::string text;
  std::array<char, 4096> chunk = {};
  for (;;) {
    const ssize_t count = ::pread(file, chunk.data(), chunk.size(), begin);
    if (count <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    begin += count;
  }
}

// What is written from `begin` on until the end of an answer; nothing where none comes in time.
std::optional<std::string> wait_for_answer(int file, off_t begin) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const std::string text = read_from(file, begin);
    if (text.ends_with(kEnd)) return text.substr(0, text.size() - kEnd.size());
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// The mask of blocked signals in /proc/PID/task/TID/status: hexadecimal, signal 1 in the lowest
// bit.
bool blocks_the_signal(pid_t process, int thread) {
  const std::string status =
      read_proc_file(fmt::format("/proc/{}/task/{}/status", process, thread));
  constexpr std::string_view kField = "SigBlk:";
  const std::size_t field = status.find(kField);
  if (field == std::string::npos) return false;
  const auto mask = std::strtoull(status.c_str() + field + kField.size(), nullptr, 16);
  return (mask >> (SIGURG - 1) & 1) != 0;
}

std::string ask_thread(pid_t process, int thread, int file) {
  if (blocks_the_signal(process, thread)) return "  it blocks the signal\n";
  const off_t begin = ::lseek(file, 0, SEEK_END);
  if (::syscall(SYS_tgkill, process, thread, SIGURG) != 0) return "  it has ended\n";
  return wait_for_answer(file, begin).value_or("  no answer: it sleeps where no signal wakes it\n");
}

// "/usr/bin/tilewright(+0x1234) [0x55...]" as backtrace_symbols_fd writes it.
struct Frame {
  std::string module;
  std::string offset;
};

Frame frame_of(const std::string& line) {
  const std::size_t open = line.find("(+0x"), close = line.find(')', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return {line.substr(0, open), line.substr(open + 2, close - open - 2)};
}

// What addr2line makes of frames that have no name: "function at file:line". The address is the one
// that a call returns to, so the line may be the next one.
std::map<std::string, std::string> names_of(const std::string& module,
                                            const std::set<std::string>& offsets) {
  std::vector<std::string> words = {"addr2line", "-Cfpe", module};
  words.insert(words.end(), offsets.begin(), offsets.end());
  std::map<std::string, std::string> names;
  try {
    const ProcessResult result = run_process(words, {.timeout = std::chrono::seconds(10)});
    std::istringstream lines(result.output);
    std::string line;
    for (auto offset = offsets.begin(); offset != offsets.end() && std::getline(lines, line);
         ++offset) {
      if (!line.starts_with("??")) names[*offset] = line;
    }
  } catch (const Error&) {
    // Without addr2line the offsets remain.
  }
  return names;
}

std::string with_names(const std::string& text) {
  std::map<std::string, std::set<std::string>> unnamed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Frame frame = frame_of(line);
    if (!frame.module.empty()) unnamed[frame.module].insert(frame.offset);
  }
  std::map<std::string, std::map<std::string, std::string>> names;
  for (const auto& [module, offsets] : unnamed) names[module] = names_of(module, offsets);
  std::string result;
  lines.clear();
  lines.seekg(0);
  for (std::string line; std::getline(lines, line);) {
    const Frame frame = frame_of(line);
    const auto& of_module = names[frame.module];
    const auto name = of_module.find(frame.offset);
    if (line.starts_with("  ") || line.starts_with("thread ")) {
      result += line;
    } else {
      result += "    " + (name == of_module.end() ? line : name->second);
    }
    result += '\n';
  }
  return result;
}

// The call's number, "running", or nothing where the kernel does not say.
std::string system_call(const fs::path& task) {
  const std::string text = first_line(read_proc_file(task / "syscall"));
  const std::string number = text.substr(0, text.find(' '));
  return number.empty() || number == "running" || number == "-1" ? std::string()
                                                                 : " in system call " + number;
}

std::string describe_task(const fs::path& task) {
  const std::string stat = read_proc_file(task / "stat");
  const std::size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= stat.size()) return {};
  const std::string place = read_proc_file(task / "wchan");
  std::string stack = read_proc_file(task / "stack");
  std::replace(stack.begin(), stack.end(), '\n', ' ');
  std::istringstream rest(stat.substr(end_of_name + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) rest >> skipped;  // state to cmajflt
  double user = 0, kernel = 0;
  rest >> user >> kernel;
  const double seconds = (user + kernel) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return fmt::format("    thread {} \"{}\": {:.2f} s of processor time, state {}{}{}{}\n",
                     task.filename().string(), first_line(read_proc_file(task / "comm")), seconds,
                     stat[end_of_name + 2],
                     place.empty() || place == "0" ? "" : ", sleeps in " + place, system_call(task),
                     stack.empty() ? "" : ", kernel stack " + stack);
}

}  // namespace

int make_stack_file() {
  const int file = ::memfd_create("stacks", MFD_CLOEXEC);
  if (file >= 0) ::fcntl(file, F_SETFL, O_APPEND);
  return file;
}

void answer_with_stacks(int file) {
  if (file < 0) return;
  std::array<void*, 2> frames = {};
  ::backtrace(frames.data(), static_cast<int>(frames.size()));  // loads what the handler needs
  stack_file = file;
  struct sigaction action = {};
  action.sa_sigaction = answer;
  action.sa_flags = SA_RESTART | SA_ONSTACK | SA_SIGINFO;
  ::sigaction(SIGURG, &action, nullptr);
}

std::string ask_for_stacks(pid_t process, int file) {
  if (file < 0) return {};
  std::string text;
  const off_t begin = ::lseek(file, 0, SEEK_END);
  if (::kill(process, SIGURG) == 0) text = wait_for_answer(file, begin).value_or("");
  for (const int thread : threads_of(process)) {
    const fs::path task = fmt::format("/proc/{}/task/{}", process, thread);
    text += fmt::format("thread {} \"{}\":\n", thread, first_line(read_proc_file(task / "comm")));
    text += ask_thread(process, thread, file);
  }
  return with_names(text);
}

// Compile workers lead their own sessions, so parents count, not sessions.
std::vector<pid_t> with_descendants(pid_t process) {
  std::multimap<pid_t, pid_t> children;
  std::error_code ignored;
  for (fs::directory_iterator entry("/proc", ignored), end; entry != end;
       entry.increment(ignored)) {
    const int child = std::atoi(entry->path().filename().c_str());
    const std::string stat = child > 0 ? read_proc_file(entry->path() / "stat") : std::string();
    const std::size_t end_of_name = stat.rfind(')');
    if (end_of_name == std::string::npos || end_of_name + 4 >= stat.size()) continue;
    children.emplace(std::atoi(stat.c_str() + end_of_name + 4), child);
  }
  std::vector<pid_t> all = {process};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto [first, last] = children.equal_range(all[i]);
    for (auto child = first; child != last; ++child) all.push_back(child->second);
  }
  return all;
}

std::string describe_processes(pid_t session) {
  std::string text;
  std::vector<pid_t> processes = with_descendants(session);
  for (const pid_t process : processes_of_session(session)) {  // orphans stay in their session
    if (std::find(processes.begin(), processes.end(), process) == processes.end()) {
      processes.push_back(process);
    }
  }
  for (const pid_t process : processes) {
    const fs::path directory = fmt::format("/proc/{}", process);
    std::string command = read_proc_file(directory / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    constexpr std::size_t kMostCommand = 300;
    text += fmt::format("  process {}: {}\n", process, command.substr(0, kMostCommand));
    for (const int thread : threads_of(process)) {
      text += describe_task(directory / "task" / std::to_string(thread));
    }
  }
  return text;
}

}  // namespace tilewright::verify::fuzz
