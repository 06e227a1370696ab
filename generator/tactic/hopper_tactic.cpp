#include "generator/tactic/hopper_tactic.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/tactic_fields.hpp"

namespace tilewright {
namespace {

// Rows of q that a warpgroup owns, and bytes of a panel's row: hopper/layout.hpp.
constexpr std::int64_t kGroupRows = 64;
constexpr std::int64_t kPanelRowBytes = 128;
constexpr std::int64_t kCopiedBytes = 16;  // of which the copy engine takes multiples alone
// With four warpgroups, three of which compute or one widens, ptxas gives each thread 128
// registers. A product that is wider than this holds more of out than fits next to its operands,
// and does not compile: a block then has three.
constexpr std::int64_t kWidestValueOfFourGroups = 192;
// Barriers and announcements after the tiles.
constexpr std::int64_t kControlBytes = 1024;
// Below this a product is too short to hide other work.
constexpr std::int64_t kLeastKvTile = 64;
constexpr std::int64_t kNarrowKvTile = 128;
// The greatest that leaves registers for heads of more than 64 on three warpgroups.
constexpr std::int64_t kShortKvTile = 80;

// The greatest of products of 8 bits that leaves registers for heads of more than 64 on three
// warpgroups, and of more than 128 on two.
constexpr std::int64_t kEightBitKvTile = 96;

// Tiles of K and of V under way: products take two. Small ones leave room for more.
constexpr std::int64_t kLeastStages = 2;
constexpr std::int64_t kMostStages = 4;

// Of which a merged kv tile is a multiple: hopper/two_block_tiles.hpp.
constexpr std::int64_t kMergedKvStep = 128;

std::int64_t panels(std::int64_t columns, DType dtype) {
  return ceil_div(columns, kPanelRowBytes / static_cast<std::int64_t>(size_of(dtype)));
}

// Whether k and v have one byte, and q 16 bits: a warpgroup widens them.
bool widens(const Spec& spec) {
  return is_quantised(spec.key_value_dtype()) && size_of(spec.dtype) == 2;
}

// Bytes of a row of q, k, v or out that are no multiple of the 16 that the copy engine wants from
// one row to the next; 0 where there are none. Rows of one-byte elements alone can be such.
std::int64_t uneven_row_bytes(const Spec& spec) {
  const auto bytes = [](std::int64_t columns, DType dtype) {
    return columns * static_cast<std::int64_t>(size_of(dtype));
  };
  const std::int64_t head = spec.head_dim, value = spec.value_head_dim();
  for (const std::int64_t row :
       {bytes(head, spec.dtype), bytes(head, spec.key_value_dtype()),
        bytes(value, spec.key_value_dtype()), bytes(value, spec.output_dtype())}) {
    if (row % kCopiedBytes != 0) return row;
  }
  return 0;
}

// Whether a tile may have rows of two dtypes.
bool mixes_new_rows(const Spec& spec) {
  return spec.kv_new && spec.key_value_dtype() != spec.dtype;
}

// What looks up pages of bytes leaves no registers to draw what dropout keeps.
bool draws_over_widened_pages(const Spec& spec) {
  return spec.has_dropout() && spec.is_paged() && widens(spec);
}

// Steps of kv tiles: rows of V that one product takes.
std::int64_t kv_step(const Spec& spec) {
  return multiplies_float8(spec) ? 32 : 16;
}

bool divides(std::int64_t tile, std::int64_t side, const KernelVariant& kernel) {
  return !kernel.masked || side % tile == 0;
}

// Whether a q tile may cover a block's rows and those of one more warpgroup: wherever it begins,
// its rows are of two blocks, and each warpgroup's of one.
bool can_merge(const Spec& spec, std::int64_t q_tile, std::int64_t kv_tile) {
  const std::int64_t side = spec.block[0];
  return side % kGroupRows == 0 && q_tile == side + kGroupRows && kv_tile > 0 &&
         kv_tile % kMergedKvStep == 0;
}

// Of the q tiles that are no greater than 128 rows.
std::int64_t dividing_q_tile(const Spec& spec, const KernelVariant& kernel) {
  return divides(2 * kGroupRows, spec.block[0], kernel) ? 2 * kGroupRows : kGroupRows;
}

// The greatest tile up to `limit` that divides the side of a mask's block.
std::int64_t largest_kv_tile(const Spec& spec, const KernelVariant& kernel, std::int64_t limit) {
  const std::int64_t step = kv_step(spec);
  std::int64_t tile = limit / step * step;
  while (tile > 0 && !divides(tile, spec.block[1], kernel)) tile -= step;
  return tile;
}

// A kv tile for wider heads on three warpgroups: 80 or 64. Where several of 80 make a block of the
// mask, the planner divides by 80, and spills.
bool has_short_kv_tile(const Spec& spec, const KernelVariant& kernel) {
  const std::int64_t tile = largest_kv_tile(spec, kernel, kShortKvTile);
  return tile == 64 || (tile == kShortKvTile && (!kernel.masked || spec.block[1] == tile));
}

// Whether a kernel asks mask_mod about every element of every tile.
bool asks_mask_of_elements(const Spec& spec, const KernelVariant& kernel) {
  return !spec.mask_mod.empty() && !kernel.masked && !spec.is_packed();
}

// Whether all that elements read for themselves is in the value by the difference of indices, which
// a warp finds side by side.
bool takes_all_by_difference(const SpecFacts& facts, const KernelVariant& kernel) {
  if (!facts.difference || asks_mask_of_elements(facts.spec, kernel)) return false;
  const std::vector<snippet::BufferRead>& others = facts.difference->rest.reads;
  return std::all_of(others.begin(), others.end(),
                     [](const snippet::BufferRead& read) { return read.is_hoistable; });
}

// Tables that score_mod reads at indices that are sums. What all elements with the same difference
// of indices share stays in the first level of the cache; a table with an element for each score
// comes from memory, for which tiles of 128 x 128 wait less. The values of a second table do not
// fit next to the accumulators of three warpgroups, nor do a mask's bits next to those of one.
bool reads_suit_three_groups(const SpecFacts& facts, const KernelVariant& kernel,
                             std::int64_t width) {
  if (facts.score_mod_reads() != ScoreModReads::more) return true;
  if (!kernel.masked && takes_all_by_difference(facts, kernel)) return true;
  const std::vector<snippet::BufferRead> reads = facts.linear_reads();
  if (width <= 64) return reads.size() < 2;
  return reads.size() == 1 && !reads.front().has_own_element && !kernel.masked;
}

// docs/decisions/0016: the fastest on an H200 of those that spill nothing.
std::int64_t kv_tile_limit(const SpecFacts& facts, std::int64_t q_tile, std::int64_t width) {
  // A loop is unrolled for every element of a fragment, whose values then crowd out the
  // accumulators.
  if (facts.score_mod_loops()) return 64;
  if (width <= 64) return kNarrowKvTile;
  if (widens(facts.spec) && width > 128) return 64;  // of shared memory
  // Weights of 8 bits take half the registers of those of 16.
  if (multiplies_float8(facts.spec)) {
    return width <= 128 && q_tile < 3 * kGroupRows ? 128 : kEightBitKvTile;
  }
  if (width <= 128) return q_tile == 3 * kGroupRows ? kShortKvTile : 128;
  return width <= 192 ? 112 : 80;
}

// Whether a q tile of so many rows is better than one that divides the mask's blocks. Masks that
// read buffers have short rows (documents), of which it visits more than it gains:
// docs/decisions/0034.
bool is_worth_merging(const SpecFacts& facts, const KernelVariant& kernel, std::int64_t q_tile,
                      std::int64_t width) {
  const Spec& spec = facts.spec;
  if (!kernel.masked) return false;
  if (width > (q_tile == 3 * kGroupRows ? 64 : 128)) return false;
  const std::int64_t kv_tile = largest_kv_tile(spec, kernel, kv_tile_limit(facts, q_tile, width));
  if (!can_merge(spec, q_tile, kv_tile)) return false;
  return q_tile == 2 * kGroupRows || spec.mask_mod.empty() || !facts.mask_mod_reads();
}

// Three warpgroups that compute hide what each of them waits for better than two. They leave a
// thread 160 registers: enough for narrow heads, and for short kv tiles where score_mod needs few.
bool suits_three_groups(const SpecFacts& facts, const KernelVariant& kernel, std::int64_t width) {
  const Spec& spec = facts.spec;
  // They leave too few registers to threads that look up pages, or draw what dropout keeps.
  if (spec.is_paged() || spec.has_dropout()) return false;
  if (widens(spec) && width > 64) return false;
  if (!divides(3 * kGroupRows, spec.block[0], kernel) &&
      !is_worth_merging(facts, kernel, 3 * kGroupRows, width)) {
    return false;
  }
  if (!reads_suit_three_groups(facts, kernel, width)) return false;
  if (width <= 64) return true;
  // Measured without a score_mod alone: 1.1 times as fast.
  if (multiplies_float8(spec)) {
    return width <= 128 && divides(kEightBitKvTile, spec.block[1], kernel) &&
           spec.score_mod.empty();
  }
  return width <= 128 && has_short_kv_tile(spec, kernel) && !facts.score_mod_loops();
}

std::int64_t default_q_tile(const SpecFacts& facts, const KernelVariant& kernel,
                            std::int64_t width) {
  if (suits_three_groups(facts, kernel, width)) return 3 * kGroupRows;
  if (is_worth_merging(facts, kernel, 2 * kGroupRows, width)) return 2 * kGroupRows;
  return dividing_q_tile(facts.spec, kernel);
}

// Products of 8 bits leave the tensor cores idle for so long that turns cost narrow heads 3 %, and
// q tiles of 192 rows 2 %. With wide heads split calls have no registers for them.
bool eight_bits_gain_by_turns(const KernelVariant& kernel, std::int64_t width,
                              bool has_heavy_score_mod) {
  if (width > 128) return !kernel.split;
  return width > 64 && !kernel.masked && has_heavy_score_mod;
}

// Three warpgroups that ask mask_mod about every element spill with it, and so do split calls of
// the widest heads.
bool has_registers_for_difference(const Spec& spec, const KernelVariant& kernel,
                                  const HopperTactic& tactic) {
  if (asks_mask_of_elements(spec, kernel) && tactic.q_tile == 3 * kGroupRows) return false;
  return !kernel.split || std::max(spec.head_dim, spec.value_head_dim()) <= 192;
}

void fit_stages(const Spec& spec, std::int64_t room, HopperTactic& tactic) {
  while (tactic.stages > kLeastStages && shared_bytes(spec, tactic) > room) --tactic.stages;
}

}  // namespace

std::optional<HopperTactic> default_hopper_tactic(const SpecFacts& facts, const Target& target,
                                                  const KernelVariant& kernel) {
  const Spec& spec = facts.spec;
  const bool eight_bits = multiplies_float8(spec);
  if (target.name() != "sm_90a" || !kernel.aligned) return {};
  if (!uses_tensor_cores(spec) && !eight_bits) return {};
  if (spec.pads_rows() || uneven_row_bytes(spec) != 0) return {};
  if (draws_over_widened_pages(spec)) return {};
  if (mixes_new_rows(spec) || spec.is_paged_x() || facts.scales_kv_rows()) return {};
  if (spec.key_value_dtype() != spec.dtype && !widens(spec)) return {};
  if (eight_bits && spec.is_paged()) return {};
  const std::int64_t width = std::max(spec.head_dim, spec.value_head_dim());
  std::int64_t q_tile = default_q_tile(facts, kernel, width);
  if (kernel.split && !divides(q_tile, spec.block[0], kernel)) {
    if (spec.is_packed()) return {};  // an entry of a plan's work has rows of two blocks
    q_tile = dividing_q_tile(spec, kernel);
  }
  const std::int64_t kv_tile = largest_kv_tile(spec, kernel, kv_tile_limit(facts, q_tile, width));
  if (kv_tile < kLeastKvTile) return {};
  const bool fits = divides(q_tile, spec.block[0], kernel) || can_merge(spec, q_tile, kv_tile);
  if (!fits) return {};
  const bool is_wide = width > 128;
  const bool is_narrow = width <= 64;
  const bool has_one_q = is_wide || (widens(spec) && !is_narrow);
  const bool has_three_groups = q_tile == 3 * kGroupRows;
  const bool has_slope = facts.has_slope();
  // A slope takes next to nothing from the softmax (docs/decisions/0030).
  const bool has_heavy_score_mod = !spec.score_mod.empty() && !has_slope;
  const bool gains_by_turns =
      kernel.masked ? is_wide || has_three_groups : is_narrow || has_heavy_score_mod;
  const bool takes_turns =
      q_tile > kGroupRows &&
      (eight_bits ? eight_bits_gain_by_turns(kernel, width, has_heavy_score_mod) : gains_by_turns);
  // A loop that evaluates mask_mod for every tile has fewer registers for it than one that seldom
  // does, and a slope takes some of them.
  const std::int64_t few_at_once = has_slope ? 2 : 4;
  const std::int64_t mask_unroll = has_three_groups && !kernel.masked ? few_at_once : 8;
  HopperTactic tactic{.q_tile = q_tile,
                      .kv_tile = kv_tile,
                      .stages = eight_bits && !is_wide ? kMostStages : kLeastStages,
                      .q_stages = has_one_q ? 1 : 2,
                      .take_turns = takes_turns,
                      .persistent = true,
                      .out_over_q = has_one_q,
                      .mask_unroll = mask_unroll,
                      .bounded_waits = false,
                      .launch_counters = 1024};
  fit_stages(spec, shared_room(target), tactic);
  return tactic;
}

std::string why_not_hopper(const SpecFacts& facts, const Target& target,
                           const KernelVariant& kernel) {
  const Spec& spec = facts.spec;
  if (default_hopper_tactic(facts, target, kernel)) return {};
  if (target.name() != "sm_90a") return "it is for sm_90a alone";
  if (size_of(spec.dtype) != 2 && !multiplies_float8(spec)) {
    return fmt::format("its products are of f16, bf16 or f8e4m3, and dtype is {}",
                       to_string(spec.dtype));
  }
  if (spec.key_value_dtype() != spec.dtype && !widens(spec)) {
    return fmt::format("q and k must have one dtype, or k one byte, and kv_dtype is {}",
                       to_string(spec.key_value_dtype()));
  }
  if (spec.pads_rows()) return "head_dim and v_head_dim must be multiples of 8 from 16 on";
  if (const std::int64_t bytes = uneven_row_bytes(spec)) {
    return fmt::format("rows must be multiples of 16 bytes, and some have {}", bytes);
  }
  if (draws_over_widened_pages(spec)) {
    return "with dropout it has no registers for pages of one byte";
  }
  if (mixes_new_rows(spec)) return "its tiles have rows of one dtype: new rows or those of pages";
  if (spec.is_paged_x()) return "it does not load pages of kv_layout \"paged_x\"";
  if (multiplies_float8(spec) && spec.is_paged()) return "it does not turn V of 8 bits in pages";
  if (!kernel.aligned) return "its tensors must begin at multiples of 16 bytes";
  if (facts.scales_kv_rows()) {
    return spec.kv_new
               ? "new rows have no scale, and it has no registers for one of each row of k or v"
               : "it has no registers for a scale of each row of k or v, which k_scale or "
                 "v_scale names";
  }
  const std::int64_t limit = kv_tile_limit(facts, dividing_q_tile(spec, kernel),
                                           std::max(spec.head_dim, spec.value_head_dim()));
  if (largest_kv_tile(spec, kernel, limit) < kLeastKvTile) {
    const std::string columns = limit == kLeastKvTile
                                    ? std::to_string(limit)
                                    : fmt::format("{} to {}", kLeastKvTile, limit);
    return fmt::format("no kv tile of {} columns divides block[1], which is {}", columns,
                       spec.block[1]);
  }
  return fmt::format("no q tile of 64, 128 or 192 rows divides block[0], which is {}",
                     spec.block[0]);
}

void follow_forced(const SpecFacts& facts, const KernelVariant& kernel, const TacticSpec& forced,
                   std::int64_t room, HopperTactic& tactic) {
  const Spec& spec = facts.spec;
  const auto is_free = [&](const char* name) { return !forced.parameters.contains(name); };
  const std::int64_t width = std::max(spec.head_dim, spec.value_head_dim());
  std::int64_t& q_tile = tactic.q_tile;
  std::int64_t& kv_tile = tactic.kv_tile;
  if (is_free("q_tile") && kv_tile > kv_tile_limit(facts, q_tile, width)) {
    q_tile = std::min(q_tile, 2 * kGroupRows);
  }
  if (is_free("kv_tile")) {
    kv_tile = largest_kv_tile(spec, kernel, kv_tile_limit(facts, q_tile, width));
  }
  const bool fits = divides(q_tile, spec.block[0], kernel) || can_merge(spec, q_tile, kv_tile);
  if (is_free("q_tile") && !fits) q_tile = dividing_q_tile(spec, kernel);
  if (is_free("take_turns") && q_tile == kGroupRows) tactic.take_turns = false;
  if (is_free("stages")) fit_stages(spec, room, tactic);
  if (is_free("q_stages") && shared_bytes(spec, tactic) > room) tactic.q_stages = 1;
}

void check(const Spec& spec, const KernelVariant& kernel, const HopperTactic& tactic) {
  if (kernel.masked) {
    require_divides("kv_tile", tactic.kv_tile, "block[1]", spec.block[1]);
    if (!can_merge(spec, tactic.q_tile, tactic.kv_tile)) {
      require_divides("q_tile", tactic.q_tile, "block[0]", spec.block[0]);
    }
  }
  const std::int64_t value = spec.value_head_dim();
  if (tactic.q_tile == 3 * kGroupRows && value > kWidestValueOfFourGroups) {
    fail_tactic(fmt::format("q_tile is 192, but with v_head_dim {} that leaves a thread too few "
                            "registers",
                            value),
                "force 128 or 64, or leave q_tile out");
  }
  if (widens(spec) && spec.is_paged() && tactic.q_tile == 3 * kGroupRows) {
    fail_tactic(
        "q_tile is 192, but that leaves too few registers to warps that widen k and v of one "
        "byte and look pages up",
        "force 128 or 64, or leave q_tile out");
  }
  if (tactic.kv_tile % kv_step(spec) != 0) {
    fail_tactic(fmt::format("kv_tile is {}, but products of {} take {} rows of v at a time",
                            tactic.kv_tile, to_string(spec.dtype), kv_step(spec)));
  }
  if (tactic.take_turns && tactic.q_tile == kGroupRows) {
    fail_tactic("take_turns is 1, but with q_tile 64 there is only one warpgroup to compute");
  }
}

std::int64_t page_box_panels(std::int64_t width, DType dtype) {
  const std::int64_t columns = kPanelRowBytes / static_cast<std::int64_t>(size_of(dtype));
  return width % columns == 0 ? width / columns : 1;
}

std::string_view prepared_tiles(const Spec& spec) {
  if (multiplies_float8(spec)) return "turned_values";
  return widens(spec) ? "widened_tiles" : "brought_tiles";
}

std::int64_t preparing_groups(const Spec& spec, const HopperTactic& tactic) {
  const std::int64_t most_groups = spec.value_head_dim() > kWidestValueOfFourGroups ? 3 : 4;
  const std::int64_t others = 1 + tactic.q_tile / kGroupRows;  // which bring tiles and compute
  return widens(spec) && others < most_groups ? 1 : 0;
}

bool prepares_in_turns(const Spec& spec, const HopperTactic& tactic) {
  if (!widens(spec)) return false;
  const std::int64_t width = std::max(spec.head_dim, spec.value_head_dim());
  return width <= 64 || preparing_groups(spec, tactic) == 0;
}

std::int64_t preparers(const Spec& spec, const HopperTactic& tactic) {
  const bool shares = prepares_in_turns(spec, tactic) && preparing_groups(spec, tactic) > 0;
  return shares && tactic.kv_tile % 32 == 0 ? 4 : 2;
}

std::int64_t brought_stages(const Spec& spec, const HopperTactic& tactic) {
  const std::int64_t width = std::max(spec.head_dim, spec.value_head_dim());
  return widens(spec) ? std::min<std::int64_t>(tactic.stages, width > 128 ? 1 : 2) : tactic.stages;
}

std::optional<std::int64_t> difference_bytes(const SpecFacts& facts, const Target& target,
                                             const KernelVariant& kernel,
                                             const HopperTactic& tactic) {
  constexpr std::int64_t kRowsOfWarp = 16;
  if (!facts.difference || !has_registers_for_difference(facts.spec, kernel, tactic)) return {};
  const std::int64_t of_warp = warp_difference_bytes(tactic.kv_tile);
  const bool stages_out = size_of(facts.spec.output_dtype()) == 2 && !tactic.out_over_q;
  if (stages_out && of_warp <= kRowsOfWarp * kPanelRowBytes) return 0;
  const std::int64_t bytes = tactic.q_tile / kRowsOfWarp * of_warp;
  const bool fits = shared_bytes(facts.spec, tactic) + bytes <= shared_room(target);
  return fits ? std::optional(bytes) : std::nullopt;
}

std::int64_t warp_difference_bytes(std::int64_t columns) {
  const std::int64_t pitch = columns + (columns % 32 == 0 ? 16 : 32);
  return 2 * pitch * 4;
}

bool spans_two_blocks(const Spec& spec, const HopperTactic& tactic) {
  return spec.block[0] % tactic.q_tile != 0;
}

std::int64_t shared_bytes(const Spec& spec, const HopperTactic& tactic) {
  const std::int64_t head = panels(spec.head_dim, spec.dtype);
  const std::int64_t value = panels(spec.value_head_dim(), spec.dtype);
  const std::int64_t out = panels(spec.value_head_dim(), DType::bf16);
  const bool stages_out = size_of(spec.output_dtype()) == 2;
  const bool over_q = tactic.out_over_q;
  const std::int64_t q_panels = stages_out && over_q ? std::max(head, out) : head;
  const std::int64_t out_panels = stages_out && !over_q ? out : 0;
  // V of 8 bits is there as it came, and turned, a row for each column.
  const std::int64_t turned = multiplies_float8(spec) ? round_up(spec.value_head_dim(), 16) : 0;
  const std::int64_t rows = tactic.q_tile * (tactic.q_stages * q_panels + out_panels) +
                            tactic.stages * (tactic.kv_tile * (head + value) + turned) +
                            (widens(spec) ? brought_stages(spec, tactic) : 0) * tactic.kv_tile *
                                (panels(spec.head_dim, spec.key_value_dtype()) +
                                 panels(spec.value_head_dim(), spec.key_value_dtype()));
  return rows * kPanelRowBytes + kControlBytes;
}

}  // namespace tilewright
