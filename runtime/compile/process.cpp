#include "runtime/compile/process.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/activity.hpp"
#include "base/file_io.hpp"
#include "runtime/compile/spawn.hpp"

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

/// One stream of the child: a pipe whose both ends close on exec.
struct OutputPipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
  std::string* text;

  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }

  // Takes what is there; closes the stream at its end. Bounded, so that a program that never stops
  // writing cannot outrun its timeout.
  void drain(std::size_t limit, bool* truncated) {
    char chunk[16384];
    for (int reads = 0; reads < 64 && read_end; ++reads) {
      const ssize_t count = ::read(read_end.get(), chunk, sizeof chunk);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) {
        read_end.close();
        return;
      }
      const std::size_t kept = std::min(static_cast<std::size_t>(count), limit - text->size());
      text->append(chunk, kept);
      *truncated = *truncated || kept < static_cast<std::size_t>(count);
    }
  }
};

void record_end(int status, ProcessResult* result) {
  if (WIFEXITED(status)) result->exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
}

// True once the child is gone, also where another thread reaped it.
bool reap(pid_t child, int flags, ProcessResult* result) {
  int status = 0;
  pid_t reaped;
  do {
    reaped = waitpid(child, &status, flags);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == child) record_end(status, result);
  return reaped != 0;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

// Until the child ends: not until its streams end, as a grandchild may hold those open for ever.
void wait_for(pid_t child, const ProcessOptions& options, OutputPipe* streams,
              ProcessResult* result) {
  const Clock::time_point deadline = Clock::now() + options.timeout;
  const FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  constexpr int kPollInterval = 10;  // where the kernel has no pidfd, or refuses it
  for (;;) {
    pollfd watched[3] = {{streams[0].read_end.get(), POLLIN, 0},
                         {streams[1].read_end.get(), POLLIN, 0},
                         {handle.get(), POLLIN, 0}};
    const int left = milliseconds_until(deadline);
    poll(watched, 3, handle ? left : std::min(left, kPollInterval));
    const bool gone = reap(child, WNOHANG, result);
    for (int i = 0; i < 2; ++i) streams[i].drain(options.output_limit, &result->truncated);
    if (gone) return;
    if (milliseconds_until(deadline) == 0) {
      result->timed_out = true;
      kill(-child, SIGKILL);
      reap(child, 0, result);
      return;
    }
  }
}

}  // namespace

std::string ProcessResult::describe_end() const {
  if (timed_out) return fmt::format("killed after {:.0f} s", milliseconds / 1000);
  if (signal) return fmt::format("signal {} ({})", *signal, strsignal(*signal));
  if (exit_status) return fmt::format("exit status {}", *exit_status);
  return "exit status unknown, as this process ignores SIGCHLD or reaps all of its children";
}

ProcessResult run_process(const std::vector<std::string>& arguments,
                          const ProcessOptions& options) {
  if (arguments.empty() || arguments[0].empty()) {
    throw Error(options.error_code, "cannot start a program without a name");
  }
  const Activity activity("waits for the program", arguments[0]);
  const Clock::time_point start = Clock::now();
  ProcessResult result;
  OutputPipe streams[2] = {{.text = &result.output}, {.text = &result.errors}};
  for (OutputPipe& stream : streams) {
    if (!stream.open()) throw cannot_start(arguments[0], options.error_code, errno);
  }
  const pid_t child = spawn(arguments, {.directory = options.directory,
                                        .environment = options.environment,
                                        .output = streams[0].write_end.get(),
                                        .errors = streams[1].write_end.get(),
                                        .error_code = options.error_code});
  for (OutputPipe& stream : streams) stream.write_end.close();
  wait_for(child, options, streams, &result);
  result.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return result;
}

}  // namespace tilewright
