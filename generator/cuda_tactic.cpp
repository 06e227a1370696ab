#include "generator/cuda_tactic.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/snippet.hpp"

namespace tilewright {
namespace {

constexpr std::string_view kPortable = "portable";
// Beside the dynamic part, kernels have a little static shared memory.
constexpr std::int64_t kReservedSharedBytes = 1024;
// Shared memory of a block of threads: on sm_80, and on sm_90 and sm_100; the others have less.
constexpr std::int64_t kRoomOfA100 = 163 * 1024;
constexpr std::int64_t kRoomOfH100 = 227 * 1024;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::int64_t get(const Tactic& tactic, const char* name) {
  return tactic.parameters.at(name);
}

// The greatest tile up to `limit` that divides the side of a block and is a multiple of `step`; 0
// where there is none.
std::int64_t largest_tile(std::int64_t side, std::int64_t limit, std::int64_t step) {
  std::int64_t best = 0;
  for (std::int64_t tile = step; tile <= std::min(side, limit); tile += step) {
    if (side % tile == 0) best = tile;
  }
  return best;
}

// Half a warp owns 4 rows in float32.
std::int64_t warps_of(const Spec& spec, std::int64_t q_tile, std::int64_t tiles_of_warp) {
  return uses_tensor_cores(spec) ? q_tile / (16 * tiles_of_warp) : q_tile / 8;
}

bool score_mod_reads_buffers(const Spec& spec) {
  if (spec.score_mod.empty() || spec.buffers.empty()) return false;
  const Snippet snippet = check_snippet(SnippetKind::score_mod, spec.score_mod);
  return std::any_of(spec.buffers.begin(), spec.buffers.end(),
                     [&](const auto& buffer) { return snippet.mentions(buffer.first); });
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

// docs/decisions/0008: what was the fastest of those that spill nothing.
Choice best_choice(const Spec& spec, const Target& target) {
  const std::int64_t width = std::max(spec.head_dim, spec.value_head_dim());
  const std::int64_t room = max_shared_bytes(target);
  if (!uses_tensor_cores(spec)) return float32_choice(width, room);
  if (width <= 64) return {128, 64, 2, 2};
  if (width <= 96) return {128, 64, 2, 1};
  if (width <= 128) {
    const bool has_snippets = !spec.score_mod.empty() || !spec.mask_mod.empty();
    const bool is_wide = room >= kRoomOfH100   ? !score_mod_reads_buffers(spec)
                         : room >= kRoomOfA100 ? !has_snippets
                                               : false;
    return {128, is_wide ? 64 : 32, 2, 1};
  }
  if (width <= 192) return {128, 64, 1, room >= kRoomOfA100 ? 2 : 1};
  if (room >= kRoomOfH100) return {64, 64, 1, 1};
  return {128, room >= kRoomOfA100 ? 64 : 32, 1, 1};
}

Tactic default_tactic(const Spec& spec, const Target& target) {
  const Choice choice = best_choice(spec, target);
  std::int64_t tiles_of_warp = choice.row_tiles;
  std::int64_t q_tile = largest_tile(spec.block[0], choice.q_tile, 16 * tiles_of_warp);
  if (q_tile == 0) {
    tiles_of_warp = 1;
    q_tile = largest_tile(spec.block[0], choice.q_tile, 16);
  }
  const std::int64_t warps = warps_of(spec, q_tile, tiles_of_warp);
  const std::int64_t width = std::max(spec.head_dim, spec.value_head_dim());
  const bool on_tensor_cores = uses_tensor_cores(spec);
  const bool keeps_q = on_tensor_cores && tiles_of_warp == 1 && width <= 128;
  const std::int64_t blocks = on_tensor_cores ? std::clamp<std::int64_t>(8 / warps, 1, 4) : 1;
  return {.name = std::string(kPortable),
          .parameters = {{"q_tile", q_tile},
                         {"kv_tile", largest_tile(spec.block[1], choice.kv_tile, 16)},
                         {"warps", warps},
                         {"stages", choice.stages},
                         {"q_in_registers", keeps_q ? 1 : 0},
                         {"blocks_per_sm", blocks},
                         {"mask_unroll", on_tensor_cores ? 8 : 4}}};
}

[[noreturn]] void fail(std::string message, std::string hint = {}) {
  throw Error(ErrorCode::spec, "tactic: " + std::move(message), std::move(hint));
}

void require_range(const Tactic& tactic, const char* name, std::int64_t least,
                   std::int64_t greatest) {
  const std::int64_t value = get(tactic, name);
  if (value >= least && value <= greatest) return;
  fail(fmt::format("{} is {}, allowed are {} to {}", name, value, least, greatest));
}

void check_tile(const Tactic& tactic, const char* name, const char* side_name, std::int64_t side,
                std::int64_t greatest) {
  const std::int64_t tile = get(tactic, name);
  if (tile < 16 || tile > greatest || tile % 16 != 0) {
    fail(fmt::format("{} is {}, allowed are multiples of 16 from 16 to {}", name, tile, greatest));
  }
  if (side % tile != 0) {
    fail(fmt::format("{} is {}, which does not divide {} = {}", name, tile, side_name, side),
         "leave it out or change block");
  }
}

void check_warps(const Spec& spec, const Tactic& tactic) {
  const std::int64_t q_tile = get(tactic, "q_tile");
  const std::int64_t warps = get(tactic, "warps");
  if (!uses_tensor_cores(spec)) {
    if (warps == q_tile / 8) return;
    fail(fmt::format("warps is {}; in float32 a warp owns 8 rows of q, so q_tile {} needs {}",
                     warps, q_tile, q_tile / 8));
  }
  const bool whole = warps >= 1 && q_tile % (16 * warps) == 0;
  if (whole && q_tile / (16 * warps) <= 4) return;
  fail(fmt::format("warps is {}, but each must own 16, 32, 48 or 64 of q_tile's {} rows", warps,
                   q_tile));
}

void check(const Spec& spec, const Target& target, const Tactic& tactic) {
  // A thread's row of a tile is one word of bits.
  const std::int64_t greatest_kv_tile = uses_tensor_cores(spec) ? 128 : 256;
  check_tile(tactic, "q_tile", "block[0]", spec.block[0], 256);
  check_tile(tactic, "kv_tile", "block[1]", spec.block[1], greatest_kv_tile);
  check_warps(spec, tactic);
  require_range(tactic, "stages", 1, 8);
  require_range(tactic, "q_in_registers", 0, 1);
  require_range(tactic, "blocks_per_sm", 1, 8);
  require_range(tactic, "mask_unroll", 1, 64);
  const std::int64_t bytes = shared_bytes(spec, tactic);
  const std::int64_t room = max_shared_bytes(target) - kReservedSharedBytes;
  if (bytes <= room) return;
  fail(fmt::format("{} needs {} bytes of shared memory; a block of threads on {} has {}",
                   tactic.describe(), bytes, target.name(), room),
       "force smaller tiles or fewer stages");
}

void force(const Spec& spec, const TacticSpec& forced, Tactic& tactic) {
  if (forced.name != tactic.name) {
    fail(fmt::format("there is no \"{}\" for this target, allowed is \"{}\"", forced.name,
                     tactic.name));
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : tactic.parameters) names.push_back(name);
  for (const auto& [name, value] : forced.parameters) {
    if (!tactic.parameters.contains(name)) {
      fail(fmt::format("\"{}\" has no parameter \"{}\", allowed are {}", tactic.name, name,
                       one_of(names)),
           did_you_mean(name, names));
    }
    tactic.parameters[name] = value;
  }
  if (forced.parameters.contains("q_tile") && !forced.parameters.contains("warps")) {
    tactic.parameters["warps"] = warps_of(spec, get(tactic, "q_tile"), 1);
  }
}

}  // namespace

bool uses_tensor_cores(const Spec& spec) {
  return spec.dtype != DType::f32 && spec.key_value_dtype() == spec.dtype;
}

std::int64_t row_tiles(const Spec& spec, const Tactic& tactic) {
  return uses_tensor_cores(spec) ? get(tactic, "q_tile") / (16 * get(tactic, "warps")) : 1;
}

std::int64_t shared_bytes(const Spec& spec, const Tactic& tactic) {
  const std::int64_t q_tile = get(tactic, "q_tile");
  const std::int64_t kv_rows = get(tactic, "stages") * get(tactic, "kv_tile");
  if (uses_tensor_cores(spec)) {
    const std::int64_t head = round_up(spec.head_dim, 16);
    const std::int64_t value = round_up(spec.value_head_dim(), 16);
    return 2 * (q_tile * head + kv_rows * (head + value));
  }
  const std::int64_t head = spec.head_dim + 4;
  const std::int64_t value = round_up(spec.value_head_dim(), 64);
  return 4 * (q_tile * head + kv_rows * (head + value) + q_tile * (get(tactic, "kv_tile") + 4));
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

Tactic choose_cuda_tactic(const Spec& spec, const Target& target) {
  Tactic tactic = default_tactic(spec, target);
  if (spec.tactic) force(spec, *spec.tactic, tactic);
  check(spec, target, tactic);
  return tactic;
}

}  // namespace tilewright
