#include "generator/render/engine/complaint.hpp"

#include <fmt/format.h>

namespace tilewright::jinja {

void Budget::complain() {
  throw Complaint{fmt::format("rendering takes more than {} steps", kMaxSteps),
                  "is a loop inside a loop larger than it was meant to be?"};
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result = "\"";
  for (const char c : text.substr(0, kLongest)) {
    const bool printable = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    result += printable ? c : '?';
  }
  return result + (text.size() > kLongest ? "...\"" : "\"");
}

}  // namespace tilewright::jinja
