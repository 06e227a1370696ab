#include "base/error.hpp"

#include <utility>

#include <fmt/format.h>

namespace tilewright {
namespace {

std::string caret_line(const Place& place) {
  std::string padding;
  for (int i = 0; i + 1 < place.column && i < static_cast<int>(place.excerpt.size()); ++i) {
    padding += place.excerpt[static_cast<size_t>(i)] == '\t' ? '\t' : ' ';
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
  std::string report = fmt::format("error[{}]: {}", to_string(details.code), details.message);
  if (details.place) {
    report += fmt::format("\n  --> {}", to_string(*details.place));
    if (!details.place->excerpt.empty()) {
      report += fmt::format("\n   | {}", details.place->excerpt);
      if (details.place->column > 0) report += fmt::format("\n   | {}", caret_line(*details.place));
    }
  }
  for (const std::string& note : details.notes) report += "\n  note: " + indented(note);
  if (!details.hint.empty()) report += "\n  hint: " + indented(details.hint);
  return report;
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

std::string to_string(const Place& place) {
  std::string text = place.file;
  if (place.line > 0) text += fmt::format(":{}", place.line);
  if (place.line > 0 && place.column > 0) text += fmt::format(":{}", place.column);
  return text;
}

Error::Error(Details details) : details_(std::move(details)), report_(report_of(details_)) {}

Error::Error(ErrorCode code, std::string message, std::string hint)
    : Error(Details{.code = code, .message = std::move(message), .hint = std::move(hint)}) {}

}  // namespace tilewright
