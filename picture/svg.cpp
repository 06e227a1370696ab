#include "picture/svg.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace tilewright::picture {
namespace {

// Three digits after the point are more than any screen shows.
std::string number(double value) {
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string escaped(std::string_view words) {
  std::string text;
  for (const char c : words) {
    switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      default:
        // XML has no other control characters.
        text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return text;
}

const char* name_of(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

// Rectangles of one colour each, as large as they come: they keep a picture of long runs small.
class Rectangles {
 public:
  explicit Rectangles(const Cells& cells) : cells_(cells), taken_(cells.colors.size()) {}

  // Path data by colour.
  std::map<Color, std::string> paths() {
    for (std::int64_t row = 0; row < cells_.rows; ++row) {
      for (std::int64_t column = 0; column < cells_.columns; ++column) {
        if (!is_taken(row, column)) take(row, column);
      }
    }
    return std::move(paths_);
  }

 private:
  bool is_taken(std::int64_t row, std::int64_t column) const {
    return taken_[static_cast<std::size_t>(row * cells_.columns + column)];
  }

  bool is_free_run(std::int64_t row, std::int64_t begin, std::int64_t end, Color color) const {
    for (std::int64_t column = begin; column < end; ++column) {
      if (is_taken(row, column) || cells_.at(row, column) != color) return false;
    }
    return true;
  }

  void take(std::int64_t row, std::int64_t column) {
    const Color color = cells_.at(row, column);
    std::int64_t right = column + 1, below = row + 1;
    while (right < cells_.columns && is_free_run(row, right, right + 1, color)) ++right;
    while (below < cells_.rows && is_free_run(below, column, right, color)) ++below;
    for (std::int64_t r = row; r < below; ++r) {
      for (std::int64_t c = column; c < right; ++c) {
        taken_[static_cast<std::size_t>(r * cells_.columns + c)] = true;
      }
    }
    const std::int64_t x = column * cells_.tokens_across, y = row * cells_.tokens_down;
    const std::int64_t width = std::min(right * cells_.tokens_across, cells_.width) - x;
    const std::int64_t height = std::min(below * cells_.tokens_down, cells_.height) - y;
    paths_[color] += fmt::format("M{} {}h{}v{}h-{}z", x, y, width, height, width);
  }

  const Cells& cells_;
  std::vector<bool> taken_;
  std::map<Color, std::string> paths_;
};

}  // namespace

double width_of(std::string_view words, double size) {
  const auto letters = std::count_if(words.begin(), words.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // no continuation byte of UTF-8
  });
  return 0.62 * size * static_cast<double>(letters);
}

SvgCanvas::SvgCanvas(double width, double height, std::string_view title)
    : document_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
          "{0} {1}\" font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\">\n"
          "<title>{2}</title>\n",
          number(width), number(height), escaped(title))) {
  fill({.x = 0, .y = 0, .width = width, .height = height}, kPaper);
}

void SvgCanvas::fill(const Rect& rect, Color color) {
  document_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                           number(rect.x), number(rect.y), number(rect.width), number(rect.height),
                           hex(color));
}

void SvgCanvas::line(double x0, double y0, double x1, double y1, Color color, double width) {
  document_ +=
      fmt::format("<path d=\"M{} {}L{} {}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", number(x0),
                  number(y0), number(x1), number(y1), hex(color), number(width));
}

void SvgCanvas::text(double x, double y, std::string_view words, const TextStyle& style) {
  document_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n",
      number(x), number(y), number(style.size), name_of(style.anchor), hex(style.color),
      escaped(words));
}

void SvgCanvas::cells(const Cells& cells, const Rect& area) {
  const double x_scale = area.width / static_cast<double>(cells.width);
  const double y_scale = area.height / static_cast<double>(cells.height);
  document_ += fmt::format(
      "<g transform=\"translate({} {}) scale({:.9g} {:.9g})\" shape-rendering=\"crispEdges\">\n",
      number(area.x), number(area.y), x_scale, y_scale);
  for (const auto& [color, path] : Rectangles(cells).paths()) {
    document_ += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", hex(color), path);
  }
  document_ += "</g>\n";
}

std::string SvgCanvas::finish() {
  document_ += "</svg>\n";
  return std::move(document_);
}

}  // namespace tilewright::picture
