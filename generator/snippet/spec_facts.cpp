#include "generator/snippet/spec_facts.hpp"

#include <algorithm>
#include <numbers>

#include "generator/snippet/parse.hpp"
#include "generator/snippet/rewrite.hpp"

namespace tilewright {
namespace {

std::optional<AnalysedSnippet> analysed(SnippetKind kind, const Spec& spec) {
  const std::string& text = snippet_text(spec, kind);
  if (text.empty()) return {};
  std::vector<SnippetToken> tokens;
  AnalysedSnippet analysed{.snippet = check_snippet(kind, text, tokens)};
  analysed.tree = snippet::parse(kind, tokens, spec);
  analysed.facts = snippet::find_facts(analysed.tree, spec);
  return analysed;
}

std::optional<AnalysedDifference> analysed_difference(const snippet::SnippetTree& tree,
                                                      const Spec& spec) {
  std::optional<snippet::DifferenceValue> found = snippet::difference_value(tree, spec);
  if (!found) return {};
  AnalysedDifference analysed{.found = std::move(*found)};
  analysed.rest = snippet::find_facts(analysed.found.rest, spec);
  analysed.value = {.kind = tree.kind, .statements = {{.value = analysed.found.value}}};
  analysed.value_facts = snippet::find_facts(analysed.value, spec);
  return analysed;
}

bool mentions_buffers(const AnalysedSnippet& analysed, const Spec& spec) {
  return std::any_of(spec.buffers.begin(), spec.buffers.end(),
                     [&](const auto& buffer) { return analysed.snippet.mentions(buffer.first); });
}

// Exponents of 2 that weights relative to the fixed maximum may have.
constexpr double kLeastExponent = -100;  // far from bf16's least, -126
constexpr double kMostExponent = 60;     // leaves 2^67 for sums of products with v
constexpr double kGreatestBoundedFactor =
    (kMostExponent - kLeastExponent) / 2 / std::numbers::log2e;

// With each scalar at its default; nothing if one has none.
std::optional<double> usual_value(const snippet::Factor& factor, const Spec& spec) {
  double value = factor.literal;
  for (const auto& [name, divides] : factor.scalars) {
    const std::optional<double> usual = spec.scalars.at(name).default_value;
    if (!usual) return {};
    value = divides ? value / *usual : value * *usual;
  }
  return value;
}

// Whether intervals have the node in a few instructions, and tell something of a tile by it, as
// they seldom do by remainders: SpecFacts::has_plain_mask.
bool is_plain(const snippet::Expression& node) {
  using snippet::Op;
  if (node.type != snippet::Type::integer && node.type != snippet::Type::truth) return false;
  const auto is_literal = [&](std::size_t operand) {
    return node.operands[operand].op == Op::integer_literal;
  };
  switch (node.op) {
    case Op::multiply:
      return is_literal(0) || is_literal(1);
    case Op::divide:
      return is_literal(1);
    case Op::integer_literal:
    case Op::truth_literal:
    case Op::variable:
    case Op::add:
    case Op::subtract:
    case Op::negate:
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
    case Op::equal:
    case Op::not_equal:
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_not:
      return true;
    default:
      return false;
  }
}

}  // namespace

SpecFacts::SpecFacts(const Spec& given)
    : spec(given),
      score_mod(analysed(SnippetKind::score_mod, given)),
      mask_mod(analysed(SnippetKind::mask_mod, given)),
      q_scale(analysed(SnippetKind::q_scale, given)),
      k_scale(analysed(SnippetKind::k_scale, given)),
      v_scale(analysed(SnippetKind::v_scale, given)),
      out_scale(analysed(SnippetKind::out_scale, given)),
      sink(analysed(SnippetKind::sink, given)),
      dropout(analysed(SnippetKind::dropout, given)) {
  if (!score_mod) return;
  // A slope is divided by the scale, which scales of q and k are part of: they may have any value.
  if (q_scale || k_scale) {
    reduction.rest = score_mod->tree;
  } else {
    reduction = snippet::reduce(score_mod->tree, spec);
  }
  reduced = snippet::find_facts(reduction.rest, spec);
  difference = analysed_difference(reduction.rest, spec);
  whole_difference = analysed_difference(score_mod->tree, spec);
  simple = snippet::simplified(score_mod->tree);
  simple_facts = snippet::find_facts(simple, spec);
}

const std::optional<AnalysedSnippet>& SpecFacts::of(SnippetKind kind) const {
  switch (kind) {
    case SnippetKind::score_mod:
      return score_mod;
    case SnippetKind::mask_mod:
      return mask_mod;
    case SnippetKind::q_scale:
      return q_scale;
    case SnippetKind::k_scale:
      return k_scale;
    case SnippetKind::v_scale:
      return v_scale;
    case SnippetKind::out_scale:
      return out_scale;
    case SnippetKind::sink:
      return sink;
    case SnippetKind::dropout:
      break;
  }
  return dropout;
}

Granularity SpecFacts::granularity(SnippetKind kind) const {
  const std::optional<AnalysedSnippet>& analysed = of(kind);
  if (!analysed) return Granularity::absent;
  const auto names = [&](auto... each) { return (analysed->snippet.mentions(each) || ...); };
  const bool is_of_kv = kind == SnippetKind::k_scale || kind == SnippetKind::v_scale;
  if ((is_of_kv && spec.kv_new) || names("q_idx", "q_token", "kv_idx", "kv_token")) {
    return Granularity::row;
  }
  return names("h") ? Granularity::head : Granularity::sequence;
}

bool SpecFacts::scales_kv_rows() const {
  return granularity(SnippetKind::k_scale) == Granularity::row ||
         granularity(SnippetKind::v_scale) == Granularity::row;
}

// Loops and lambdas stay as the user wrote them, and so does what is simple: messages then point
// into the text.
const snippet::SnippetTree* SpecFacts::printed(ScoreForm form) const {
  if (!score_mod || form == ScoreForm::as_written) return nullptr;
  if (form == ScoreForm::without_difference && difference) return &difference->found.rest;
  if (form >= ScoreForm::reduced && is_reduced()) return &reduction.rest;
  const snippet::SnippetFacts& facts = score_mod->facts;
  const bool is_kept = facts.is_opaque || facts.has_loop || facts.has_lambda;
  return is_kept || simple == score_mod->tree ? nullptr : &simple;
}

const snippet::SnippetFacts& SpecFacts::score_facts(ScoreForm form) const {
  static const auto& none = *new snippet::SnippetFacts;
  if (!score_mod) return none;
  const snippet::SnippetTree* const tree = printed(form);
  if (tree == nullptr) return score_mod->facts;
  if (tree == &simple) return simple_facts;
  return tree == &reduction.rest ? reduced : difference->rest;
}

const Snippet& SpecFacts::required_mask_mod() const {
  if (!mask_mod) check_snippet(SnippetKind::mask_mod, "");  // says that it is empty
  return mask_mod->snippet;
}

bool SpecFacts::is_reduced() const {
  return has_slope() || reduction.has_factors();
}

std::optional<double> SpecFacts::fixed_max() const {
  if (!reduction.is_bounded || spec.dtype != DType::bf16) return {};
  if (spec.outputs.max_scores) return {};  // the call stores the maxima
  const std::optional<double> factor = usual_value(reduction.of_result, spec);
  if (!factor || !(*factor > 0 && *factor <= kGreatestBoundedFactor)) return {};
  // Exponents go from -(1 + max) * f to (1 - max) * f, f in units of log2(e). What is right for a
  // factor is right for all smaller ones.
  const bool is_known = reduction.of_result.scalars.empty();
  const double greatest = (is_known ? *factor : kGreatestBoundedFactor) * std::numbers::log2e;
  return std::min(1.0, -kLeastExponent / greatest - 1);
}

double SpecFacts::greatest_result_factor() const {
  return fixed_max() ? kGreatestBoundedFactor : snippet::kGreatestFactor;
}

ScoreModReads SpecFacts::score_mod_reads() const {
  if (!score_mod || !mentions_buffers(*score_mod, spec)) return ScoreModReads::none;
  const std::vector<snippet::BufferRead>& reads = score_mod->facts.reads;
  const bool all_for_heads =
      std::all_of(reads.begin(), reads.end(), [](const snippet::BufferRead& read) {
        return read.is_hoistable && !read.names_q_idx && !read.names_kv_idx;
      });
  const bool is_known = !reads.empty() && !score_mod->facts.takes_sizes;
  return is_known && all_for_heads ? ScoreModReads::for_heads : ScoreModReads::more;
}

std::vector<snippet::BufferRead> SpecFacts::linear_reads() const {
  if (!score_mod) return {};
  return snippet::linear_reads(score_mod->facts);
}

bool SpecFacts::mask_mod_reads() const {
  return mask_mod && mentions_buffers(*mask_mod, spec);
}

bool SpecFacts::any_snippet_divides() const {
  const std::vector<SnippetKind>& kinds = snippet_kinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](SnippetKind kind) { return of(kind) && of(kind)->facts.divides; });
}

bool SpecFacts::may_prove_mask() const {
  return mask_mod && !mask_mod->facts.is_opaque;
}

bool SpecFacts::has_plain_mask() const {
  constexpr std::size_t kShort = 40;  // nodes
  if (!mask_mod) return false;
  const std::vector<snippet::Statement>& statements = mask_mod->tree.statements;
  if (statements.size() != 1 || statements[0].kind != snippet::Statement::Kind::result) {
    return false;
  }
  const snippet::Expression& value = statements[0].value;
  return snippet::size_of(value) <= kShort &&
         !snippet::has_node(value, [](const snippet::Expression& node) { return !is_plain(node); });
}

}  // namespace tilewright
