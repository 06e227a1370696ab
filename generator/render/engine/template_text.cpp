#include "generator/render/engine/template_text.hpp"

#include <algorithm>
#include <utility>

namespace tilewright::jinja {
namespace {

std::string with_unix_line_ends(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      result += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      result += '\n';
    }
  }
  return result;
}

}  // namespace

TemplateText::TemplateText(std::string name, std::string_view text)
    : name_(std::move(name)), text_(with_unix_line_ends(text)), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
  }
}

Position TemplateText::position(std::size_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return {static_cast<int>(next - line_starts_.begin()),
          static_cast<int>(offset - *(next - 1)) + 1};
}

std::string_view TemplateText::line(int number) const {
  const std::string_view rest =
      text().substr(line_starts_.at(static_cast<std::size_t>(number - 1)));
  return rest.substr(0, rest.find('\n'));
}

}  // namespace tilewright::jinja
