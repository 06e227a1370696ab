#pragma once

#include <string>
#include <string_view>

#include "../source_map.hpp"
#include "complaint.hpp"
#include "value.hpp"

namespace tilewright::jinja {

/// The rendered text while it grows, and its source map.
class Output {
 public:
  // @throws Complaint where the output becomes larger than kMaxOutputBytes

  /// A printed value, all of which maps to its origin; or text that is copied from a template,
  /// whose positions go on counting.
  void add(std::string_view text, const Origin& origin, bool is_copied = false);
  /// Text with its own positions. Each of its lines after the first is indented as the current line
  /// is; blank ones stay blank.
  void add_splice(const Splice& splice, const Origin& expression, Budget& budget);

  /// True at the beginning, too.
  bool ends_with_blank_line() const { return text_.empty() || text_.ends_with("\n\n"); }

  std::string take_text() { return std::move(text_); }
  SourceMap take_map() { return std::move(map_); }

 private:
  void append(std::string_view text);
  std::string indentation() const;

  std::string text_;
  SourceMap map_;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace tilewright::jinja
