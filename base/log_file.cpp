#include "base/log_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/escaped.hpp"

namespace tilewright {
namespace {

constexpr std::string_view kDebug = ":debug";

// "2026-11-26T18:03:11.042Z"
std::string time_text() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     now.tv_nsec / 1000000);
}

}  // namespace

LogFile::LogFile(const char* value) {
  std::string_view where = value ? value : "";
  if (where.ends_with(kDebug)) {
    debug_ = true;
    where.remove_suffix(kDebug.size());
  }
  if (where.empty()) return;
  if (where == "stderr") {
    file_ = STDERR_FILENO;
    return;
  }
  const std::string path(where);
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
  owns_file_ = is_open();
  if (!is_open()) {
    problem_ = fmt::format("TILEWRIGHT_LOG: cannot open \"{}\": {}", escaped(path, Lines::escape),
                           std::strerror(errno));
  }
}

LogFile::~LogFile() {
  if (owns_file_) ::close(file_);
}

const LogFile& LogFile::of_process() {
  static const LogFile& log = *new LogFile(secure_getenv("TILEWRIGHT_LOG"));
  return log;
}

void LogFile::write(std::string_view level, std::string_view text) const noexcept {
  if (!is_open()) return;
  try {
    const std::string line = fmt::format("{} tilewright[{}] {} {}\n", time_text(), ::getpid(),
                                         level, escaped(text, Lines::escape));
    // The work goes on without the log.
    if (::write(file_, line.data(), line.size()) < 0) return;
  } catch (...) {
    return;
  }
}

}  // namespace tilewright
