#include "generator/render/source_map.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace tilewright {

void SourceMap::add(int line, int column, const Origin& origin, bool verbatim) {
  const std::pair position(line, column);
  if (line < 1 || column < 1) throw Error(ErrorCode::internal, "source map: no such position");
  if (!segments_.empty()) {
    const std::pair last(segments_.back().line, segments_.back().column);
    if (position < last) throw Error(ErrorCode::internal, "source map: positions must rise");
    if (position == last) segments_.pop_back();
  }
  segments_.push_back({line, column, origin.line, origin.column, file_number(origin.file),
                       origin.in_snippet, verbatim});
}

int SourceMap::file_number(const std::string& file) {
  // The latest file is the likeliest, so the search runs backwards.
  for (size_t i = files_.size(); i > 0; --i) {
    if (files_[i - 1] == file) return static_cast<int>(i - 1);
  }
  files_.push_back(file);
  return static_cast<int>(files_.size() - 1);
}

Origin SourceMap::origin_in(const Segment& segment, int line, int column) const {
  Origin origin{files_[static_cast<size_t>(segment.file)], segment.origin_line,
                segment.origin_column, segment.in_snippet};
  const bool inside = std::pair(line, column) > std::pair(segment.line, segment.column);
  if (!segment.verbatim || !inside) return origin;
  if (line == segment.line) {
    origin.column += column - segment.column;
  } else {
    origin.line += line - segment.line;
    origin.column = column;
  }
  return origin;
}

Origin SourceMap::origin_of(int line, int column) const {
  if (segments_.empty() || line < 1 || column < 0) {
    throw Error(ErrorCode::internal, "source map: no such position");
  }
  const int first_column = std::max(column, 1);
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), std::pair(line, first_column),
                       [](const std::pair<int, int>& position, const Segment& s) {
                         return position < std::pair(s.line, s.column);
                       });
  const auto covering = after == segments_.begin() ? after : after - 1;
  if (column == 0) {
    for (auto segment = covering; segment != segments_.end() && segment->line <= line; ++segment) {
      if (!segment->in_snippet) continue;
      const bool starts_here = segment->line == line;
      return origin_in(*segment, line, starts_here ? segment->column : 1);
    }
  }
  return origin_in(*covering, line, first_column);
}

}  // namespace tilewright
