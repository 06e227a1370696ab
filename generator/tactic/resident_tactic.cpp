#include "generator/tactic/resident_tactic.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"

namespace tilewright {
namespace {

constexpr std::int64_t kRowsOfThreeGroups = 192;  // 64 for each warpgroup that computes
constexpr std::int64_t kKvTile = 64;
constexpr std::int64_t kResidentTiles = 4;
// Wider heads leave no room for as many tiles of K and of V, narrower ones little to gain.
constexpr std::int64_t kNarrowest = 64;
constexpr std::int64_t kWidest = 128;
constexpr std::int64_t kUnitRows = 64;  // hopper/resident/work.hpp

// Reads of score_mod that each element makes for itself. Two of them spill with 152 registers a
// thread.
std::int64_t reads_of_elements(const SpecFacts& facts) {
  const std::vector<snippet::BufferRead> reads = facts.linear_reads();
  return std::count_if(reads.begin(), reads.end(),
                       [](const snippet::BufferRead& read) { return !read.is_hoistable; });
}

std::string why_not(const SpecFacts& facts) {
  const Spec& spec = facts.spec;
  if (!spec.is_packed()) return "layout must be \"packed\"";
  if (spec.is_paged()) return "k and v must be packed too, and are in pages";
  if (spec.tactic) return "the spec forces a tactic";
  if (spec.has_dropout()) return "it has no registers to draw what dropout keeps";
  if (size_of(spec.dtype) != 2 || spec.key_value_dtype() != spec.dtype) {
    return "q, k and v must have one dtype of 16 bits";
  }
  if (spec.value_head_dim() != spec.head_dim || spec.head_dim < kNarrowest ||
      spec.head_dim > kWidest) {
    return fmt::format("head_dim and v_head_dim must be equal, from {} to {}, and are {} and {}",
                       kNarrowest, kWidest, spec.head_dim, spec.value_head_dim());
  }
  if (facts.score_mod_loops()) return "a score_mod that loops leaves no registers";
  if (reads_of_elements(facts) > 1) {
    return "a score_mod with several reads at sums of q_idx and kv_idx leaves no registers";
  }
  // A unit's tiles are in one row of the tile map, and whole tiles in a block.
  if (spec.block[0] % kUnitRows != 0 || spec.block[1] % kKvTile != 0) {
    return fmt::format(
        "block[0] must be a multiple of {} and block[1] of {}, and they are {} and {}", kUnitRows,
        kKvTile, spec.block[0], spec.block[1]);
  }
  return {};
}

}  // namespace

std::optional<HopperTactic> resident_tactic(const SpecFacts& facts, const Target& target,
                                            const KernelVariant& kernel) {
  if (!kernel.is_forward() || kernel.rows != KernelRows::prefill) return {};
  if (!why_not(facts).empty()) return {};
  KernelVariant usual = kernel;
  usual.resident = false;
  usual.masked = !facts.spec.mask_mod.empty();  // a tile map has rows like a block mask's
  std::optional<HopperTactic> tactic = default_hopper_tactic(facts, target, usual);
  if (!tactic) return {};
  // docs/decisions/0095: the fastest of those that spill nothing.
  tactic->q_tile = kRowsOfThreeGroups;
  tactic->kv_tile = kKvTile;
  tactic->stages = kResidentTiles;
  tactic->q_stages = 2;
  tactic->take_turns = false;
  tactic->out_over_q = true;
  tactic->mask_unroll = 16;
  if (shared_bytes(facts.spec, *tactic) > shared_room(target)) return {};
  return tactic;
}

bool has_resident_kernel(const SpecFacts& facts, const Target& target,
                         const KernelVariant& kernel) {
  return resident_tactic(facts, target, kernel).has_value();
}

std::string why_not_resident(const SpecFacts& facts) {
  const std::string text = why_not(facts);
  return text.empty() ? "its tiles do not fit into shared memory" : text;
}

}  // namespace tilewright
