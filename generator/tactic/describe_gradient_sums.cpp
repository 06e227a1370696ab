#include "generator/tactic/describe_gradient_sums.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "generator/snippet/derivative.hpp"
#include "generator/snippet/print.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/backward_tactic.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"

namespace tilewright {
namespace {

constexpr const char* kEachElement = "each element is added to memory";

// Of templates/cuda/hopper/backward/gather.hpp.
std::string hopper_way(const HopperBackwardTactic& tactic, const GradientSum& sum) {
  constexpr std::int64_t kThreadsThatCompute = 256;
  switch (sum.pattern) {
    case GradientPattern::head:
      return fmt::format(
          "over all rows of a head and a block's {} columns, in registers and shared memory, then "
          "added to memory",
          tactic.columns);
    case GradientPattern::column:
      return "over all rows of a head, in registers and shared memory, then added to memory";
    case GradientPattern::row:
      return fmt::format("over {} columns, by shuffles and in shared memory, then added to memory",
                         tactic.columns * tactic.rows / kThreadsThatCompute);
    case GradientPattern::difference:
      return fmt::format(
          "along diagonals of 64 rows x 16 columns, in shared memory{}, then added to memory",
          sum.may_share_cells ? ", or in registers over a tile that has one cell" : "");
    default:
      return kEachElement;
  }
}

// Of templates/cuda/backward/gather.hpp.
std::string portable_way(const PortableTactic& tiles, GradientPattern pattern) {
  switch (pattern) {
    case GradientPattern::head:
      return fmt::format(
          "over a warp's {} rows and all columns, in registers, then added to memory",
          tiles.q_tile / tiles.warps);
    case GradientPattern::column:
      return "over all rows of a head, in registers, then added to memory";
    case GradientPattern::row:
      return "over all columns, in registers, then added to memory";
    case GradientPattern::difference:
      return fmt::format(
          "along diagonals of {} rows x {} columns, in shared memory, then added to memory",
          tiles.q_tile, tiles.kv_tile);
    default:
      return kEachElement;
  }
}

std::vector<GradientSum> reads_of(const SpecFacts& facts) {
  const std::vector<std::string> names = gradient_names(facts.spec);
  if (names.empty() || !facts.score_mod) return {};
  const auto by_names = snippet::differentiate(
      facts.score_mod->tree, {.by_score = false, .names = {names.begin(), names.end()}});
  if (!by_names) return {};
  std::vector<GradientSum> sums;
  for (const snippet::DerivativeSlot& slot : by_names->slots) {
    GradientSum sum{.name = slot.name, .pattern = pattern_of(slot)};
    sum.may_share_cells =
        sum.pattern == GradientPattern::difference && !has_cell_for_each_difference(slot);
    for (const snippet::Expression& index : slot.indices) {
      sum.indices.push_back(snippet::to_text(index));
    }
    sums.push_back(std::move(sum));
  }
  return sums;
}

}  // namespace

std::string describe_pattern(GradientPattern pattern) {
  switch (pattern) {
    case GradientPattern::head:
      return "by neither q_idx nor kv_idx";
    case GradientPattern::row:
      return "by q_idx";
    case GradientPattern::column:
      return "by kv_idx";
    case GradientPattern::difference:
      return "by kv_idx - q_idx";
    default:
      return "by element";
  }
}

std::vector<GradientSum> describe_gradient_sums(const SpecFacts& facts, const Target& target,
                                                const KernelVariant& kernel) {
  std::vector<GradientSum> sums = reads_of(facts);
  if (sums.empty()) return sums;
  if (target.is_cpu()) {
    for (GradientSum& sum : sums) {
      sum.way =
          "each element is added to a float64 sum of a share of the rows, and those are "
          "added up in the end";
    }
    return sums;
  }
  if (const auto hopper = hopper_backward_tactic(facts, target, kernel)) {
    for (GradientSum& sum : sums) sum.way = hopper_way(*hopper, sum);
    return sums;
  }
  const std::optional<GradientTerms> terms = gradient_terms(facts);
  const std::int64_t most = terms ? portable_diagonals(*terms) : 0;
  const PortableTactic tiles = choose_backward_tactic(facts, target, kernel, most).tiles;
  std::int64_t diagonals = 0;
  for (GradientSum& sum : sums) {
    const bool is_one_too_many = sum.pattern == GradientPattern::difference && ++diagonals > most;
    sum.way = is_one_too_many ? kEachElement : portable_way(tiles, sum.pattern);
  }
  return sums;
}

}  // namespace tilewright
