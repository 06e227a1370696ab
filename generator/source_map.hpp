#pragma once

#include <string>
#include <vector>

namespace tilewright {

/// Where a piece of rendered text came from.
struct Origin {
  std::string file;  ///< a template's name ("cpu/forward.cpp.jinja") or a snippet's ("score_mod")
  int line = 0;      ///< from 1
  int column = 0;    ///< from 1, in bytes
  bool in_snippet = false;

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// Maps positions of a rendered text back to the template or snippet they came from.
class SourceMap {
 public:
  /// Says that rendered text from (line, column) on comes from `origin`, until the next call's
  /// position. Calls must come in rising order of position. With `verbatim`, the text was copied
  /// letter by letter, so columns go on counting; otherwise all of it maps to the origin itself (the
  /// value of an expression).
  void add(int line, int column, Origin origin, bool verbatim);

  /// Lines after the last one that the renderer has finished; used to place text after a splice.
  bool empty() const { return segments_.empty(); }

  /// The origin of a rendered position, both from 1. Column 0 asks for the line as a whole: the
  /// snippet's position if any part of the line is from a snippet, else the first segment's. A
  /// position before all text maps to the first segment.
  /// @throws Error(internal) if the map is empty or line < 1
  Origin origin_of(int line, int column = 0) const;

 private:
  struct Segment {
    int line;
    int column;
    Origin origin;
    bool verbatim;
  };
  std::vector<Segment> segments_;
};

}  // namespace tilewright
