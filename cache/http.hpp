#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../base/dynamic_library.hpp"

namespace tilewright::cache {

/// A GET, or the PUT of some bytes. Redirections are not followed.
struct HttpRequest {
  using Clock = std::chrono::steady_clock;

  std::string url;           ///< http or https
  std::string ca_file = {};  ///< PEM certificates that https trusts; empty: those of the system
  std::optional<std::span<const std::byte>> upload;  ///< what a PUT sends; none: a GET
  std::size_t max_bytes = 0;                         ///< of the answer's body
  std::chrono::milliseconds connect_timeout{0};
  Clock::time_point deadline;  ///< for all of it, the look-up of the name included
};

struct HttpAnswer {
  long status = 0;  ///< 200, 404, ...; 0 where no answer came
  std::vector<std::byte> body;
  std::string problem;     ///< not empty: no whole answer came; a clause that says why
  bool timed_out = false;  ///< that was the problem
};

/// libcurl, opened at run time: nothing links to it, and who uses no remote cache needs none.
/// Safe to use from many threads.
class Http {
 public:
  /// The machine's own, opened at the first call; never closed.
  static const Http& get();
  /// The first of these files or names that is libcurl.
  explicit Http(const std::vector<std::string>& names);

  /// Why there is none, and what to install; empty where there is one.
  const std::string& problem() const { return problem_; }

  /// Asks a server and returns at the deadline at the latest. Raises no signal.
  HttpAnswer ask(const HttpRequest& request) const;

 private:
  struct Functions {
    int (*global_init)(long flags) = nullptr;
    void* (*init)() = nullptr;
    int (*set_option)(void* handle, int option, ...) = nullptr;
    int (*perform)(void* handle) = nullptr;
    int (*get_info)(void* handle, int info, ...) = nullptr;
    void (*clean_up)(void* handle) = nullptr;
    const char* (*error_text)(int code) = nullptr;
    void* (*append)(void* list, const char* text) = nullptr;
    void (*free_list)(void* list) = nullptr;
  };

  bool bind(const DynamicLibrary& library);

  Functions curl_;
  std::string problem_;
};

}  // namespace tilewright::cache
