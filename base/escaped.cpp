#include "base/escaped.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace tilewright {
namespace {

struct Character {
  std::uint32_t value = 0;
  std::size_t bytes = 0;  // 0: no well-formed UTF-8
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t value = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kLeast[bytes] || value > 0x10ffff || is_surrogate) return {};
  return {value, bytes};
}

// C0, DEL and C1; marks, embeddings, overrides and isolates of direction; separators of lines; and
// invisible characters, but for the joiners that scripts and emoji need.
bool is_escaped(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || c == 0x200b ||
         c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c <= 0xe007f);
}

std::string all_escaped(std::string_view text, Lines lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_of(text);
    if (c.bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    const bool is_kept = lines == Lines::keep && (c.value == '\n' || c.value == '\t');
    if (is_kept || !is_escaped(c.value)) {
      result += text.substr(0, c.bytes);
    } else if (lines == Lines::escape && c.value == '\n') {
      result += "\\n";
    } else if (lines == Lines::escape && c.value == '\t') {
      result += ' ';
    } else if (c.value < 0x20) {
      result += fmt::format("\\x{:02x}", c.value);
    } else if (c.value > 0xffff) {  // two surrogates, as JSON has them
      const std::uint32_t rest = c.value - 0x10000;
      result += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    } else {
      result += fmt::format("\\u{:04x}", c.value);
    }
    text.remove_prefix(c.bytes);
  }
  return result;
}

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Two thirds from the start and one from the end, cut between characters.
std::string without_middle(std::string_view text, std::size_t most) {
  std::size_t head = most / 3 * 2, tail = text.size() - most / 3;
  while (head > 0 && continues(text[head])) --head;
  while (tail < text.size() && continues(text[tail])) ++tail;
  return fmt::format("{}... [{} bytes] ...{}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

}  // namespace

std::string escaped(std::string_view text, Lines lines, std::size_t most) {
  // Escapes are longer than what they stand for, so what they made too long is cut once more.
  std::string result =
      all_escaped(text.size() > most ? without_middle(text, most) : std::string(text), lines);
  constexpr std::size_t kOfNote = 64;
  return result.size() > most && result.size() - most > kOfNote ? without_middle(result, most)
                                                                : result;
}

}  // namespace tilewright
