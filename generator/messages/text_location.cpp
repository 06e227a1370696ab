#include "generator/messages/text_location.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tilewright {
namespace {

constexpr std::size_t kMaxExcerptBytes = 400;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: malformed
};

CodePoint decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!is_continuation(text[i])) return {};
    value = (value << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[bytes] || value > 0x10FFFF || surrogate) return {};
  return {value, bytes};
}

// Marks and overrides of the direction of writing, line and paragraph separators, invisible spaces,
// the byte order mark, C1 controls. Joiners (200C, 200D) stay: comments in some scripts need them.
bool is_deceptive(std::uint32_t c) {
  return c == 0x061C || c == 0x200B || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF || (c >= 0x80 && c < 0xA0);
}

// Keeps the number of bytes, so that columns stay right.
std::string printable_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const CodePoint point = decode(text);
    const std::size_t bytes = std::max<std::size_t>(point.bytes, 1);
    const bool control = point.value < 0x20 ? point.value != '\t' : point.value == 0x7F;
    const bool hidden = point.bytes == 0 || control || is_deceptive(point.value);
    line += hidden ? std::string(bytes, '?') : std::string(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return line;
}

std::string excerpt_of(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.size() > kMaxExcerptBytes ? std::string() : printable_line(line);
}

}  // namespace

SourceLocation place_at(std::string_view file, std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0: the first line
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  return {.file = std::string(file),
          .line = static_cast<int>(line),
          .column = static_cast<int>(offset - line_start) + 1,
          .excerpt = excerpt_of(text.substr(line_start, text.find('\n', offset) - line_start))};
}

SourceLocation place_at_line(std::string_view file, std::string_view text, int line, int column) {
  for (int i = 1; i < line && !text.empty(); ++i) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return {.file = std::string(file),
          .line = line,
          .column = column,
          .excerpt = excerpt_of(text.substr(0, text.find('\n')))};
}

std::optional<std::size_t> first_malformed_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode(text.substr(i));
    if (point.bytes == 0) return i;
    i += point.bytes;
  }
  return std::nullopt;
}

std::optional<std::size_t> first_deceptive_character(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint point = decode(text.substr(i));
    if (is_deceptive(point.value)) return i;
    i += std::max<std::size_t>(point.bytes, 1);
  }
  return std::nullopt;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string_view shown = text.substr(0, max_bytes);
  while (shown.size() < text.size() && !shown.empty() && is_continuation(text[shown.size()])) {
    shown.remove_suffix(1);  // never cut inside a character
  }
  std::string result = printable_line(shown);
  std::replace(result.begin(), result.end(), '\t', ' ');
  return shown.size() < text.size() ? result + "..." : result;
}

}  // namespace tilewright
