#include "generator/tactic/cuda_tactic.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/tactic/decode_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"
#include "generator/tactic/resident_tactic.hpp"
#include "generator/tactic/tactic_fields.hpp"

namespace tilewright {
namespace {

// In addition to the dynamic part, kernels have a little static shared memory.
constexpr std::int64_t kReservedSharedBytes = 1024;
// Shared memory of a block of threads: on sm_80, and on sm_90 and sm_100; the others have less.
constexpr std::int64_t kRoomOfA100 = 163 * 1024;
constexpr std::int64_t kRoomOfH100 = 227 * 1024;

// The greatest tile up to `limit` that divides the side of a block and is a multiple of `step`; 0
// where there is none.
std::int64_t largest_tile(std::int64_t side, std::int64_t limit, std::int64_t step) {
  std::int64_t best = 0;
  for (std::int64_t tile = step; tile <= std::min(side, limit); tile += step) {
    if (side % tile == 0) best = tile;
  }
  return best;
}

// Whether a warp owns tiles of 16 rows, as the products of tensor cores have them.
bool owns_row_tiles(const Spec& spec) {
  return uses_tensor_cores(spec) || uses_tf32(spec);
}

// Half a warp owns 4 rows in float32.
std::int64_t warps_of(const Spec& spec, std::int64_t q_tile, std::int64_t tiles_of_warp) {
  return owns_row_tiles(spec) ? q_tile / (16 * tiles_of_warp) : q_tile / 8;
}

// Whether snippets leave no registers for 128 x 64 at head_dim 128 where shared memory has room for
// it. What a whole head shares is read once, before the loop; on sm_100 that spills 8 bytes even
// so, and so does a mask_mod that divides or reads a scalar.
bool snippets_take_registers(const SpecFacts& facts, const Target& target) {
  if (facts.scales_kv_rows()) return true;
  if (facts.spec.has_dropout()) {
    // 128 x 64 leaves just enough for the draws, but with a mask_mod it spills 20 bytes.
    return target.sm() != 90 || !facts.spec.score_mod.empty() || !facts.spec.mask_mod.empty();
  }
  const ScoreModReads reads = facts.score_mod_reads();
  if (target.sm() == 90) return reads == ScoreModReads::more;
  return reads != ScoreModReads::none || !facts.spec.scalars.empty() || facts.mask_mod_divides();
}

// Tiles that a block of 128 x 128 gets.
struct Choice {
  std::int64_t q_tile, kv_tile, row_tiles, stages;
};

Choice float32_choice(std::int64_t width, std::int64_t room) {
  if (width <= 64) return {64, 64, 1, 1};
  if (width <= 128) return {64, room >= kRoomOfA100 ? 64 : 32, 1, 1};
  return room >= kRoomOfA100 ? Choice{64, 32, 1, 1} : Choice{32, 16, 1, 1};
}

// The accumulators take the registers that they take in 16 bits, and tiles twice the shared memory.
Choice tf32_choice(std::int64_t width, std::int64_t room) {
  if (width <= 64) return {128, 64, 2, 1};
  if (width <= 128) return {128, 32, 2, 1};
  if (width <= 192) return {64, 32, 1, 1};
  return {64, room >= kRoomOfA100 ? 32 : 16, 1, 1};
}

// docs/decisions/0008: what was the fastest of those that spill nothing.
Choice best_choice(const SpecFacts& facts, const Target& target) {
  const Spec& spec = facts.spec;
  const std::int64_t width = std::max(spec.tile_head_dim(), spec.tile_value_dim());
  const std::int64_t room = max_shared_bytes(target);
  if (uses_tf32(spec)) return tf32_choice(width, room);
  if (!uses_tensor_cores(spec)) return float32_choice(width, room);
  if (width <= 64) {
    // 128 x 64 spills on sm_120 with a bias of four dimensions, and on sm_100 with a trusted one.
    // So does dropout on sm_100, and together with a score_mod everywhere.
    const bool is_narrow = facts.scales_kv_rows() ||
                           (target.sm() >= 100 && facts.score_mod_reads() == ScoreModReads::more) ||
                           (spec.has_dropout() && (target.sm() >= 100 || !spec.score_mod.empty()));
    return {128, is_narrow ? 32 : 64, 2, 2};
  }
  if (width <= 96) return {128, 64, 2, 1};
  if (width <= 128) {
    const bool has_snippets = !spec.score_mod.empty() || !spec.mask_mod.empty();
    const bool is_wide = room >= kRoomOfH100   ? !snippets_take_registers(facts, target)
                         : room >= kRoomOfA100 ? !has_snippets
                                               : false;
    return {128, is_wide ? 64 : 32, 2, 1};
  }
  if (width <= 192) return {128, 64, 1, room >= kRoomOfA100 ? 2 : 1};
  if (room >= kRoomOfH100) return {64, 64, 1, 1};
  return {128, room >= kRoomOfA100 ? 64 : 32, 1, 1};
}

PortableTactic default_tactic(const SpecFacts& facts, const Target& target, std::int64_t side) {
  const Spec& spec = facts.spec;
  const Choice choice = best_choice(facts, target);
  std::int64_t tiles_of_warp = choice.row_tiles;
  std::int64_t q_tile = largest_tile(side, choice.q_tile, 16 * tiles_of_warp);
  if (q_tile == 0) {
    tiles_of_warp = 1;
    q_tile = largest_tile(side, choice.q_tile, 16);
  }
  const std::int64_t warps = warps_of(spec, q_tile, tiles_of_warp);
  const std::int64_t width = std::max(spec.tile_head_dim(), spec.tile_value_dim());
  const bool on_tensor_cores = owns_row_tiles(spec);
  // One warp with two tiles of rows spills with 64 columns of wider heads.
  const bool is_lone = on_tensor_cores && warps == 1 && tiles_of_warp > 1 && width > 64;
  const std::int64_t kv_limit =
      is_lone ? std::min<std::int64_t>(choice.kv_tile, 32) : choice.kv_tile;
  const bool keeps_q = uses_tensor_cores(spec) && tiles_of_warp == 1 && width <= 128;
  const std::int64_t blocks = on_tensor_cores ? std::clamp<std::int64_t>(8 / warps, 1, 4) : 1;
  return {.q_tile = q_tile,
          .kv_tile = largest_tile(spec.block[1], kv_limit, 16),
          .warps = warps,
          .stages = choice.stages,
          .q_in_registers = keeps_q,
          .blocks_per_sm = blocks,
          .mask_unroll = on_tensor_cores ? 8 : 4};
}

void check_warps(const Spec& spec, const PortableTactic& tactic) {
  const auto [q_tile, warps] = std::pair(tactic.q_tile, tactic.warps);
  if (!owns_row_tiles(spec)) {
    if (warps == q_tile / 8) return;
    fail_tactic(
        fmt::format("warps is {}; in float32 a warp owns 8 rows of q, so q_tile {} needs {}", warps,
                    q_tile, q_tile / 8));
  }
  const bool whole = warps >= 1 && q_tile % (16 * warps) == 0;
  if (whole && q_tile / (16 * warps) <= 4) return;
  fail_tactic(fmt::format("warps is {}, but each must own 16, 32, 48 or 64 of q_tile's {} rows",
                          warps, q_tile));
}

void check(const Spec& spec, std::int64_t side, const PortableTactic& tactic) {
  require_divides("q_tile", tactic.q_tile, "block[0]", side);
  // A thread's row of a tile is one word of bits.
  if (owns_row_tiles(spec)) require_range("kv_tile", tactic.kv_tile, 16, 128, 16);
  require_divides("kv_tile", tactic.kv_tile, "block[1]", spec.block[1]);
  check_warps(spec, tactic);
}

template <typename T>
void check_room(const Spec& spec, const Target& target, const T& tactic) {
  const std::int64_t bytes = shared_bytes(spec, tactic);
  if (bytes <= shared_room(target)) return;
  fail_tactic(fmt::format("{} needs {} bytes of shared memory; a block of threads on {} has {}",
                          Tactic{tactic}.describe(), bytes, target.name(), shared_room(target)),
              "force smaller tiles or fewer stages");
}

// The tactic "hopper" where that can serve and nothing else is forced.
std::optional<HopperTactic> hopper_tactic(const SpecFacts& facts, const Target& target,
                                          const KernelVariant& kernel) {
  const std::optional<TacticSpec>& forced = facts.spec.tactic;
  std::optional<HopperTactic> tactic = default_hopper_tactic(facts, target, kernel);
  if (!tactic || !forced) return tactic;
  if (forced->name == kPortable) return {};
  if (forced->name == kHopper) {
    force_fields(*forced, *tactic);
    follow_forced(facts, kernel, *forced, shared_room(target), *tactic);
    if (kernel.split && kernel.masked && spans_two_blocks(facts.spec, *tactic)) return {};
  }
  return tactic;
}

void force(const Spec& spec, const TacticSpec& forced, PortableTactic& tactic) {
  force_fields(forced, tactic);
  const bool follows = forced.parameters.contains("q_tile") && !forced.parameters.contains("warps");
  if (follows) tactic.warps = warps_of(spec, tactic.q_tile, 1);
}

[[noreturn]] void refuse_name(const SpecFacts& facts, const Target& target,
                              const KernelVariant& kernel) {
  const Spec& spec = facts.spec;
  std::vector<std::string> names = {std::string(kPortable)};
  const std::string why_not = why_not_hopper(facts, target, kernel);
  if (why_not.empty()) names.emplace_back(kHopper);
  const std::string& given = spec.tactic->name;
  const std::string reason = given == kHopper ? ": " + why_not : "";
  const std::string hint = given == kCpu ? "\"cpu\" is the tactic of CPUs"
                           : given == kHopper
                               ? "leave the tactic out, and the fastest that serves is chosen"
                               : did_you_mean(given, all_tactic_names());
  fail_tactic(fmt::format("there is no \"{}\" for this spec on {}, allowed is {}{}", given,
                          target.name(), one_of(names), reason),
              hint);
}

// A tile map has rows like a block mask's.
KernelVariant with_tile_map(const Spec& spec, KernelVariant kernel) {
  kernel.masked |= spec.is_packed() && !spec.mask_mod.empty();
  return kernel;
}

}  // namespace

bool has_split_kernel(const SpecFacts& facts, const Target& target, KernelVariant kernel) {
  if (target.is_cpu() || !kernel.is_forward() || kernel.rows == KernelRows::decode) return false;
  kernel.split = true;
  return hopper_tactic(facts, target, with_tile_map(facts.spec, kernel)).has_value();
}

bool uses_tensor_cores(const Spec& spec) {
  const DType kv = spec.key_value_dtype();
  return size_of(spec.dtype) == 2 && (kv == spec.dtype || is_quantised(kv));
}

bool multiplies_float8(const Spec& spec) {
  return spec.dtype == DType::f8e4m3 && spec.key_value_dtype() == DType::f8e4m3;
}

bool uses_tf32(const Spec& spec) {
  return spec.f32_products == F32Products::tf32 && !uses_tensor_cores(spec) && !spec.pads_rows();
}

std::int64_t row_tiles(const Spec& spec, const PortableTactic& tactic) {
  return owns_row_tiles(spec) ? tactic.q_tile / (16 * tactic.warps) : 1;
}

std::int64_t shared_bytes(const Spec& spec, const PortableTactic& tactic) {
  const std::int64_t q_tile = tactic.q_tile;
  const std::int64_t kv_rows = tactic.stages * tactic.kv_tile;
  if (uses_tensor_cores(spec)) {
    const std::int64_t head = round_up(spec.tile_head_dim(), 16);
    const std::int64_t value = round_up(spec.tile_value_dim(), 16);
    return 2 * (q_tile * head + kv_rows * (head + value));
  }
  if (uses_tf32(spec)) {
    return 4 * (q_tile * spec.tile_head_dim() +
                kv_rows * (spec.tile_head_dim() + spec.tile_value_dim()));
  }
  const std::int64_t head = spec.tile_head_dim() + 4;
  const std::int64_t value = round_up(spec.tile_value_dim(), 64);
  return 4 * (q_tile * head + kv_rows * (head + value) + q_tile * (tactic.kv_tile + 4));
}

std::int64_t max_shared_bytes(const Target& target) {
  switch (target.sm()) {
    case 80:
    case 87:
      return kRoomOfA100;
    case 90:
    case 100:
    case 103:
    case 110:
      return kRoomOfH100;
    default:
      return 99 * 1024;  // 86, 88, 89, 120, 121
  }
}

std::int64_t shared_room(const Target& target) {
  return max_shared_bytes(target) - kReservedSharedBytes;
}

std::int64_t plan_row_side(const SpecFacts& facts, const Target& target) {
  const Spec& spec = facts.spec;
  if (spec.is_packed() && spec.mask_mod.empty() && !target.is_cpu()) {
    const std::optional<HopperTactic> hopper = hopper_tactic(facts, target, {.aligned = true});
    if (hopper && spec.block[0] % hopper->q_tile != 0) return hopper->q_tile;
  }
  return spec.block[0];
}

std::int64_t plan_work_side(const SpecFacts& facts, const Target& target) {
  const std::int64_t side = plan_row_side(facts, target);
  if (facts.spec.is_packed() && !facts.spec.mask_mod.empty() && !target.is_cpu()) {
    const std::optional<HopperTactic> hopper =
        hopper_tactic(facts, target, {.masked = true, .aligned = true});
    if (hopper && side % hopper->q_tile != 0) return hopper->q_tile;
  }
  return side;
}

Tactic choose_cuda_tactic(const SpecFacts& facts, const Target& target,
                          const KernelVariant& variant) {
  const Spec& spec = facts.spec;
  if (variant.rows == KernelRows::decode) return {decode_tactic(spec, target)};
  if (variant.resident) {
    if (const std::optional<HopperTactic> tactic = resident_tactic(facts, target, variant)) {
      return {*tactic};
    }
    throw Error(ErrorCode::usage,
                fmt::format("this spec has no kernel \"{}\" on {}", variant.name(), target.name()),
                "Hopper has it for packed k and v of 16 bits, head dims from 64 to 128");
  }
  const KernelVariant kernel = with_tile_map(spec, variant);
  const std::optional<TacticSpec>& forced = spec.tactic;
  if (const std::optional<HopperTactic> hopper = hopper_tactic(facts, target, kernel)) {
    if (forced && forced->name != kHopper) refuse_name(facts, target, kernel);
    check(spec, kernel, *hopper);
    check_room(spec, target, *hopper);
    return {*hopper};
  }
  if (variant.split) {
    throw Error(ErrorCode::usage,
                fmt::format("this spec has no kernel \"{}\" on {}", variant.name(), target.name()),
                "Hopper's kernel alone splits q tiles");
  }
  // Its q tiles have rows of one row of tiles, and fill an entry of a plan's work.
  const std::int64_t side = std::gcd(plan_row_side(facts, target), plan_work_side(facts, target));
  PortableTactic portable = default_tactic(facts, target, side);
  // What needs aligned tensors does not concern the kernels for others.
  if (forced && (forced->name != kHopper || kernel.aligned)) {
    if (forced->name != kPortable) refuse_name(facts, target, kernel);
    force(spec, *forced, portable);
  }
  check(spec, side, portable);
  check_room(spec, target, portable);
  return {portable};
}

}  // namespace tilewright
