#include "generator/tactic/fast_paths.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"
#include "generator/tactic/tactic.hpp"

namespace tilewright {
namespace {

using snippet::BufferRead;
using snippet::SourceRange;

FastPath::SourceLocation place_of(const AnalysedSnippet& analysed, const SourceRange& range) {
  const SnippetKind kind = analysed.snippet.kind;
  const SourceLocation place = place_at(to_string(kind), analysed.snippet.text, range.begin);
  return {kind, place.line, place.column};
}

// The first word of a type that intervals have not.
std::optional<SnippetToken> type_without_intervals(const AnalysedSnippet& analysed) {
  for (const SnippetToken& token : tokenize(analysed.snippet.text, analysed.snippet.kind)) {
    if (token.text == "long" || token.text == "unsigned") return token;
  }
  return {};
}

class Explainer {
 public:
  Explainer(const SpecFacts& facts, const Target& target)
      : facts_(facts), is_hopper_(choose_tactic(facts, target).hopper() != nullptr) {}

  std::vector<FastPath> run() {
    of_score("score_slope", facts_.has_slope(),
             "the result is not score + slope * (kv_idx - q_idx), with a slope that names neither "
             "index");
    of_score("score_factors", facts_.reduction.has_factors(),
             "no number or f32 scalar multiplies every score, or a function that is the whole "
             "result");
    of_score("fixed_maximum", facts_.fixed_max().has_value(), why_no_fixed_max());
    reads("reads_by_head", "names neither q_idx nor kv_idx",
          [](const BufferRead& read) { return !read.names_q_idx && !read.names_kv_idx; });
    reads("reads_by_row", "names q_idx and not kv_idx",
          [](const BufferRead& read) { return read.names_q_idx; });
    reads("reads_by_column", "names kv_idx and not q_idx",
          [](const BufferRead& read) { return read.names_kv_idx; });
    const std::vector<BufferRead> linear = facts_.linear_reads();
    of_score("own_elements",
             std::any_of(linear.begin(), linear.end(),
                         [](const BufferRead& read) { return read.has_own_element; }),
             "no read has q_idx and kv_idx in indices of their own, or another read is not at sums "
             "of indices");
    of_mask();
    add("tensor_maps", is_hopper_, "only Hopper's kernel loads tiles by tensor maps");
    add("decode", false, "no kernel of this version splits kv for few rows of q");
    return std::move(paths_);
  }

 private:
  void add(std::string name, bool used, std::string why_not,
           std::optional<FastPath::SourceLocation> place = {}) {
    paths_.push_back({.name = std::move(name), .used = used});
    if (used) return;
    paths_.back().why_not = std::move(why_not);
    paths_.back().place = place;
  }

  // Says why nothing is known of an opaque snippet; false for any other.
  bool is_opaque(const std::string& name, const std::optional<AnalysedSnippet>& analysed) {
    if (!analysed || !analysed->facts.is_opaque) return false;
    const snippet::Statement& opaque = *snippet::opaque(analysed->tree);
    add(name, false,
        fmt::format("nothing is known of {}: {}", to_string(analysed->snippet.kind), opaque.name),
        place_of(*analysed, opaque.value.range));
    return true;
  }

  void of_score(const std::string& name, bool found, const std::string& why_not) {
    if (!facts_.score_mod) return add(name, false, "the spec has no score_mod");
    if (is_opaque(name, facts_.score_mod)) return;
    if (!is_hopper_) return add(name, false, "only Hopper's kernel has it");
    if (!facts_.spec.may_reshape_score_mod()) {
      return add(name, false, "precise_math keeps score_mod as it is written");
    }
    const std::vector<snippet::Statement>& statements = facts_.score_mod->tree.statements;
    add(name, found, why_not, place_of(*facts_.score_mod, statements.back().value.range));
  }

  std::string why_no_fixed_max() const {
    if (!facts_.reduction.is_bounded) {
      return "the result is not tanh, sin or cos, with or without a factor";
    }
    if (facts_.spec.dtype != DType::bf16) return "weights relative to it need bf16's exponents";
    return "the factor of the result must be known, by a scalar's default, and at most 55";
  }

  template <typename Wanted>
  void reads(const std::string& name, std::string_view which, const Wanted& wanted) {
    std::optional<FastPath::SourceLocation> place;
    bool has_reads = false;
    for (const auto* analysed : {&facts_.score_mod, &facts_.mask_mod}) {
      if (!*analysed) continue;
      if ((*analysed)->facts.is_opaque) {
        is_opaque(name, *analysed);
        return;
      }
      for (const BufferRead& read : (*analysed)->facts.reads) {
        if (read.is_hoistable && wanted(read)) return add(name, true, "");
        if (!place) place = place_of(**analysed, read.range);
        has_reads = true;
      }
    }
    if (!has_reads) return add(name, false, "the snippets read no buffers");
    add(name, false,
        fmt::format("no read of a buffer that is not trusted, at plain indices, {}", which), place);
  }

  void of_mask() {
    if (!facts_.mask_mod) return add("proved_mask", false, "the spec has no mask_mod");
    if (is_opaque("proved_mask", facts_.mask_mod)) return;
    if (const auto type = type_without_intervals(*facts_.mask_mod)) {
      return add("proved_mask", false,
                 fmt::format("intervals have int, float and bool, and no type {}", type->text),
                 FastPath::SourceLocation{SnippetKind::mask_mod, type->line, type->column});
    }
    add("proved_mask", facts_.may_prove_mask(),
        "the right operand of && or || may change a variable");
  }

  const SpecFacts& facts_;
  bool is_hopper_;
  std::vector<FastPath> paths_ = {};
};

}  // namespace

std::vector<FastPath> fast_paths(const SpecFacts& facts, const Target& target) {
  return Explainer(facts, target).run();
}

}  // namespace tilewright
