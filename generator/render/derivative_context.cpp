#include "generator/render/derivative_context.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "generator/snippet/derivative.hpp"
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
  node = snippet::variable(node.number < 0 ? "(" + text + ")" : text, node.type);
}

[[noreturn]] void refuse(const AnalysedSnippet& user, const std::vector<std::string>& names) {
  const snippet::Statement* const opaque = snippet::opaque(user.tree);
  const std::size_t at = opaque != nullptr ? opaque->value.range.begin : 0;
  throw snippet_error(SnippetKind::score_mod, user.snippet.text, at,
                      names.empty() ? "no derivative of this snippet by the score is known"
                                    : "no derivative of this snippet by a buffer's reads is known",
                      "write it without lambdas, arrays and references, and without loops that "
                      "read a buffer that has a gradient");
}

Derivative derivative_of(const AnalysedSnippet& user, const snippet::DerivativeWish& wish,
                         const Reading& reading) {
  std::optional<Derivative> derivative = snippet::differentiate(user.tree, wish);
  if (!derivative) {
    refuse(user, std::vector<std::string>(wish.names.begin(), wish.names.end()));
  }
  if (reading.literals != LiteralType::f32) return *std::move(derivative);
  snippet::for_each_node(derivative->statements, add_suffixes);
  for (DerivativeSlot& slot : derivative->slots) {
    for (Expression& index : slot.indices) snippet::for_each_node(index, add_suffixes);
  }
  return *std::move(derivative);
}

jinja::Splice splice_of(Derivative derivative) {
  const snippet::SnippetTree tree{.statements = std::move(derivative.statements)};
  return {.origin = std::string(to_string(SnippetKind::score_mod)),
          .pieces = {{snippet::to_text(tree) + "\n", 1, 1, false}}};
}

jinja::Map slot_value(const Spec& spec, const DerivativeSlot& slot) {
  const std::vector<std::string> names = gradient_names(spec);
  const auto place = std::find(names.begin(), names.end(), slot.name) - names.begin();
  const auto buffer = spec.buffers.find(slot.name);
  std::string indices;
  for (const Expression& index : slot.indices) {
    indices += (indices.empty() ? "" : ", ") + snippet::to_text(index);
  }
  const bool is_trusted = buffer != spec.buffers.end() && buffer->second.bounds == Bounds::trusted;
  return {{"gradient", static_cast<std::int64_t>(place)},
          {"rank", static_cast<std::int64_t>(slot.indices.size())},
          {"trusted", is_trusted},
          {"indices", indices}};
}

}  // namespace

jinja::Map derivative_context(const SpecFacts& facts, const Reading& reading) {
  const std::vector<std::string> names = gradient_names(facts.spec);
  jinja::Map context = {{"by_score", {}}, {"by_names", {}}, {"sums", !names.empty()}};
  if (!facts.score_mod) return context;
  context["by_score"] = splice_of(derivative_of(*facts.score_mod, {}, reading));
  if (names.empty()) return context;
  Derivative by_names = derivative_of(
      *facts.score_mod, {.by_score = false, .names = {names.begin(), names.end()}}, reading);
  jinja::List slots;
  for (const DerivativeSlot& slot : by_names.slots) slots.push_back(slot_value(facts.spec, slot));
  if (slots.empty()) return context;
  context["by_names"] =
      jinja::Map{{"body", splice_of(std::move(by_names))}, {"slots", std::move(slots)}};
  return context;
}

}  // namespace tilewright
