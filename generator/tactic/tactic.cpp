#include "generator/tactic/tactic.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/tactic_fields.hpp"

namespace tilewright {
namespace {

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
  return spec.tile_head_dim() > 128 || spec.tile_value_dim() > 128 ? 64 : 128;
}

void force(CpuTactic& tactic, const TacticSpec& forced) {
  if (forced.name != kCpu) {
    const bool is_of_gpus = forced.name == kPortable || forced.name == kHopper;
    fail_tactic(
        fmt::format("there is no \"{}\" for this target, allowed is \"{}\"", forced.name, kCpu),
        is_of_gpus ? fmt::format("\"{}\" is a tactic of GPUs", forced.name)
                   : did_you_mean(forced.name, all_tactic_names()));
  }
  force_fields(forced, tactic);
}

// "q_tile" and its value for each parameter that describe() shows, or for all of them.
template <typename T>
std::vector<std::pair<std::string_view, std::int64_t>> values_of(const T& tactic, bool all) {
  std::vector<std::pair<std::string_view, std::int64_t>> values;
  for (const TacticField<T>& field : tactic_fields<T>()) {
    if (all || field.is_described) values.emplace_back(field.name, field.of(tactic));
  }
  return values;
}

}  // namespace

std::string_view Tactic::name() const {
  constexpr std::array<std::string_view, 4> kNames = {kCpu, kPortable, kHopper, kDecode};
  return kNames.at(choice.index());
}

std::string Tactic::describe() const {
  std::string text(name());
  const auto values =
      std::visit([](const auto& tactic) { return values_of(tactic, false); }, choice);
  for (const auto& [parameter, value] : values) text += fmt::format(" {}={}", parameter, value);
  return text;
}

std::map<std::string, std::int64_t> Tactic::parameters() const {
  const auto values =
      std::visit([](const auto& tactic) { return values_of(tactic, true); }, choice);
  return {values.begin(), values.end()};
}

Tactic choose_tactic(const SpecFacts& facts, const Target& target, const KernelVariant& kernel) {
  if (!target.is_cpu()) return choose_cuda_tactic(facts, target, kernel);
  const Spec& spec = facts.spec;
  CpuTactic tactic{.q_tile = default_q_tile(spec),
                   .kv_tile = default_kv_tile(spec),
                   .vector_bytes = vector_bytes(target)};
  if (spec.tactic) force(tactic, *spec.tactic);
  require_divides("q_tile", tactic.q_tile, "block[0]", spec.block[0],
                  fmt::format("leave it out ({} is chosen) or change block", default_q_tile(spec)));
  return {tactic};
}

Tactic choose_tactic(const SpecFacts& facts, const Target& target) {
  return choose_tactic(facts, target, {.masked = !facts.spec.mask_mod.empty(), .aligned = true});
}

}  // namespace tilewright
