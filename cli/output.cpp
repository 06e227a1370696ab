#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace tilewright::cli {
namespace {

constexpr std::size_t kBarWidth = 24;

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      return;
    } else if (errno != EINTR) {
      throw Error(ErrorCode::disk,
                  fmt::format("standard output cannot be written: {}", std::strerror(errno)));
    }
  }
}

// Progress is a courtesy: where it cannot be written, the work goes on.
void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string join(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                   : fmt::format("  {:>{}}", row[i], widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

void print(std::string_view text) {
  write_all(STDOUT_FILENO, text);
}

void print_json(const Json& value) {
  print(value.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

Json to_json(const Error& error) {
  Json place;
  if (const std::optional<Place>& where = error.place()) {
    place = {{"file", where->file},
             {"line", where->line},
             {"column", where->column},
             {"excerpt", where->excerpt}};
  }
  const Json details = {{"code", to_string(error.code())},
                        {"message", error.message()},
                        {"place", place},
                        {"notes", error.notes()},
                        {"hint", error.hint()}};
  return {{"error", details}};
}

std::string format_ms(double ms) {
  if (ms < 1e-3) return fmt::format("{:.0f} ns", ms * 1e6);
  if (ms < 1) return fmt::format("{:.1f} us", ms * 1e3);
  if (ms < 1e3) return fmt::format("{:.2f} ms", ms);
  return fmt::format("{:.2f} s", ms / 1e3);
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return fmt::format("{:.2f} {}", value, unit);
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) text += join(row, widths);
  return text;
}

Progress::Progress(std::size_t steps, bool json)
    : steps_(steps), terminal_(isatty(STDERR_FILENO) != 0), quiet_(json && !terminal_) {}

Progress::~Progress() {
  if (terminal_ && done_ > 0) say("\r\x1b[K");
}

void Progress::step(std::string_view name) {
  const std::size_t finished = done_++;
  if (quiet_) return;
  if (!terminal_) return say(fmt::format("[{}/{}] {}\n", done_, steps_, name));
  const std::size_t filled = kBarWidth * finished / std::max<std::size_t>(steps_, 1);
  say(fmt::format("\r\x1b[K[{:#<{}}{:.<{}}] {}/{} {}", "", filled, "", kBarWidth - filled, done_,
                  steps_, name));
}

}  // namespace tilewright::cli
