#include "runtime/compile/worker_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/activity.hpp"
#include "runtime/compile/session.hpp"
#include "runtime/compile/spawn.hpp"
#include "runtime/compile/worker_service.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kMostErrorBytes = 4000;
constexpr std::uint64_t kMostBesideBinary = std::uint64_t{8} << 20;
// Starting takes milliseconds; the rest is for a machine with far more to do than it can.
constexpr auto kGreetingLimit = std::chrono::seconds(10);
// A host compiler is stopped by its worker, which then tidies up.
constexpr auto kGrace = std::chrono::seconds(5);

// For glibc's malloc: NVRTC takes and frees tens of MiB for every kernel, and getting them from the
// system again each time is 3 to 7 % of a compile. In huge pages, grown by 16 MiB, and kept.
constexpr const char* kAllocatorVariable = "GLIBC_TUNABLES";
std::string allocator_settings() {
  std::string settings =
      "glibc.malloc.hugetlb=1:glibc.malloc.trim_threshold=1073741824:glibc.malloc.top_pad=16777216";
  const char* const given = std::getenv(kAllocatorVariable);
  if (given && *given) settings += std::string(":") + given;  // the last one counts
  return settings;
}

std::vector<std::byte> framed(const std::vector<std::byte>& body) {
  std::vector<std::byte> frame(8 + body.size());
  for (std::size_t i = 0; i < 8; ++i) frame[i] = static_cast<std::byte>(body.size() >> 8 * i);
  std::copy(body.begin(), body.end(), frame.begin() + 8);
  return frame;
}

struct Ends {
  FileDescriptor ours;
  FileDescriptor theirs;
};

// Signals that another process sends, which say nothing of the source. What the system takes for
// memory is SIGKILL, and a limit of the user's on files is SIGXFSZ.
bool comes_from_outside(int signal) {
  constexpr int kSignals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXFSZ};
  return std::find(std::begin(kSignals), std::end(kSignals), signal) != std::end(kSignals);
}

std::string advice_for_signal(int signal, const CompileLimits& limits) {
  if (!comes_from_outside(signal)) return advice_for_memory(limits);
  if (signal == SIGKILL) return "the machine may be out of memory; free some";
  if (signal == SIGXFSZ) return "a file became too long; raise ulimit -f";
  return "another process ended it; try again";
}

// Numbers above those of the standard streams, which the child's own would replace.
Ends moved_up(const int (&pair)[2]) {
  const FileDescriptor first(pair[0]), second(pair[1]);
  return {FileDescriptor(::fcntl(first.get(), F_DUPFD_CLOEXEC, 3)),
          FileDescriptor(::fcntl(second.get(), F_DUPFD_CLOEXEC, 3))};
}

// Within 0.2 s. Does not reap it.
bool ends_soon(pid_t child) {
  for (int pause = 0; pause < 200; ++pause) {
    siginfo_t end = {};
    const int result = ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT | WNOHANG);
    if (result == 0 && end.si_pid == child) return true;
    if (result != 0 && errno != EINTR) return true;  // another thread has reaped it
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

WorkerProcess::WorkerProcess(const std::filesystem::path& program) : program_(program) {
  const auto fail = [&](int error) {
    throw NoWorker(cannot_start(program.string(), ErrorCode::compiler, error));
  };
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) fail(errno);
  Ends sockets = moved_up(pair);
  if (!sockets.ours || !sockets.theirs) fail(errno);
  if (::pipe2(pair, O_CLOEXEC) != 0) fail(errno);
  Ends pipes = moved_up(pair);
  if (!pipes.ours || !pipes.theirs) fail(errno);
  if (::fcntl(sockets.ours.get(), F_SETFL, O_NONBLOCK) != 0) fail(errno);
  if (::fcntl(pipes.ours.get(), F_SETFL, O_NONBLOCK) != 0) fail(errno);
  try {
    // What is preloaded into this process has no business in the compiler's.
    id_ = spawn(
        {program.string(), kWorkerVerb},
        {.environment = {{"LD_PRELOAD", std::nullopt}, {kAllocatorVariable, allocator_settings()}},
         .input = sockets.theirs.get(),
         .errors = pipes.theirs.get(),
         .new_session = true});
  } catch (const Error& error) {
    throw NoWorker(error);
  }
  socket_ = std::move(sockets.ours);
  errors_ = std::move(pipes.ours);
}

WorkerProcess::~WorkerProcess() {
  static_cast<void>(socket_.close());
  if (id_ > 0) end(true);
}

std::optional<WorkerResponse> WorkerProcess::ask(const WorkerRequest& request,
                                                 const std::string& what, bool was_idle) {
  if (was_idle && has_ended()) {
    end(false);
    return std::nullopt;
  }
  const bool is_host = request.task == WorkerRequest::Task::host;
  const Clock::time_point deadline =
      Clock::now() + request.limits.wall + (is_host ? kGrace : std::chrono::seconds(0));
  std::vector<std::byte> length, body;
  const Activity activity(fmt::format("waits for the compile worker, process {}, to compile", id_),
                          what);
  is_compiling_ = true;
  // What never greets may never read either.
  const Clock::time_point greeting_deadline =
      has_greeted_ ? deadline : std::min(deadline, Clock::now() + kGreetingLimit);
  Outcome outcome = send(framed(encode(request)), greeting_deadline);
  // What hangs up at once may have said before what it is.
  if (outcome == Outcome::done || !has_greeted_) outcome = greet(greeting_deadline);
  if (outcome == Outcome::done) outcome = receive(8, deadline, length);
  if (outcome == Outcome::ended && was_idle && length.empty()) {
    end(false);
    if (exit_status_ == 0) return std::nullopt;
  }
  if (outcome == Outcome::done) {
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < 8; ++i) size |= static_cast<std::uint64_t>(length[i]) << 8 * i;
    const std::uint64_t most = (request.limits.output << 20) + kMostBesideBinary;
    outcome = size > most ? Outcome::too_long : receive(size, deadline, body);
  }
  if (outcome == Outcome::done) {
    is_compiling_ = false;
    return decode_worker_response(body);
  }
  end(outcome != Outcome::ended);
  fail(outcome, request, what);
}

// An idle worker says nothing but its greeting, so the end of its stream is all there can be.
bool WorkerProcess::has_ended() const {
  pollfd watched = {socket_.get(), POLLIN, 0};
  return ::poll(&watched, 1, 0) > 0 && (has_greeted_ || (watched.revents & (POLLHUP | POLLERR)));
}

WorkerProcess::Outcome WorkerProcess::greet(Clock::time_point deadline) {
  if (has_greeted_) return Outcome::done;
  std::vector<std::byte> greeting;
  const std::string expected = worker_greeting();
  const Outcome outcome = receive(expected.size(), deadline, greeting);
  const std::string_view text(reinterpret_cast<const char*>(greeting.data()), greeting.size());
  has_greeted_ = text == expected;
  if (has_greeted_) return Outcome::done;
  end(true);
  const bool is_late = outcome == Outcome::late;
  throw NoWorker(
      Error(
          {.code = ErrorCode::compiler,
           .message = fmt::format("\"{}\" is no compile worker of this version of tilewright{}",
                                  program_.string(), is_late ? ": it did not greet in time" : ""),
           .place = std::nullopt,
           .notes = said_.empty() ? std::vector<std::string>{} : std::vector<std::string>{said_},
           .hint =
               is_late
                   ? fmt::format("a worker greets within {} s; name the installed executable "
                                 "`tilewright` in TILEWRIGHT_WORKER, or `off`",
                                 kGreetingLimit.count())
                   : "name the installed executable `tilewright` in TILEWRIGHT_WORKER, or `off`"}),
      is_late);
}

WorkerProcess::Outcome WorkerProcess::send(const std::vector<std::byte>& frame,
                                           Clock::time_point deadline) {
  std::size_t done = 0;
  while (done < frame.size()) {
    const ssize_t count =
        ::send(socket_.get(), frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      const Outcome outcome = wait_until(POLLOUT, deadline);
      if (outcome != Outcome::done) return outcome;
    } else if (errno != EINTR) {
      return Outcome::ended;
    }
  }
  return Outcome::done;
}

WorkerProcess::Outcome WorkerProcess::receive(std::size_t size, Clock::time_point deadline,
                                              std::vector<std::byte>& into) {
  // Grows with what comes, not with what was promised.
  std::array<std::byte, 65536> chunk;
  while (into.size() < size) {
    const std::size_t wanted = std::min(chunk.size(), size - into.size());
    const ssize_t count = ::recv(socket_.get(), chunk.data(), wanted, 0);
    if (count > 0) {
      into.insert(into.end(), chunk.begin(), chunk.begin() + count);
    } else if (count < 0 && errno == EAGAIN) {
      const Outcome outcome = wait_until(POLLIN, deadline);
      if (outcome != Outcome::done) return outcome;
    } else if (count == 0 || errno != EINTR) {
      return Outcome::ended;
    }
  }
  return Outcome::done;
}

WorkerProcess::Outcome WorkerProcess::wait_until(short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Outcome::late;
    pollfd watched[2] = {{socket_.get(), events, 0}, {errors_.get(), POLLIN, 0}};
    const int ready = ::poll(watched, 2, static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
    if (ready < 0 && errno != EINTR) return Outcome::ended;
    if (ready <= 0) continue;
    if (watched[1].revents != 0) drain_errors();
    if (watched[0].revents != 0) return Outcome::done;
  }
}

void WorkerProcess::drain_errors() {
  char chunk[4096];
  for (int reads = 0; reads < 64 && errors_; ++reads) {
    const ssize_t count = ::read(errors_.get(), chunk, sizeof chunk);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
      static_cast<void>(errors_.close());
      return;
    }
    said_.append(chunk, std::min(static_cast<std::size_t>(count), kMostErrorBytes - said_.size()));
  }
}

// Lets one that ends by itself do so, for its exit status' sake; kills it otherwise. A compiler
// that it had started ends with it in every case.
void WorkerProcess::end(bool at_once) {
  if (id_ <= 0) return;
  if (at_once || !ends_soon(id_)) ::kill(-id_, SIGKILL);
  if (is_compiling_) kill_session(id_);  // no other process gets its number until it is reaped
  int status = 0;
  pid_t reaped;
  do {
    reaped = ::waitpid(id_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == id_ && WIFEXITED(status)) exit_status_ = WEXITSTATUS(status);
  if (reaped == id_ && WIFSIGNALED(status)) signal_ = WTERMSIG(status);
  drain_errors();
  id_ = -1;
}

void WorkerProcess::fail(Outcome outcome, const WorkerRequest& request, const std::string& what) {
  const CompileLimits& limits = request.limits;
  Error::Details details{.code = ErrorCode::compiler,
                         .message = {},
                         .place = std::nullopt,
                         .notes = {fmt::format("while compiling {}", what)},
                         .hint = advice_for_time(limits)};
  if (outcome == Outcome::late) {
    details.message = fmt::format("the compiler took more than {} s", limits.wall.count());
  } else if (outcome == Outcome::too_long) {
    details.message = fmt::format("the compiler's output is larger than {} MiB", limits.output);
    details.hint = "simplify the snippet";
  } else if (signal_ == SIGXCPU) {
    details.message =
        fmt::format("the compiler used more than {} s of processor time", limits.cpu.count());
  } else {
    const std::string end = signal_ ? fmt::format("signal {} ({})", *signal_, strsignal(*signal_))
                            : exit_status_ ? fmt::format("exit status {}", *exit_status_)
                                           : "unknown";
    details.message = fmt::format("the compiler ended without an answer: {}", end);
    details.hint = signal_ ? advice_for_signal(*signal_, limits) : advice_for_memory(limits);
  }
  if (!said_.empty()) details.notes.push_back(said_);
  if (outcome == Outcome::ended && signal_ && comes_from_outside(*signal_))
    throw Error(std::move(details));
  throw LimitReached(std::move(details));
}

}  // namespace tilewright
