#include "generator/tactic.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "generator/cuda_tactic.hpp"
#include "generator/tactic_parameters.hpp"

namespace tilewright {
namespace {

constexpr std::string_view kCpu = "cpu";

bool host_has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

std::int64_t vector_bytes(const Target& target) {
  if (target.name() == "cpu") return host_has_avx512() ? 64 : 32;
  return target.name() == "cpu-x86-64-v4" ? 64 : 32;
}

// A tile of q belongs to one row of tiles of the block mask.
std::int64_t default_q_tile(const Spec& spec) {
  for (const std::int64_t rows : {64, 48, 32}) {
    if (spec.block[0] % rows == 0) return rows;
  }
  return 16;
}

// The scores of a tile and what is copied of K and V stay in the second-level cache.
std::int64_t default_kv_tile(const Spec& spec) {
  return spec.head_dim > 128 || spec.value_head_dim() > 128 ? 64 : 128;
}

void check(const Tactic& tactic, const Spec& spec) {
  require_range(tactic, "q_tile", 16, 256, 16);
  require_divides(tactic, "q_tile", "block[0]", spec.block[0],
                  fmt::format("leave it out ({} is chosen) or change block", default_q_tile(spec)));
  require_range(tactic, "kv_tile", 16, 256, 16);
  const std::int64_t bytes = parameter(tactic, "vector_bytes");
  if (bytes == 32 || bytes == 64) return;
  fail_tactic(fmt::format("vector_bytes is {}, allowed are 32 and 64", bytes));
}

void force(Tactic& tactic, const TacticSpec& forced) {
  if (forced.name != tactic.name) {
    fail_tactic(fmt::format("there is no \"{}\" for this target, allowed is \"{}\"", forced.name,
                            tactic.name));
  }
  force_parameters(forced, tactic);
}

}  // namespace

std::string Tactic::describe() const {
  std::string text = name;
  for (const std::string_view parameter :
       {"q_tile", "kv_tile", "vector_bytes", "warps", "stages", "q_stages", "q_in_registers",
        "blocks_per_sm", "take_turns", "persistent", "out_over_q", "mask_unroll"}) {
    const auto found = parameters.find(std::string(parameter));
    if (found != parameters.end()) text += fmt::format(" {}={}", found->first, found->second);
  }
  return text;
}

Tactic choose_tactic(const Spec& spec, const Target& target, const KernelTraits& kernel) {
  if (!target.is_cpu()) return choose_cuda_tactic(spec, target, kernel);
  Tactic tactic{.name = std::string(kCpu),
                .parameters = {{"q_tile", default_q_tile(spec)},
                               {"kv_tile", default_kv_tile(spec)},
                               {"vector_bytes", vector_bytes(target)}}};
  if (spec.tactic) force(tactic, *spec.tactic);
  check(tactic, spec);
  return tactic;
}

Tactic choose_tactic(const Spec& spec, const Target& target) {
  return choose_tactic(spec, target, {.masked = !spec.mask_mod.empty(), .aligned = true});
}

}  // namespace tilewright
