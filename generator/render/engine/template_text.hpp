#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::jinja {

/// A position in a template, both from 1; columns are counted in bytes.
struct Position {
  int line = 0;
  int column = 0;
};

/// A template's text, and the way from offsets to lines. Line ends are normalised to '\n', as Jinja
/// does, so a checkout with "\r\n" renders the same kernel.
class TemplateText {
 public:
  TemplateText(std::string name, std::string_view text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  Position position(std::size_t offset) const;
  /// One line without its end, from 1.
  std::string_view line(int number) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> line_starts_;
};

}  // namespace tilewright::jinja
