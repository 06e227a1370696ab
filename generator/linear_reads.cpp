#include "generator/linear_reads.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "generator/declared_names.hpp"
#include "generator/hoisted_reads.hpp"
#include "generator/snippet.hpp"
#include "generator/snippet_number.hpp"
#include "generator/snippet_words.hpp"

namespace tilewright {
namespace {

using Tokens = std::vector<SnippetToken>;

// Which of the two are part of a sum.
struct Parts {
  bool q_idx = false;
  bool kv_idx = false;
  bool clamped = false;  // one of them inside a clamp

  bool any() const { return q_idx || kv_idx; }
  // A clamp beside another part is greatest and least anywhere: clamp(d, 0, 64) + clamp(-d, 0, 64).
  bool may_join(const Parts& other) const {
    return !(any() && other.any() && (clamped || other.clamped));
  }
  void add(const Parts& other) {
    q_idx |= other.q_idx;
    kv_idx |= other.kv_idx;
    clamped |= other.clamped;
  }
};

// A sum in the text, and where it ends.
struct Sum {
  std::size_t end;
  Parts parts;
};

// `int d = kv_idx - q_idx;`
struct Local {
  std::string name;
  std::string text;  // of the sum
  Parts parts;
};

class SumReader {
 public:
  SumReader(const Tokens& tokens, const std::vector<Local>& locals)
      : tokens_(tokens), locals_(locals) {}

  // a + b - c from token i on.
  std::optional<Sum> sum(std::size_t i) const {
    std::optional<Sum> sum = term(text(i) == "-" ? i + 1 : i);
    while (sum && (text(sum->end) == "+" || text(sum->end) == "-")) {
      const Parts parts = sum->parts;
      sum = term(sum->end + 1);
      if (sum && !sum->parts.may_join(parts)) return {};
      if (sum) sum->parts.add(parts);
    }
    return sum;
  }

  std::string_view text(std::size_t i) const { return i < tokens_.size() ? tokens_[i].text : ""; }

  // Tokens [begin, end) with sums in the place of locals.
  std::string written(std::size_t begin, std::size_t end) const {
    std::string all;
    for (std::size_t i = begin; i < end; ++i) {
      const bool is_call = text(i) == "(" && text(i - 1) == "clamp";
      const bool is_spaced =
          i > begin && text(i - 1) != "(" && text(i) != ")" && text(i) != "," && !is_call;
      all += is_spaced ? " " : "";
      const Local* const local = find_local(text(i));
      all += local ? "(" + local->text + ")" : std::string(text(i));
    }
    return all;
  }

 private:
  const Local* find_local(std::string_view name) const {
    const auto found = std::find_if(locals_.begin(), locals_.end(),
                                    [&](const Local& local) { return local.name == name; });
    return found == locals_.end() ? nullptr : &*found;
  }

  std::optional<Sum> term(std::size_t i) const {
    if (i >= tokens_.size()) return {};
    if (tokens_[i].kind == SnippetToken::Kind::number) return number(i);
    if (text(i) == "(") return in_brackets(i);
    if (text(i) == "clamp") return clamp(i);
    if (const Local* const local = find_local(text(i))) return Sum{i + 1, local->parts};
    constexpr std::array<std::string_view, 7> of_call = {
        "b", "h", "h_kv", "q_len", "kv_len", "num_q_heads", "num_kv_heads"};
    const Parts parts{.q_idx = text(i) == "q_idx", .kv_idx = text(i) == "kv_idx"};
    const bool is_known = parts.any() || is_one_of(text(i), of_call);
    if (!is_known) return {};
    return Sum{i + 1, parts};
  }

  std::optional<Sum> number(std::size_t i) const {
    if (!read_number(text(i)).is_int) return {};
    return Sum{i + 1, {}};
  }

  std::optional<Sum> in_brackets(std::size_t i) const {
    const std::optional<Sum> inner = sum(i + 1);
    if (!inner || text(inner->end) != ")") return {};
    return Sum{inner->end + 1, inner->parts};
  }

  // clamp(sum, least, greatest): as monotonous as the sum.
  std::optional<Sum> clamp(std::size_t i) const {
    if (text(i + 1) != "(") return {};
    const std::optional<Sum> value = sum(i + 2);
    if (!value || text(value->end) != ",") return {};
    const std::optional<Sum> least = sum(value->end + 1);
    if (!least || least->parts.any() || text(least->end) != ",") return {};
    const std::optional<Sum> greatest = sum(least->end + 1);
    if (!greatest || greatest->parts.any() || text(greatest->end) != ")") return {};
    Sum clamped{greatest->end + 1, value->parts};
    clamped.parts.clamped = clamped.parts.any();
    return clamped;
  }

  const Tokens& tokens_;
  const std::vector<Local>& locals_;
};

bool assigns(const Tokens& tokens, std::size_t i) {
  return i < tokens.size() && is_assignment(tokens[i].text);
}

// Whether the variable of token i is only read, apart from there.
bool is_constant(const Tokens& tokens, std::size_t i) {
  for (std::size_t j = 1; j < tokens.size(); ++j) {
    if (j == i || tokens[j].text != tokens[i].text) continue;
    const SnippetToken& before = tokens[j - 1];
    const bool is_declared = is_identifier(before) && before.text != "return";
    if (is_declared || before.text == "&" || before.text == "++" || before.text == "--")
      return false;
    if (assigns(tokens, j + 1)) return false;
  }
  return true;
}

// `(d) = 3`, `(h ? d : e)++`, `++(d)`, `&(d)`, around the bracket of token i.
bool may_change_in_brackets(const Tokens& tokens, std::size_t i) {
  if (tokens[i].text == ")" && assigns(tokens, i + 1)) {
    // `for (...) ++x`
    const bool is_of_next = tokens[i + 1].text == "++" || tokens[i + 1].text == "--";
    return !is_of_next || i + 2 >= tokens.size() || !is_identifier(tokens[i + 2]);
  }
  if (tokens[i].text != "(" || i == 0) return false;
  const std::string_view before = tokens[i - 1].text;
  if (before == "++" || before == "--") return true;
  if (before != "&") return false;
  const bool follows_number = i > 1 && tokens[i - 2].kind == SnippetToken::Kind::number;
  const std::string_view operand = i > 1 ? tokens[i - 2].text : "";
  return !follows_number && operand != ")" && operand != "]";
}

// Errs on the side of true: `int& r = d`, `auto&& r`, `decltype((d)) r`, `[]<typename T>(T& x)`.
bool may_refer_to_variables(const Tokens& tokens) {
  constexpr std::array<std::string_view, 6> words = {"decltype", "typeof",   "typename",
                                                     "class",    "template", "bitand"};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (is_one_of(tokens[i].text, words) || may_change_in_brackets(tokens, i)) return true;
    if (i == 0) continue;
    const bool follows_name = is_identifier(tokens[i - 1]);
    if (tokens[i].text == "&" && follows_name) return true;
    const bool is_and = tokens[i].text == "&&" || tokens[i].text == "and";
    if (is_and && tokens[i - 1].text == "auto") return true;
  }
  return false;
}

// Whether the `int` of token i stands alone: no `short int`, no `unsigned const int`.
bool is_plain_int(const Tokens& tokens, std::size_t i) {
  constexpr std::array<std::string_view, 3> qualifiers = {"const", "volatile", "constexpr"};
  constexpr std::array<std::string_view, 4> sizes = {"short", "long", "unsigned", "signed"};
  if (tokens[i].text != "int") return false;
  while (i > 0 && is_one_of(tokens[i - 1].text, qualifiers)) --i;
  return i == 0 || !is_one_of(tokens[i - 1].text, sizes);
}

std::vector<Local> find_locals(const Tokens& tokens, const Spec& spec) {
  std::vector<Local> locals;
  if (may_refer_to_variables(tokens)) return locals;
  for (std::size_t i = 0; i + 3 < tokens.size(); ++i) {
    // In front of the declaration a scalar's name is the scalar.
    if (spec.scalars.contains(std::string(tokens[i + 1].text))) continue;
    if (!is_plain_int(tokens, i) || tokens[i + 2].text != "=" || !is_constant(tokens, i + 1))
      continue;
    const SumReader reader(tokens, locals);
    const std::optional<Sum> sum = reader.sum(i + 3);
    if (!sum || reader.text(sum->end) != ";") continue;
    locals.push_back({.name = std::string(tokens[i + 1].text),
                      .text = reader.written(i + 3, sum->end),
                      .parts = sum->parts});
  }
  return locals;
}

// The indices of a read in the text.
struct Indices {
  std::size_t end;  // the token behind them
  bool has_own_element = false;
};

// From the `[` or `(` of token i on. Their number is left for the compiler to complain about.
std::optional<Indices> read_indices(const SumReader& reader, std::size_t i) {
  const std::string_view open = reader.text(i);
  if (open != "[" && open != "(") return {};
  const std::string_view close = open == "[" ? "]" : ")";
  Indices indices{.end = i};
  Parts parts;
  do {
    const std::optional<Sum> index = reader.sum(indices.end + 1);
    if (!index) return {};
    indices.end = index->end;
    const bool is_apart =
        (parts.q_idx && index->parts.kv_idx) || (parts.kv_idx && index->parts.q_idx);
    indices.has_own_element |= is_apart;
    parts.add(index->parts);
  } while (reader.text(indices.end) == "," && open == "(");
  if (reader.text(indices.end) != close) return {};
  return indices;
}

bool is_done_ahead(const std::vector<HoistedRead>& hoisted, const std::string& buffer,
                   const std::string& indices) {
  return std::any_of(hoisted.begin(), hoisted.end(), [&](const HoistedRead& read) {
    return read.buffer == buffer && read.indices == indices;
  });
}

}  // namespace

std::vector<LinearRead> linear_reads(const Spec& spec) {
  if (spec.score_mod.empty() || spec.buffers.empty()) return {};
  const Snippet snippet = check_snippet(SnippetKind::score_mod, spec.score_mod);
  const Tokens tokens = tokenize(snippet.text, snippet.kind);
  if (may_declare_a_name(tokens, spec)) return {};
  std::vector<HoistedRead> hoisted;
  const HoistedReads done_ahead(snippet, spec, hoisted);
  const std::vector<Local> locals = find_locals(tokens, spec);
  const SumReader reader(tokens, locals);
  std::vector<LinearRead> reads;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto buffer = spec.buffers.find(std::string(tokens[i].text));
    if (!is_identifier(tokens[i]) || buffer == spec.buffers.end()) continue;
    if (buffer->second.shape.empty()) continue;  // done ahead
    const std::optional<Indices> indices = read_indices(reader, i + 1);
    if (!indices || buffer->second.bounds == Bounds::trusted) return {};
    const std::string text = reader.written(i + 2, indices->end);
    if (!is_done_ahead(hoisted, buffer->first, text)) {
      reads.push_back({buffer->first, text, indices->has_own_element});
    }
    i = indices->end;
  }
  return reads;
}

}  // namespace tilewright
