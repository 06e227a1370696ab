#include "generator/render/derivative_context.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/snippet/derivative.hpp"
#include "generator/snippet/gradient_terms.hpp"
#include "generator/snippet/print.hpp"
#include "generator/snippet/splice.hpp"
#include "generator/spec/gradients.hpp"

namespace tilewright {
namespace {

using snippet::Derivative;
using snippet::DerivativeSlot;
using snippet::Expression;
using snippet::Op;

// Unsuffixed literals have the score's type.
void add_suffixes(Expression& node) {
  if (node.op != Op::floating_literal || !std::isfinite(node.number)) return;
  const std::string text = snippet::to_text(node) + "f";
  node = snippet::variable(snippet::begins_with_minus(node) ? "(" + text + ")" : text, node.type);
}

// The caller knows that there is one.
Derivative derivative_of(const AnalysedSnippet& user, const snippet::DerivativeWish& wish) {
  return snippet::differentiate(user.tree, wish).value();
}

// As the interpretation has it: its numbers are names then, of which nothing is known.
Derivative written(Derivative derivative, const Interpretation& interpretation) {
  if (interpretation.literals != LiteralType::f32) return derivative;
  snippet::for_each_node(derivative.statements, add_suffixes);
  for (DerivativeSlot& slot : derivative.slots) {
    for (Expression& index : slot.indices) snippet::for_each_node(index, add_suffixes);
  }
  return derivative;
}

jinja::Splice splice_of(Derivative derivative) {
  const snippet::SnippetTree tree{.statements = std::move(derivative.statements)};
  return {.origin = std::string(to_string(SnippetKind::score_mod)),
          .pieces = {{snippet::to_text(tree) + "\n", 1, 1, false}}};
}

jinja::Map slot_value(const Spec& spec, const DerivativeSlot& slot, GradientPattern pattern,
                      bool is_finite, bool is_branched) {
  const std::vector<std::string> names = gradient_names(spec);
  const auto place = std::find(names.begin(), names.end(), slot.name) - names.begin();
  const auto buffer = spec.buffers.find(slot.name);
  std::string indices;
  for (const Expression& index : slot.indices) {
    indices += (indices.empty() ? "" : ", ") + snippet::to_text(index);
  }
  const bool is_trusted = buffer != spec.buffers.end() && buffer->second.bounds == Bounds::trusted;
  return {{"gradient", static_cast<std::int64_t>(place)},
          {"buffer", slot.name},
          {"pattern", std::string(to_string(pattern))},
          {"has_cell_for_each_difference", has_cell_for_each_difference(slot)},
          {"is_finite", is_finite},
          {"is_branched", is_branched},
          {"rank", static_cast<std::int64_t>(slot.indices.size())},
          {"trusted", is_trusted},
          {"indices", indices}};
}

}  // namespace

jinja::Map derivative_context(const SpecFacts& facts, const Interpretation& interpretation,
                              bool takes_difference) {
  const std::vector<std::string> names = gradient_names(facts.spec);
  jinja::Map context = {{"by_score", {}}, {"adds_to_score", true},  {"slope_is_bounded", true},
                        {"by_names", {}}, {"sums", !names.empty()}, {"diagonals", std::int64_t{0}}};
  if (!facts.score_mod) return context;
  require_known_derivative(facts);
  const snippet::SnippetTree& tree =
      takes_difference ? facts.whole_difference.value().found.rest : facts.score_mod->tree;
  const Derivative by_score = snippet::differentiate(tree, {}).value();
  context["adds_to_score"] = by_score.constants[0] == 1.0;
  context["slope_is_bounded"] = is_bounded(by_score);
  context["by_score"] = splice_of(written(by_score, interpretation));
  if (names.empty()) return context;
  const Derivative by_names =
      derivative_of(*facts.score_mod, {.by_score = false, .names = {names.begin(), names.end()}});
  Derivative text = written(by_names, interpretation);
  jinja::List slots;
  std::int64_t diagonals = 0;
  for (std::size_t i = 0; i < by_names.slots.size(); ++i) {
    GradientPattern pattern = pattern_of(by_names.slots[i]);
    if (pattern == GradientPattern::difference && ++diagonals > kMostDiagonals) {
      pattern = GradientPattern::element;
    }
    slots.push_back(slot_value(facts.spec, text.slots[i], pattern, is_finite(by_names, i),
                               is_branched(by_names, i)));
  }
  if (slots.empty()) return context;
  context["diagonals"] = std::min(diagonals, kMostDiagonals);
  context["by_names"] =
      jinja::Map{{"body", splice_of(std::move(text))}, {"slots", std::move(slots)}};
  return context;
}

}  // namespace tilewright
