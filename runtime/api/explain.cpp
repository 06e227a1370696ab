#include "runtime/api/explain.hpp"

#include <nlohmann/json.hpp>

#include "generator/render/kernel_source.hpp"
#include "generator/snippet/spec_facts.hpp"
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

nlohmann::ordered_json json_of(const Explanation::Path& path) {
  nlohmann::ordered_json place, why_not;
  if (path.place) {
    place = {{"snippet", path.place->snippet},
             {"line", path.place->line},
             {"column", path.place->column}};
  }
  if (!path.used) why_not = path.why_not;
  return {{"name", path.name}, {"used", path.used}, {"why_not", why_not}, {"place", place}};
}

}  // namespace

std::string Explanation::to_json() const {
  nlohmann::ordered_json paths = nlohmann::ordered_json::array();
  for (const Path& path : fast_paths) paths.push_back(json_of(path));
  const nlohmann::ordered_json all = {
      {"fast_paths", paths}, {"kernel", kernel}, {"tactic", tactic}};
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
  return result;
}

}  // namespace tilewright
