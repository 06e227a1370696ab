#include "cli/remote.hpp"

#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "cache/http.hpp"
#include "cache/remote_cache.hpp"

namespace tilewright::cli {

RemoteReport examine_remote() {
  using Clock = std::chrono::steady_clock;
  const std::shared_ptr<const cache::RemoteCache> remote = cache::RemoteCache::from_environment();
  if (!remote) {
    return {.text = "none: TILEWRIGHT_REMOTE_CACHE names none",
            .problem = {},
            .advice = {},
            .facts = nullptr};
  }
  const Clock::time_point start = Clock::now();
  const std::string problem = remote->probe();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  const double limit = std::chrono::duration<double>(remote->options().timeout).count();
  const std::string_view mode = to_string(remote->options().mode);
  const bool has_library = cache::Http::get().problem().empty();
  return {
      .text = problem.empty() ? fmt::format("{}, {}, answers in {}, limit {} s", remote->name(),
                                            mode, format_ms(ms), limit)
                              : fmt::format("{}, {}, of no use: {}", remote->name(), mode, problem),
      .problem = problem,
      .advice = has_library ? "check TILEWRIGHT_REMOTE_CACHE and the server that it names; kernels "
                              "are compiled here meanwhile"
                            : "apt-get install libcurl4, or unset TILEWRIGHT_REMOTE_CACHE",
      .facts = {{"url", remote->name()},
                {"mode", mode},
                {"timeout_s", limit},
                {"answers", problem.empty()},
                {"ms", ms},
                {"problem", problem.empty() ? Json() : Json(problem)}}};
}

}  // namespace tilewright::cli
