#include "generator/render/derivative_context.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
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

// Reads whose terms a GPU sums along diagonals, each in shared memory of its own.
constexpr std::int64_t kMostDiagonals = 2;

bool names_variable(const Expression& node, std::string_view name) {
  return snippet::has_node(node, [&](const Expression& one) { return one.is_variable(name); });
}

// Whether rows and columns are mentioned in their difference alone.
bool takes_difference_alone(const Expression& node) {
  if (node.is_variable("q_idx") || node.is_variable("kv_idx")) return false;
  const bool is_difference =
      node.op == Op::subtract &&
      ((node.operands[0].is_variable("q_idx") && node.operands[1].is_variable("kv_idx")) ||
       (node.operands[0].is_variable("kv_idx") && node.operands[1].is_variable("q_idx")));
  return is_difference ||
         std::all_of(node.operands.begin(), node.operands.end(), takes_difference_alone);
}

// What the cell of a read depends on, as templates/snippet/derivative.hpp.jinja names it.
std::string_view pattern_of(const DerivativeSlot& slot) {
  const auto any = [&](std::string_view name) {
    return std::any_of(slot.indices.begin(), slot.indices.end(),
                       [&](const Expression& index) { return names_variable(index, name); });
  };
  if (any("score")) return "element";
  const bool by_row = any("q_idx"), by_column = any("kv_idx");
  if (!by_row && !by_column) return "head";
  if (!by_column) return "row";
  if (!by_row) return "column";
  return std::all_of(slot.indices.begin(), slot.indices.end(), takes_difference_alone)
             ? "difference"
             : "element";
}

jinja::Map slot_value(const Spec& spec, const DerivativeSlot& slot, std::string_view pattern) {
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
          {"pattern", std::string(pattern)},
          {"rank", static_cast<std::int64_t>(slot.indices.size())},
          {"trusted", is_trusted},
          {"indices", indices}};
}

}  // namespace

jinja::Map derivative_context(const SpecFacts& facts, const Reading& reading) {
  const std::vector<std::string> names = gradient_names(facts.spec);
  jinja::Map context = {
      {"by_score", {}}, {"by_names", {}}, {"sums", !names.empty()}, {"diagonals", std::int64_t{0}}};
  if (!facts.score_mod) return context;
  context["by_score"] = splice_of(derivative_of(*facts.score_mod, {}, reading));
  if (names.empty()) return context;
  Derivative by_names = derivative_of(
      *facts.score_mod, {.by_score = false, .names = {names.begin(), names.end()}}, reading);
  jinja::List slots;
  std::int64_t diagonals = 0;
  for (const DerivativeSlot& slot : by_names.slots) {
    std::string_view pattern = pattern_of(slot);
    if (pattern == "difference" && ++diagonals > kMostDiagonals) pattern = "element";
    slots.push_back(slot_value(facts.spec, slot, pattern));
  }
  if (slots.empty()) return context;
  context["diagonals"] = std::min(diagonals, kMostDiagonals);
  context["by_names"] =
      jinja::Map{{"body", splice_of(std::move(by_names))}, {"slots", std::move(slots)}};
  return context;
}

}  // namespace tilewright
