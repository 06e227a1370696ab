#include "generator/tactic.hpp"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/cuda_tactic.hpp"

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

[[noreturn]] void fail(std::string message, std::string hint = {}) {
  throw Error(ErrorCode::spec, std::move(message), std::move(hint));
}

void check(const Tactic& tactic, const Spec& spec) {
  const std::int64_t q_tile = tactic.parameters.at("q_tile");
  const std::int64_t kv_tile = tactic.parameters.at("kv_tile");
  const std::int64_t bytes = tactic.parameters.at("vector_bytes");
  if (q_tile < 16 || q_tile > 256 || q_tile % 16 != 0) {
    fail(fmt::format("tactic: q_tile is {}, allowed are multiples of 16 from 16 to 256", q_tile));
  }
  if (spec.block[0] % q_tile != 0) {
    fail(fmt::format("tactic: q_tile is {}, which does not divide block[0] = {}", q_tile,
                     spec.block[0]),
         fmt::format("leave it out ({} is chosen) or change block", default_q_tile(spec)));
  }
  if (kv_tile < 16 || kv_tile > 256 || kv_tile % 16 != 0) {
    fail(fmt::format("tactic: kv_tile is {}, allowed are multiples of 16 from 16 to 256", kv_tile));
  }
  if (bytes != 32 && bytes != 64) {
    fail(fmt::format("tactic: vector_bytes is {}, allowed are 32 and 64", bytes));
  }
}

void force(Tactic& tactic, const TacticSpec& forced) {
  if (forced.name != tactic.name) {
    fail(fmt::format("tactic: there is no \"{}\" for this target, allowed is \"{}\"", forced.name,
                     tactic.name));
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : tactic.parameters) names.push_back(name);
  for (const auto& [name, value] : forced.parameters) {
    if (!tactic.parameters.contains(name)) {
      fail(fmt::format("tactic: \"{}\" has no parameter \"{}\", allowed are {}", tactic.name, name,
                       one_of(names)),
           did_you_mean(name, names));
    }
    tactic.parameters[name] = value;
  }
}

}  // namespace

std::string Tactic::describe() const {
  std::string text = name;
  for (const std::string_view parameter : {"q_tile", "kv_tile", "vector_bytes", "warps", "stages",
                                           "q_in_registers", "blocks_per_sm", "mask_unroll"}) {
    const auto found = parameters.find(std::string(parameter));
    if (found != parameters.end()) text += fmt::format(" {}={}", found->first, found->second);
  }
  return text;
}

Tactic choose_tactic(const Spec& spec, const Target& target) {
  if (!target.is_cpu()) return choose_cuda_tactic(spec, target);
  Tactic tactic{.name = std::string(kCpu),
                .parameters = {{"q_tile", default_q_tile(spec)},
                               {"kv_tile", default_kv_tile(spec)},
                               {"vector_bytes", vector_bytes(target)}}};
  if (spec.tactic) force(tactic, *spec.tactic);
  check(tactic, spec);
  return tactic;
}

}  // namespace tilewright
