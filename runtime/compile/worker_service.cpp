#include "runtime/compile/worker_service.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "runtime/compile/file_confinement.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "runtime/compile/session.hpp"
#include "runtime/compile/worker_protocol.hpp"

namespace tilewright {
namespace {

constexpr int kIdleMilliseconds = 30'000;
constexpr auto kTidying = std::chrono::seconds(2);
constexpr std::uint64_t kMostRequestBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMostLogBytes = std::size_t{1} << 20;

// False at the end of the stream.
bool receive_all(int socket, std::byte* to, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(socket, to, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool send_all(int socket, const void* data, std::size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::send(socket, from, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    from += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool send_frame(int socket, const std::vector<std::byte>& body) {
  unsigned char length[8];
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(body.size() >> 8 * i);
  return send_all(socket, length, sizeof length) && send_all(socket, body.data(), body.size());
}

bool receive_frame(int socket, std::vector<std::byte>& body) {
  pollfd watched = {socket, POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&watched, 1, kIdleMilliseconds);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return false;
  std::byte length[8];
  if (!receive_all(socket, length, sizeof length)) return false;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 8; ++i) size |= static_cast<std::uint64_t>(length[i]) << 8 * i;
  if (size > kMostRequestBytes) return false;
  body.resize(size);
  return receive_all(socket, body.data(), size);
}

void take_environment(const std::vector<std::string>& variables) {
  ::clearenv();
  for (const std::string& variable : variables) {
    const std::size_t equals = variable.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
}

void compile_with_nvrtc(const WorkerRequest& request, WorkerResponse& response) {
  if (request.words.empty()) throw Error(ErrorCode::internal, "no NVRTC was named");
  const cuda::Nvrtc& nvrtc = cuda::Nvrtc::at(request.words[0]);
  static int compiles = 0;
  if (nvrtc.identity() != request.compiler) {
    // A new worker opens the new file. An idle one that ends so is replaced by its owner.
    if (compiles > 0) ::_exit(0);
    throw Error(ErrorCode::compiler,
                fmt::format("\"{}\" was replaced while it was in use", nvrtc.path()), "try again");
  }
  // From here on only the compiler's own files can be read, whatever a source names.
  confine_reading_to_libraries(nvrtc.path());
  ++compiles;
  cuda::Nvrtc::Result result = nvrtc.compile(request.source, request.target, request.options);
  response.succeeded = result.succeeded;
  response.binary = std::move(result.cubin);
  response.log = std::move(result.log);
  response.milliseconds = result.milliseconds;
}

void compile_with_host_compiler(const WorkerRequest& request, WorkerResponse& response) {
  if (::chdir(request.directory.c_str()) != 0 && ::chdir("/") != 0) {
    throw Error(ErrorCode::disk, "no working directory");
  }
  HostCompiler::Result result = HostCompiler::from_words(request.words, request.compiler)
                                    .compile(request.source, request.options);
  response.succeeded = result.succeeded;
  response.binary = std::move(result.binary);
  response.log = std::move(result.log);
  response.milliseconds = result.milliseconds;
}

WorkerResponse answer(const WorkerRequest& request) {
  WorkerResponse response;
  try {
    take_environment(request.environment);
    apply_to_this_process(request.limits);
    switch (request.task) {
      case WorkerRequest::Task::ping:
        break;
      case WorkerRequest::Task::find_nvrtc:
        response.nvrtc = cuda::Nvrtc::get().facts();
        break;
      case WorkerRequest::Task::nvrtc:
        compile_with_nvrtc(request, response);
        break;
      case WorkerRequest::Task::host:
        compile_with_host_compiler(request, response);
        break;
    }
    response.log.resize(std::min(response.log.size(), kMostLogBytes));
  } catch (const Error& error) {
    const bool limit_reached = dynamic_cast<const LimitReached*>(&error) != nullptr;
    response = {.error = Error::Details{.code = error.code(),
                                        .message = error.message(),
                                        .place = std::nullopt,
                                        .notes = error.notes(),
                                        .hint = error.hint()},
                .limit_reached = limit_reached};
  } catch (const std::bad_alloc&) {
    response = {.error = Error::Details{.code = ErrorCode::memory,
                                        .message = "the compiler ran out of memory",
                                        .place = std::nullopt,
                                        .notes = {},
                                        .hint = advice_for_memory(request.limits)},
                .limit_reached = true};
  }
  return response;
}

// Where the process that asked has gone, the compile has no reader: it is killed, and this
// worker tidies up. What is compiled in this worker ends with it.
void end_with_owner(int socket) {
  pollfd watched = {socket, 0, 0};
  while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
  }
  if (::getsid(0) == ::getpid()) kill_session(::getpid());
  std::this_thread::sleep_for(kTidying);
  ::_exit(0);
}

}  // namespace

int serve_compiles() {
  // The socket gets a number that nothing prints to: compilers may write to stdout.
  const FileDescriptor socket(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (!socket || nothing < 0) return 3;
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::signal(SIGPIPE, SIG_IGN);
  const std::string greeting = worker_greeting();
  if (!send_all(socket.get(), greeting.data(), greeting.size())) return 3;
  std::thread(end_with_owner, socket.get()).detach();
  std::vector<std::byte> body;
  while (receive_frame(socket.get(), body)) {
    WorkerResponse response;
    try {
      response = answer(decode_worker_request(body));
    } catch (const Error& error) {
      response.error = Error::Details{.code = error.code(),
                                      .message = error.message(),
                                      .place = std::nullopt,
                                      .notes = {},
                                      .hint = error.hint()};
    }
    if (!send_frame(socket.get(), encode(response))) return 3;
  }
  return 0;
}

}  // namespace tilewright
