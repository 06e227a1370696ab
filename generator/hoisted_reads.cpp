#include "generator/hoisted_reads.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "generator/declared_names.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

bool is_index(std::string_view name) {
  constexpr std::array<std::string_view, 5> indices = {"b", "h", "h_kv", "q_idx", "kv_idx"};
  return is_one_of(name, indices);
}

struct Match {
  std::size_t past;  // the token after the closing bracket
  std::string indices;
  bool names_q_idx;
  bool names_kv_idx;
};

// `(b, kv_idx)` or `[h]` from token i on.
std::optional<Match> match_indices(const Tokens& tokens, std::size_t i) {
  if (i >= tokens.size() || (tokens[i].text != "(" && tokens[i].text != "[")) return {};
  const std::string_view close = tokens[i].text == "(" ? ")" : "]";
  Match match{0, {}, false, false};
  for (++i; i + 1 < tokens.size(); i += 2) {
    if (!is_index(tokens[i].text)) return {};
    match.names_q_idx |= tokens[i].text == "q_idx";
    match.names_kv_idx |= tokens[i].text == "kv_idx";
    match.indices += match.indices.empty() ? "" : ", ";
    match.indices += tokens[i].text;
    match.past = i + 2;
    if (match.names_q_idx && match.names_kv_idx) return {};
    if (tokens[i + 1].text == close) return match;
    if (tokens[i + 1].text != ",") return {};
  }
  return {};
}

const HoistedRead& find_or_add(std::vector<HoistedRead>& reads, std::string_view buffer,
                               const Match& match) {
  for (const HoistedRead& read : reads) {
    if (read.buffer == buffer && read.indices == match.indices) return read;
  }
  reads.push_back({.name = fmt::format("tw_read_{}", reads.size()),
                   .buffer = std::string(buffer),
                   .indices = match.indices,
                   .names_q_idx = match.names_q_idx,
                   .names_kv_idx = match.names_kv_idx});
  return reads.back();
}

}  // namespace

HoistedReads::HoistedReads(const Snippet& snippet, const Spec& spec,
                           std::vector<HoistedRead>& reads)
    : text_(snippet.text), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
  const Tokens tokens = tokenize(text_, snippet.kind);
  if (may_declare_a_name(tokens, spec)) return;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto buffer = spec.buffers.find(std::string(tokens[i].text));
    if (!is_identifier(tokens[i]) || buffer == spec.buffers.end()) continue;
    const bool is_number = buffer->second.shape.empty();  // read as `x`
    if (buffer->second.bounds == Bounds::trusted && !is_number) continue;
    const std::optional<Match> match =
        is_number ? Match{.past = i + 1, .indices = {}, .names_q_idx = false, .names_kv_idx = false}
                  : match_indices(tokens, i + 1);
    if (!match) continue;
    const SnippetToken& last = tokens[match->past - 1];
    // A wrong number of indices is left for the compiler to complain about.
    const auto rank = static_cast<long>(buffer->second.shape.size());
    if (rank > 0 && std::count(match->indices.begin(), match->indices.end(), ',') + 1 != rank) {
      continue;
    }
    const HoistedRead& read = find_or_add(reads, tokens[i].text, *match);
    occurrences_.push_back(
        {tokens[i].offset, last.offset + last.text.size(), "tw_reads." + read.name});
  }
}

std::size_t HoistedReads::offset_of(int line, int column) const {
  return line_starts_[static_cast<std::size_t>(line - 1)] + static_cast<std::size_t>(column - 1);
}

jinja::Splice::Piece HoistedReads::piece(std::size_t begin, std::size_t end) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), begin);
  const std::size_t line = static_cast<std::size_t>(next - line_starts_.begin());
  return {.text = text_.substr(begin, end - begin),
          .line = static_cast<int>(line),
          .column = static_cast<int>(begin - line_starts_[line - 1] + 1),
          .verbatim = true};
}

void HoistedReads::append_replaced(const jinja::Splice::Piece& original,
                                   std::vector<jinja::Splice::Piece>& pieces) const {
  std::size_t begin = offset_of(original.line, original.column);
  const std::size_t end = begin + original.text.size();
  for (const Occurrence& occurrence : occurrences_) {
    if (occurrence.begin < begin || occurrence.end > end) continue;
    if (occurrence.begin > begin) pieces.push_back(piece(begin, occurrence.begin));
    pieces.push_back(piece(occurrence.begin, occurrence.end));
    pieces.back().text = occurrence.replacement;
    pieces.back().verbatim = false;
    begin = occurrence.end;
  }
  if (begin < end) pieces.push_back(piece(begin, end));
}

jinja::Splice HoistedReads::replace_in(const jinja::Splice& splice) const {
  jinja::Splice replaced{.origin = splice.origin, .pieces = {}};
  for (const jinja::Splice::Piece& original : splice.pieces) {
    if (original.verbatim) {
      append_replaced(original, replaced.pieces);
    } else {
      replaced.pieces.push_back(original);
    }
  }
  return replaced;
}

bool reads_for_heads_only(const Snippet& snippet, const Spec& spec) {
  std::vector<HoistedRead> reads;
  const HoistedReads hoisted(snippet, spec, reads);
  const Tokens tokens = tokenize(snippet.text, snippet.kind);
  const auto mentions = std::count_if(tokens.begin(), tokens.end(), [&](const SnippetToken& token) {
    return is_identifier(token) && spec.buffers.contains(std::string(token.text));
  });
  return mentions > 0 && static_cast<std::size_t>(mentions) == hoisted.count() &&
         std::none_of(reads.begin(), reads.end(), [](const HoistedRead& read) {
           return read.names_q_idx || read.names_kv_idx;
         });
}

}  // namespace tilewright
