#include "cli/colour.hpp"

#include <cstdlib>

#include <unistd.h>

namespace tilewright::cli {
namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kBoldRed = "\x1b[1;31m";
constexpr std::string_view kBlue = "\x1b[34m";
constexpr std::string_view kCyan = "\x1b[36m";
constexpr std::string_view kReset = "\x1b[0m";

std::string in_colour(std::string_view colour, std::string_view text) {
  return std::string(colour).append(text).append(kReset);
}

std::string first_line(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (!line.starts_with("error[") || colon == std::string_view::npos) return std::string(line);
  return in_colour(kBoldRed, line.substr(0, colon + 1)) + in_colour(kBold, line.substr(colon + 1));
}

std::string further_line(std::string_view line) {
  if (line.starts_with("  --> ")) return in_colour(kBlue, line);
  if (line.starts_with("   | ") && line.find_first_not_of(" ^", 5) == std::string_view::npos) {
    return in_colour(kBoldRed, line);
  }
  for (const std::string_view label : {"  hint:", "  note:"}) {
    if (line.starts_with(label)) {
      return in_colour(kCyan, label) + std::string(line.substr(label.size()));
    }
  }
  return std::string(line);
}

}  // namespace

bool stderr_has_colours() {
  const char* refused = std::getenv("NO_COLOR");
  if (refused && *refused != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (!terminal || std::string_view(terminal) == "dumb") return false;
  return ::isatty(STDERR_FILENO) != 0;
}

std::string in_colours(std::string_view report) {
  std::string text = first_line(report.substr(0, report.find('\n')));
  for (std::size_t at = report.find('\n'); at != std::string_view::npos;) {
    const std::size_t end = report.find('\n', at + 1);
    text += '\n' + further_line(report.substr(at + 1, end - at - 1));
    at = end;
  }
  return text;
}

}  // namespace tilewright::cli
