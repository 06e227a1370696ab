#include "base/error.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/escaped.hpp"

namespace tilewright {
namespace {

// One line, whose tabs the caret's line repeats.
std::string escaped_tabs_kept(std::string_view text) {
  std::string result;
  for (;;) {
    const std::size_t tab = text.find('\t');
    result += escaped(text.substr(0, tab), Lines::escape);
    if (tab == std::string_view::npos) return result;
    result += '\t';
    text.remove_prefix(tab + 1);
  }
}

constexpr std::size_t kMostMessage = 2000;
constexpr std::size_t kMostNote = 64 << 10;  // a compiler's log
constexpr std::size_t kMostName = 1000;
constexpr std::size_t kExcerptBefore = 160, kExcerptAfter = 80;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// What stands in the excerpt before the place's column, and from it on; long lines are cut.
struct Excerpt {
  std::string before, after;
};

Excerpt excerpt_of(const SourceLocation& place) {
  std::string_view text = place.excerpt;
  const auto column = static_cast<std::size_t>(std::max(place.column - 1, 0));
  std::string_view before = text.substr(0, std::min(column, text.size()));
  std::string_view after = text.substr(before.size());
  Excerpt excerpt;
  if (before.size() > kExcerptBefore) {
    before.remove_prefix(before.size() - kExcerptBefore);
    while (!before.empty() && continues_character(before[0])) before.remove_prefix(1);
    excerpt.before = "...";
  }
  excerpt.before += escaped_tabs_kept(before);
  const std::size_t most = kExcerptAfter + kExcerptBefore - before.size();
  const bool is_cut = after.size() > most;
  if (is_cut) {
    std::size_t end = most;
    while (end > 0 && continues_character(after[end])) --end;
    after = after.substr(0, end);
  }
  excerpt.after = escaped_tabs_kept(after) + (is_cut ? "..." : "");
  return excerpt;
}

std::string caret_line(const std::string& before) {
  std::string padding;
  for (const char c : before) {
    if (!continues_character(c)) padding += c == '\t' ? '\t' : ' ';
  }
  return padding + '^';
}

// Continuation lines of a note stand below its first one.
std::string indented(std::string_view text) {
  std::string result;
  for (char c : text) {
    result += c;
    if (c == '\n') result += "        ";
  }
  return result;
}

std::string report_of(const Error::Details& details) {
  std::string report =
      fmt::format("error[{}]: {}", to_string(details.code), indented(details.message));
  if (details.place) {
    report += fmt::format("\n  --> {}", to_string(*details.place));
    if (!details.place->excerpt.empty()) {
      const Excerpt excerpt = excerpt_of(*details.place);
      report += fmt::format("\n   | {}{}", excerpt.before, excerpt.after);
      if (details.place->column > 0) report += fmt::format("\n   | {}", caret_line(excerpt.before));
    }
  }
  if (!details.hint.empty()) report += "\n  hint: " + indented(details.hint);
  for (const std::string& note : details.notes) report += "\n  note: " + indented(note);
  return report;
}

// Everything that an error says may come from outside: names, values, a worker's or a server's
// text.
Error::Details printable_details(Error::Details details) {
  details.message = escaped(details.message, Lines::keep, kMostMessage);
  details.hint = escaped(details.hint, Lines::keep, kMostMessage);
  for (std::string& note : details.notes) note = escaped(note, Lines::keep, kMostNote);
  if (details.place) {
    details.place->file = escaped(details.place->file, Lines::escape, kMostName);
  }
  return details;
}

}  // namespace

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::spec:
      return "spec";
    case ErrorCode::snippet:
      return "snippet";
    case ErrorCode::kernel_template:
      return "kernel_template";
    case ErrorCode::tensor:
      return "tensor";
    case ErrorCode::block_mask:
      return "block_mask";
    case ErrorCode::file:
      return "file";
    case ErrorCode::device:
      return "device";
    case ErrorCode::compiler:
      return "compiler";
    case ErrorCode::missing_kernel:
      return "missing_kernel";
    case ErrorCode::memory:
      return "memory";
    case ErrorCode::disk:
      return "disk";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

std::string to_string(const SourceLocation& place) {
  std::string text = place.file;
  if (place.line > 0) text += fmt::format(":{}", place.line);
  if (place.line > 0 && place.column > 0) text += fmt::format(":{}", place.column);
  return text;
}

Error::Error(Details details)
    : details_(printable_details(std::move(details))), report_(report_of(details_)) {}

Error::Error(ErrorCode code, std::string message, std::string hint)
    : Error(Details{.code = code, .message = std::move(message), .hint = std::move(hint)}) {}

}  // namespace tilewright
