#include "generator/render/snippet_comment.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "generator/snippet/print.hpp"

namespace tilewright {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Compilers join the next line to one that ends with a backslash, or with its trigraph, and drop
// white space after it.
std::string line_of_text(std::string_view text) {
  std::string line = "  " + std::string(text);
  std::replace_if(line.begin(), line.end(), is_control, ' ');
  line.erase(line.find_last_not_of(' ') + 1);
  if (line.ends_with('\\') || line.ends_with("?\?/")) line += " .";
  return line;
}

void append_text(std::string_view text, std::vector<std::string>& lines) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(line_of_text(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// "50 * cap / window"
std::string factor_text(const snippet::Factor& factor) {
  std::string text = fmt::format("{}", factor.literal);
  for (const auto& [name, divides] : factor.scalars) text += (divides ? " / " : " * ") + name;
  return text;
}

void append_reduction(const SpecFacts& facts, std::vector<std::string>& lines) {
  const snippet::ScoreReduction& reduction = facts.reduction;
  if (facts.has_slope()) {
    lines.push_back(
        fmt::format("score_slope: the kernel adds {} times the slope, which follows.",
                    reduction.slope_sign > 0 ? "(kv_idx - q_idx)" : "(q_idx - kv_idx)"));
  }
  if (reduction.has_factors()) {
    lines.push_back(
        fmt::format("score_factors: the kernel multiplies scores by {} and what follows by {}.",
                    factor_text(reduction.of_score), factor_text(reduction.of_result)));
  }
  if (facts.fixed_max()) {
    lines.emplace_back("fixed_maximum: the softmax subtracts one bound from all scores.");
  }
}

}  // namespace

std::vector<std::string> snippet_comment(const SpecFacts& facts, SnippetKind kind, ScoreForm form) {
  const bool is_score_mod = kind == SnippetKind::score_mod;
  const std::optional<AnalysedSnippet>& analysed = facts.of(kind);
  if (!analysed) return {};
  std::vector<std::string> lines = {fmt::format("{} of the spec:", to_string(kind))};
  append_text(analysed->snippet.text, lines);
  if (is_score_mod && form >= ScoreForm::reduced) append_reduction(facts, lines);
  if (is_score_mod && form == ScoreForm::without_difference && facts.difference) {
    lines.push_back(
        fmt::format("values_by_difference: a warp finds tw_by_difference once for each difference "
                    "of a tile: {}",
                    snippet::to_text(facts.difference->found.value)));
  }
  return lines;
}

}  // namespace tilewright
