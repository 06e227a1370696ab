#include "generator/render/engine/text_directives.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "generator/render/engine/token_stream.hpp"

namespace tilewright::jinja {
namespace {

// A line's words, one after the other.
class LineReader {
 public:
  LineReader(std::string_view line, std::uint32_t offset) : line_(line), offset_(offset) {}

  bool skip(std::string_view word) {
    skip_blanks();
    if (!line_.starts_with(word)) return false;
    remove(word.size());
    return true;
  }
  std::string_view take_until(char end) {
    const std::string_view taken = line_.substr(0, line_.find(end));
    remove(taken.size());
    return taken;
  }
  bool at_end() {
    skip_blanks();
    return line_.empty() || line_.starts_with("//");
  }
  std::uint32_t offset() const { return offset_; }

 private:
  void skip_blanks() { remove(std::min(line_.find_first_not_of(" \t"), line_.size())); }
  void remove(std::size_t count) {
    line_.remove_prefix(count);
    offset_ += static_cast<std::uint32_t>(count);
  }

  std::string_view line_;
  std::uint32_t offset_;
};

// A name that leaves the folder of templates, or has a second spelling, would escape the rule that
// a header is rendered once.
bool is_plain_path(std::string_view name) {
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.find('\\') != std::string_view::npos) {
      return false;
    }
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

HeaderInclude read_name(LineReader& line) {
  const HeaderInclude include{line.take_until('"'), line.offset()};
  const std::uint32_t begin = include.name_begin - static_cast<std::uint32_t>(include.name.size());
  if (!line.skip("\"")) {
    throw PlacedComplaint{begin,
                          {"an #include's name has no closing quote on its line",
                           "its name is plain text: choose between files with {% if %}"}};
  }
  if (!is_plain_path(include.name)) {
    throw PlacedComplaint{begin,
                          {fmt::format("\"{}\" is not the path of a template", include.name),
                           "write it from the folder of templates on, as \"math/common.hpp\""}};
  }
  if (!line.at_end()) {
    throw PlacedComplaint{
        line.offset(),
        {"an #include has its line for itself", "put what follows it on the next line"}};
  }
  return {include.name, begin};
}

std::optional<HeaderInclude> read_include(std::string_view text, std::uint32_t offset) {
  LineReader line(text, offset);
  if (!line.skip("#") || !line.skip("include") || !line.skip("\"")) return std::nullopt;
  return read_name(line);
}

bool is_pragma_once(std::string_view text) {
  LineReader line(text, 0);
  return line.skip("#") && line.skip("pragma") && line.skip("once") && line.at_end();
}

// Whether the line that ends at `offset` holds a tag and no text: what follows then begins a line
// of what is rendered.
bool follows_tag(std::string_view source, std::uint32_t offset) {
  return source.substr(0, offset).ends_with("%}") || source.substr(0, offset).ends_with("#}");
}

}  // namespace

bool append_text(const TemplateText& source, std::uint32_t offset, std::string_view text,
                 Block& block) {
  bool says_once = false;
  std::size_t kept = 0;  // where text begins that has not been appended
  const auto keep_until = [&](std::size_t end) {
    if (end <= kept) return;
    block.push_back(
        {offset + static_cast<std::uint32_t>(kept), Text{text.substr(kept, end - kept)}});
  };
  const bool starts_line = offset == 0 || source.text()[offset - 1] == '\n';
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t newline = text.find('\n', begin);
    const std::size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    const std::string_view line = text.substr(begin, std::min(newline, text.size()) - begin);
    const auto at = offset + static_cast<std::uint32_t>(begin);
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string_view::npos && line[first] == '#') {
      const bool is_whole =
          (begin > 0 || starts_line) &&
          (newline != std::string_view::npos || offset + text.size() == source.text().size());
      const bool begins_line = begin > 0 || starts_line || follows_tag(source.text(), offset);
      if (const auto include = begins_line ? read_include(line, at) : std::nullopt) {
        if (!is_whole) {
          throw PlacedComplaint{at + static_cast<std::uint32_t>(first),
                                {"an #include has its line for itself",
                                 "put the tags around it on lines of their own"}};
        }
        keep_until(begin);
        block.push_back({at + static_cast<std::uint32_t>(first), *include});
        kept = next;
      } else if (is_whole && is_pragma_once(line)) {
        says_once = true;
        keep_until(begin);
        kept = next;
      }
    }
    begin = next;
  }
  keep_until(text.size());
  return says_once;
}

}  // namespace tilewright::jinja
