#include "generator/tactic/tactic_candidates.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace tilewright {
namespace {

// Values of a parameter that are worth a try. What does not fit a spec is left out of its
// candidates.
struct Choices {
  std::string_view name;
  std::initializer_list<std::int64_t> values;
};

constexpr Choices kOfCpus[] = {{"q_tile", {16, 32, 64, 128}}, {"kv_tile", {64, 128, 256}}};
constexpr Choices kOfPortable[] = {
    {"q_tile", {64, 128}}, {"kv_tile", {32, 64, 128}}, {"warps", {4, 8}}, {"stages", {1, 2}}};
// Numbers of stages follow the tiles.
constexpr Choices kOfHopper[] = {{"q_tile", {64, 128, 192}},
                                 {"kv_tile", {64, 80, 96, 112, 128}},
                                 {"take_turns", {0, 1}},
                                 {"persistent", {0, 1}}};

std::span<const Choices> choices_of(std::string_view tactic) {
  if (tactic == kCpu) return kOfCpus;
  if (tactic == kPortable) return kOfPortable;
  return kOfHopper;
}

// Every combination of the choices.
std::vector<TacticSpec> combinations(std::string_view name, std::span<const Choices> choices) {
  std::vector<TacticSpec> all = {{.name = std::string(name)}};
  for (const Choices& choice : choices) {
    std::vector<TacticSpec> longer;
    for (const TacticSpec& one : all) {
      for (const std::int64_t value : choice.values) {
        longer.push_back(one);
        longer.back().parameters.emplace(choice.name, value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// The tactic of the kernel that serves most calls, where the forced one fits all forward kernels.
std::optional<Tactic> tactic_where_it_fits(const Spec& spec, const Target& target) {
  const SpecFacts facts(spec);
  try {
    for (const KernelVariant& variant : kernel_variants(target)) {
      if (variant.is_forward() && variant.rows == KernelRows::all && !variant.split) {
        static_cast<void>(choose_tactic(facts, target, variant));
      }
    }
    return choose_tactic(facts, target);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::spec) throw;
    return std::nullopt;
  }
}

}  // namespace

std::vector<TacticSpec> tactic_candidates(const SpecFacts& facts, const Target& target) {
  if (facts.spec.tactic) return {};
  std::vector<Tactic> seen = {choose_tactic(facts, target)};
  const std::string_view name = seen.front().name();
  std::vector<TacticSpec> candidates;
  Spec spec = facts.spec;
  for (TacticSpec& forced : combinations(name, choices_of(name))) {
    spec.tactic = forced;
    const std::optional<Tactic> tactic = tactic_where_it_fits(spec, target);
    if (!tactic || std::ranges::count(seen, *tactic) > 0) continue;
    seen.push_back(*tactic);
    candidates.push_back(std::move(forced));
  }
  return candidates;
}

}  // namespace tilewright
