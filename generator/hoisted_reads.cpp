#include "generator/hoisted_reads.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

constexpr std::array kIndices = {"b", "h", "h_kv", "q_idx", "kv_idx"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_identifier(const SnippetToken& token) {
  return token.kind == SnippetToken::Kind::identifier;
}

// Words that may stand before a variable in an expression; any other one declares it.
bool may_precede_a_use(const SnippetToken& token) {
  constexpr std::array words = {"return", "case", "else",   "do",    "and",  "or",
                                "not",    "xor",  "bitand", "bitor", "compl"};
  return !is_identifier(token) || contains(words, token.text);
}

// The `[` of a structured binding, or of a lambda that lists what it captures: its body could not
// see what takes the place of a read.
bool binds_or_captures(const Tokens& tokens, std::size_t i) {
  if (tokens[i].text != "[") return false;
  if (i > 0) {
    const SnippetToken& before = tokens[i - 1];
    if (before.text == "auto" || before.text == "&" || before.text == "&&") return true;
    const bool is_value = is_identifier(before) && !may_precede_a_use(before);
    if (is_value || before.text == ")" || before.text == "]") return false;
  }
  if (i + 2 >= tokens.size() || tokens[i + 1].text == "]") return false;
  const bool captures_all = tokens[i + 1].text == "&" || tokens[i + 1].text == "=";
  return !captures_all || tokens[i + 2].text != "]";
}

// Errs on the side of true: `int b`, `auto& b`, `auto [b, h]`, `int x = 1, b = 2`, `[b](...)`.
bool may_be_declared(const Tokens& tokens, std::size_t i, int depth) {
  const auto text = [&](std::size_t j) { return j < tokens.size() ? tokens[j].text : ""; };
  if (text(i + 1) == "=") return true;
  if (i == 0) return false;
  if (!may_precede_a_use(tokens[i - 1])) return true;
  const std::string_view before = text(i - 1);
  if (before == "," && depth == 0) return true;
  if (before != "&" && before != "*" && before != "&&" && before != "[") return false;
  constexpr std::array types = {"auto", "int",  "float",    "double", "bool", "short",
                                "long", "char", "unsigned", "signed", "const"};
  return i >= 2 && contains(types, tokens[i - 2].text);
}

// Whether a name may mean something else, or not be seen, where a read stands.
bool declares_a_name(const Tokens& tokens, const Spec& spec) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "(" || text == "[") ++depth;
    if (text == ")" || text == "]") --depth;
    if (binds_or_captures(tokens, i)) return true;
    const bool is_ours = contains(kIndices, text) || spec.buffers.contains(std::string(text));
    if (is_ours && may_be_declared(tokens, i, depth)) return true;
  }
  return false;
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
    if (!contains(kIndices, tokens[i].text)) return {};
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
  if (declares_a_name(tokens, spec)) return;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto buffer = spec.buffers.find(std::string(tokens[i].text));
    if (!is_identifier(tokens[i]) || buffer == spec.buffers.end()) continue;
    if (buffer->second.bounds == Bounds::trusted) continue;
    const std::optional<Match> match = match_indices(tokens, i + 1);
    if (!match) continue;
    const SnippetToken& last = tokens[match->past - 1];
    // A wrong number of indices is left for the compiler to complain about.
    const auto rank = static_cast<long>(buffer->second.shape.size());
    if (std::count(match->indices.begin(), match->indices.end(), ',') + 1 != rank) continue;
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
