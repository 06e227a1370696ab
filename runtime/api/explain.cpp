#include "runtime/api/explain.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generator/messages/text_location.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/snippet/gradient_terms.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/tactic/describe_backward.hpp"
#include "generator/tactic/describe_gradient_sums.hpp"
#include "generator/tactic/fast_paths.hpp"
#include "generator/tactic/tactic.hpp"

namespace tilewright {
namespace {

Explanation::Path explained(const FastPath& path) {
  Explanation::Path result{.name = path.name, .used = path.used, .why_not = path.why_not};
  if (path.place) {
    result.place = {.snippet = std::string(to_string(path.place->snippet)),
                    .line = path.place->line,
                    .column = path.place->column};
  }
  return result;
}

// As score_mod has it: brackets around one index, parentheses around more.
std::string read_text(const GradientSum& sum) {
  const std::string indices = fmt::format("{}", fmt::join(sum.indices, ", "));
  if (sum.indices.empty()) return sum.name;
  return sum.name + (sum.indices.size() == 1 ? '[' + indices + ']' : '(' + indices + ')');
}

Explanation::Backward backward_of(const SpecFacts& facts, const Target& target) {
  const KernelVariant kernel = backward_kernel(facts.spec);
  Explanation::Backward result{.kernel = kernel.name()};
  if (const auto unknown = unknown_derivative(facts)) {
    const std::string name(to_string(SnippetKind::score_mod));
    const SourceLocation place = place_at(name, facts.score_mod->snippet.text, unknown->begin);
    result.why_not = unknown->message;
    result.place = {.snippet = name, .line = place.line, .column = place.column};
    return result;
  }
  result.tactic = describe_backward(facts, target, kernel);
  for (const GradientSum& sum : describe_gradient_sums(facts, target, kernel)) {
    result.sums.push_back({.read = read_text(sum),
                           .pattern = std::string(to_string(sum.pattern)),
                           .by = describe_pattern(sum.pattern),
                           .way = sum.way});
  }
  return result;
}

nlohmann::ordered_json json_of(const std::optional<Explanation::SnippetLocation>& place) {
  if (!place) return nullptr;
  return {{"snippet", place->snippet}, {"line", place->line}, {"column", place->column}};
}

// "" as null.
nlohmann::ordered_json json_of_text(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

nlohmann::ordered_json json_of(const Explanation::Path& path) {
  return {{"name", path.name},
          {"used", path.used},
          {"why_not", path.used ? nlohmann::ordered_json() : nlohmann::ordered_json(path.why_not)},
          {"place", json_of(path.place)}};
}

nlohmann::ordered_json json_of(const std::vector<Explanation::Sum>& sums) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Explanation::Sum& sum : sums) {
    all.push_back({{"read", sum.read}, {"pattern", sum.pattern}, {"by", sum.by}, {"way", sum.way}});
  }
  return all;
}

nlohmann::ordered_json json_of(const Explanation::Backward& backward) {
  return {{"kernel", backward.kernel},
          {"tactic", json_of_text(backward.tactic)},
          {"why_not", json_of_text(backward.why_not)},
          {"place", json_of(backward.place)},
          {"sums", json_of(backward.sums)}};
}

}  // namespace

std::string Explanation::to_json() const {
  nlohmann::ordered_json paths = nlohmann::ordered_json::array();
  for (const Path& path : fast_paths) paths.push_back(json_of(path));
  const nlohmann::ordered_json all = {
      {"backward", backward ? json_of(*backward) : nlohmann::ordered_json()},
      {"fast_paths", paths},
      {"kernel", kernel},
      {"tactic", tactic}};
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Explanation explain(const Spec& spec, const Target& target) {
  validate(spec);
  const SpecFacts facts(spec);
  Explanation result{.kernel = forward_kernel(spec, target).name(),
                     .target = target.name(),
                     .tactic = choose_tactic(facts, target).describe(),
                     .fast_paths = {}};
  for (const FastPath& path : fast_paths(facts, target)) {
    result.fast_paths.push_back(explained(path));
  }
  if (!spec.gradients.empty()) result.backward = backward_of(facts, target);
  return result;
}

}  // namespace tilewright
