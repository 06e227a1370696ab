#pragma once

#include <string>
#include <vector>

namespace tilewright {

/// Where a piece of rendered text came from.
struct Origin {
  /// A template's name ("cpu/kernels/forward.cpp.jinja") or a snippet's ("score_mod").
  std::string file;
  int line = 0;    ///< from 1
  int column = 0;  ///< from 1, in bytes
  bool in_snippet = false;

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// Maps positions of a rendered text back to the template or snippet they came from.
class SourceMap {
 public:
  /// Says that rendered text from (line, column) on comes from `origin`, until the next call's
  /// position. Calls must come in rising order of position; a second one for the same position
  /// replaces the first, which then was empty. With `verbatim`, the text was copied letter by
  /// letter, so lines and columns go on counting; otherwise all of it maps to the origin itself
  /// (the value of an expression).
  /// @throws Error(internal) where the position is not one, or lies before the last call's
  void add(int line, int column, const Origin& origin, bool verbatim);

  /// True where nothing was rendered.
  bool empty() const { return segments_.empty(); }

  /// The origin of a rendered position, both from 1. Column 0 asks for the line as a whole: the
  /// snippet's position if any part of the line is from a snippet, else the first segment's. A
  /// position before all text maps to the first segment, one after it to the last.
  /// @throws Error(internal) if the map is empty, line < 1 or column < 0
  Origin origin_of(int line, int column = 0) const;

 private:
  // Thousands of segments share a few files, so each holds the number of its file.
  struct Segment {
    int line;
    int column;
    int origin_line;
    int origin_column;
    int file;
    bool in_snippet;
    bool verbatim;
  };

  int file_number(const std::string& file);
  Origin origin_in(const Segment& segment, int line, int column) const;

  std::vector<Segment> segments_;
  std::vector<std::string> files_;
};

}  // namespace tilewright
