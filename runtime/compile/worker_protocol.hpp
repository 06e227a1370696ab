#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../base/error.hpp"
#include "../cuda/nvrtc.hpp"
#include "compile_limits.hpp"

namespace tilewright {

// What a process that compiles (the worker) and the one that wants a kernel say to each other, over
// one stream socket. The worker first says worker_greeting(); then each request is answered by one
// response, both as frames: u64 length, then the body. All numbers are little-endian.

/// Differs where two builds of tilewright would give other bytes for a request: by the layout of
/// messages, the version, or what HostCompiler adds to a command line.
std::string worker_greeting();

/// What a worker is asked.
struct WorkerRequest {
  enum class Task : std::uint8_t {
    ping,        ///< answer, and do nothing
    find_nvrtc,  ///< look for NVRTC as this environment says; answered by `nvrtc`
    nvrtc,       ///< compile `source` for `target` with the NVRTC at `words[0]`
    host,        ///< compile `source` with the C++ compiler that `words` start
  };
  Task task = Task::ping;
  CompileLimits limits = {};
  std::vector<std::string> environment = {};  ///< NAME=VALUE, all of it
  std::string directory = {};                 ///< working directory of a host compiler
  std::vector<std::string> words = {};
  std::string compiler = {};  ///< nvrtc: the identity that it must have; host: its --version
  std::string target = {};
  std::vector<std::string> options = {};
  std::string source = {};

  bool operator==(const WorkerRequest&) const = default;
};

/// What it answers.
struct WorkerResponse {
  std::optional<Error::Details> error = {};  ///< thrown in the worker; the rest is empty then
  bool limit_reached = false;                ///< the error is a LimitReached
  bool succeeded = false;                    ///< false: the source is wrong, and the log says where
  std::vector<std::byte> binary = {};
  std::string log = {};
  double milliseconds = 0;  ///< of the compiler alone
  std::optional<cuda::NvrtcFacts> nvrtc = {};
};

/// A message as the body of a frame.
std::vector<std::byte> encode(const WorkerRequest& request);
std::vector<std::byte> encode(const WorkerResponse& response);

/// The reverse. Takes any bytes.
/// @throws Error with code internal where they are no such message
WorkerRequest decode_worker_request(std::span<const std::byte> body);
WorkerResponse decode_worker_response(std::span<const std::byte> body);

}  // namespace tilewright
