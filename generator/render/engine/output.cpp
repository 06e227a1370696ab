#include "generator/render/engine/output.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::jinja {

void Output::append(std::string_view text) {
  if (text.size() > kMaxOutputBytes - text_.size()) {
    throw Complaint{fmt::format("the output is larger than {} bytes", kMaxOutputBytes)};
  }
  text_ += text;
  const std::size_t last = text.rfind('\n');
  if (last == std::string_view::npos) {
    column_ += static_cast<int>(text.size());
  } else {
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    column_ = static_cast<int>(text.size() - last);
  }
}

void Output::add(std::string_view text, const Origin& origin, bool is_copied) {
  if (text.empty()) return;
  map_.add(line_, column_, origin, is_copied);
  append(text);
}

std::string Output::indentation() const {
  const std::size_t line = text_.rfind('\n') + 1;  // npos + 1 is 0
  const std::size_t end = text_.find_first_not_of(" \t", line);
  return text_.substr(line, end == std::string::npos ? end : end - line);
}

void Output::add_splice(const Splice& splice, const Origin& expression, Budget& budget) {
  const std::string margin = indentation();
  bool at_line_start = false;
  for (const Splice::Piece& piece : splice.pieces) {
    Origin origin{splice.origin, piece.line, piece.column, true};
    std::string_view rest = piece.text;
    while (!rest.empty()) {
      budget.charge();
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (at_line_start && !line.empty()) add(margin, expression);
      const bool ends = line.size() < rest.size();
      map_.add(line_, column_, origin, piece.verbatim);
      append(rest.substr(0, line.size() + (ends ? 1 : 0)));
      rest.remove_prefix(line.size() + (ends ? 1 : 0));
      at_line_start = ends || (at_line_start && line.empty());
      if (ends && piece.verbatim) {
        ++origin.line;
        origin.column = 1;
      }
    }
  }
}

}  // namespace tilewright::jinja
