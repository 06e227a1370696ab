#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "base/escaped.hpp"
#include "cli/command_line_words.hpp"

namespace tilewright::cli {
namespace {

constexpr std::size_t kMostMessage = 4000;

int report_descriptor = STDOUT_FILENO;

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

struct Column {
  std::size_t width = 0;
  bool numbers = true;  // flush right, so that digits stand below digits
};

std::vector<Column> columns_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns(rows.front().size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = rows[row][i];
      columns[i].width = std::max(columns[i].width, cell.size());
      const bool is_number = !cell.empty() && cell[0] >= '0' && cell[0] <= '9';
      if (row > 0 && !is_number) columns[i].numbers = false;
    }
  }
  columns[0].numbers = false;
  return columns;
}

std::string join(const std::vector<std::string>& row, const std::vector<Column>& columns) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) line += "  ";
    line += columns[i].numbers ? fmt::format("{:>{}}", row[i], columns[i].width)
                               : fmt::format("{:<{}}", row[i], columns[i].width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

void print(std::string_view text) {
  print_verbatim(escaped(text, Lines::keep));
}

void print_verbatim(std::string_view text) {
  write_all(report_descriptor, text);
}

void print_json(const Json& value) {
  // dump() escapes what is below U+0020; what escaped() does to the rest is JSON too.
  print(value.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
}

void report_to_stderr() {
  report_descriptor = STDERR_FILENO;
}

DiagnosticsSink diagnostics_to_stderr() {
  return [](Severity severity, std::string_view message) {
    say(fmt::format(
        "{}: {}\n", severity == Severity::warning ? "warning" : "note",
        escaped(in_command_line_words(std::string(message)), Lines::keep, kMostMessage)));
  };
}

Json to_json(const Error& error) {
  Json place;
  if (const std::optional<SourceLocation>& where = error.place()) {
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
  if (ms < 0) return "-" + format_ms(-ms);
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
  const std::vector<Column> columns = columns_of(rows_);
  std::string text;
  for (const auto& row : rows_) text += join(row, columns);
  return text;
}

}  // namespace tilewright::cli
