#include "generator/tactic/tactic_fields.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"

namespace tilewright {
namespace {

using Cpu = TacticField<CpuTactic>;
using Portable = TacticField<PortableTactic>;
using Hopper = TacticField<HopperTactic>;
using Decode = TacticField<DecodeTactic>;

constexpr std::array kCpuFields = {
    Cpu{"q_tile", &CpuTactic::q_tile, 16, 256, 16, "",
        "rows of q that a thread works on at a time; divides block[0]"},
    Cpu{"kv_tile", &CpuTactic::kv_tile, 16, 256, 16, "", "rows of k and v at a time"},
    Cpu{"vector_bytes", &CpuTactic::vector_bytes, 32, 64, 32, "",
        "bytes of a vector register: 32 for AVX2, 64 for AVX-512"}};

constexpr std::array kPortableFields = {
    Portable{"q_tile", &PortableTactic::q_tile, 16, 256, 16, "kQTile",
             "rows of q that a block of threads works on; divides block[0]"},
    Portable{"kv_tile", &PortableTactic::kv_tile, 16, 256, 16, "kKvTile",
             "rows of k and v at a time; divides block[1]; at most 128 on tensor cores"},
    Portable{"warps", &PortableTactic::warps, 1, 32, 1, "kWarps", "warps of a block of threads"},
    Portable{"stages", &PortableTactic::stages, 1, 8, 1, "kStages",
             "tiles of K, and of V, in shared memory"},
    Portable{"q_in_registers", &PortableTactic::q_in_registers, 0, 1, 1, "kQInRegisters",
             "1: a warp keeps its rows of Q in registers"},
    Portable{"blocks_per_sm", &PortableTactic::blocks_per_sm, 1, 8, 1, "",
             "blocks of threads that registers must leave room for"},
    Portable{"mask_unroll", &PortableTactic::mask_unroll, 1, 64, 1, "kMaskUnroll",
             "columns of a tile that mask_mod is compiled for at once"}};

constexpr std::array kHopperFields = {
    Hopper{"q_tile", &HopperTactic::q_tile, 64, 192, 64, "kQTile",
           "rows of q that a block of threads works on, 64 for each consumer warpgroup; divides "
           "block[0], or covers rows of two blocks"},
    Hopper{"kv_tile", &HopperTactic::kv_tile, 16, 128, 16, "kKvTile",
           "rows of k and v at a time; divides block[1]"},
    Hopper{"stages", &HopperTactic::stages, 1, 8, 1, "kStages",
           "tiles of K, and of V, in shared memory"},
    Hopper{"q_stages", &HopperTactic::q_stages, 1, 2, 1, "kQStages",
           "tiles of Q in shared memory; with 2 the next one is loaded while the current one is "
           "used"},
    Hopper{"take_turns", &HopperTactic::take_turns, 0, 1, 1, "kOrderedIssue",
           "1: warpgroups issue their products one after the other"},
    Hopper{"persistent", &HopperTactic::persistent, 0, 1, 1, "",
           "0: one block of threads for each q tile; 1: one for each multiprocessor"},
    Hopper{"out_over_q", &HopperTactic::out_over_q, 0, 1, 1, "kOutOverQ",
           "1: the output is staged where Q was"},
    Hopper{"mask_unroll", &HopperTactic::mask_unroll, 1, 64, 1, "kMaskUnroll",
           "columns of a tile that mask_mod is compiled for at once"},
    Hopper{"bounded_waits", &HopperTactic::bounded_waits, 0, 1, 1, "kBoundedWaits",
           "1: a wait without end is reported and ends the kernel; for debugging", false},
    Hopper{"launch_counters", &HopperTactic::launch_counters, 1, 65536, 1, "kLaunchCounters",
           "launches at once that may schedule their q tiles dynamically", false}};

constexpr std::array kDecodeFields = {
    Decode{"kv_tile", &DecodeTactic::kv_tile, 16, 64, 16, "kKvTile",
           "rows of k and v that a warp works on at a time"},
    Decode{"warps", &DecodeTactic::warps, 1, 8, 1, "kTeams",
           "warps of a block of threads, each with tiles of its own"},
    Decode{"stages", &DecodeTactic::stages, 1, 8, 1, "kStages",
           "tiles of K, and of V, that a warp has in shared memory"},
    Decode{"q_in_registers", &DecodeTactic::q_in_registers, 0, 1, 1, "kQInRegisters",
           "1: a warp keeps its rows of Q in registers"},
    Decode{"blocks_per_sm", &DecodeTactic::blocks_per_sm, 1, 8, 1, "",
           "blocks of threads that registers and shared memory leave room for"},
    Decode{"mask_unroll", &DecodeTactic::mask_unroll, 1, 64, 1, "kMaskUnroll",
           "columns of a tile that mask_mod is compiled for at once"}};

template <typename T>
void require_range_of(const TacticField<T>& field, std::int64_t value) {
  require_range(field.name, value, field.least, field.greatest, field.step);
}

template <typename T>
const TacticField<T>* find_field(std::string_view name) {
  for (const TacticField<T>& field : tactic_fields<T>()) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

template <typename T>
[[noreturn]] void refuse_parameter(const TacticSpec& forced, const std::string& name) {
  std::vector<std::string> names;
  for (const TacticField<T>& field : tactic_fields<T>()) names.emplace_back(field.name);
  std::sort(names.begin(), names.end());
  fail_tactic(fmt::format("\"{}\" has no parameter \"{}\", allowed are {}", forced.name, name,
                          one_of(names)),
              did_you_mean(name, names));
}

}  // namespace

template <>
std::span<const TacticField<CpuTactic>> tactic_fields() {
  return kCpuFields;
}

template <>
std::span<const TacticField<PortableTactic>> tactic_fields() {
  return kPortableFields;
}

template <>
std::span<const TacticField<HopperTactic>> tactic_fields() {
  return kHopperFields;
}

template <>
std::span<const TacticField<DecodeTactic>> tactic_fields() {
  return kDecodeFields;
}

template <typename T>
void force_fields(const TacticSpec& forced, T& tactic) {
  for (const auto& [name, value] : forced.parameters) {
    const TacticField<T>* const field = find_field<T>(name);
    if (!field) refuse_parameter<T>(forced, name);
  }
  for (const TacticField<T>& field : tactic_fields<T>()) {
    const auto value = forced.parameters.find(std::string(field.name));
    if (value == forced.parameters.end()) continue;
    require_range_of(field, value->second);
    field.set(tactic, value->second);
  }
}

template <typename T>
jinja::Map tactic_variables(const T& tactic) {
  jinja::Map variables;
  jinja::List constants;
  for (const TacticField<T>& field : tactic_fields<T>()) {
    const std::int64_t number = field.of(tactic);
    const jinja::Value value = field.is_bool() ? jinja::Value(number != 0) : jinja::Value(number);
    variables[std::string(field.name)] = value;
    if (field.constant.empty()) continue;
    constants.push_back(jinja::Map{
        {"type", field.is_bool() ? "bool" : "int"}, {"name", field.constant}, {"value", value}});
  }
  variables["tactic_constants"] = std::move(constants);
  return variables;
}

template void force_fields(const TacticSpec&, CpuTactic&);
template void force_fields(const TacticSpec&, PortableTactic&);
template void force_fields(const TacticSpec&, HopperTactic&);
template jinja::Map tactic_variables(const CpuTactic&);
template jinja::Map tactic_variables(const PortableTactic&);
template jinja::Map tactic_variables(const HopperTactic&);
template jinja::Map tactic_variables(const DecodeTactic&);

const std::vector<std::string>& all_tactic_names() {
  static const auto& names = *new std::vector<std::string>{
      std::string(kCpu), std::string(kPortable), std::string(kHopper)};
  return names;
}

void fail_tactic(const std::string& message, std::string hint) {
  throw Error(ErrorCode::spec, "tactic: " + message, std::move(hint));
}

void require_range(std::string_view name, std::int64_t value, std::int64_t least,
                   std::int64_t greatest, std::int64_t step) {
  if (value >= least && value <= greatest && value % step == 0) return;
  const std::string which = step == 1 ? std::string() : fmt::format("multiples of {} from ", step);
  fail_tactic(fmt::format("{} is {}, allowed are {}{} to {}", name, value, which, least, greatest));
}

void require_divides(std::string_view name, std::int64_t value, std::string_view side_name,
                     std::int64_t side, std::string hint) {
  if (side % value == 0) return;
  fail_tactic(fmt::format("{} is {}, which does not divide {} = {}", name, value, side_name, side),
              std::move(hint));
}

}  // namespace tilewright
