#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "../snippet/spec_facts.hpp"
#include "../spec/spec.hpp"
#include "../spec/target.hpp"
#include "kernel_variant.hpp"

namespace tilewright {

/// The tactic "cpu" of templates/cpu/kernels/forward.cpp.jinja. What the members of the tactics
/// mean, which values they take and how specs name them is said once, in tactic_fields.cpp.
struct CpuTactic {
  std::int64_t q_tile = 0;
  std::int64_t kv_tile = 0;
  std::int64_t vector_bytes = 0;
  friend bool operator==(const CpuTactic&, const CpuTactic&) = default;
};

/// The tactic "portable" of templates/cuda/kernels/portable_forward.cu.jinja, for any GPU from
/// sm_80 up.
struct PortableTactic {
  std::int64_t q_tile = 0;
  std::int64_t kv_tile = 0;
  std::int64_t warps = 0;
  std::int64_t stages = 0;
  bool q_in_registers = false;
  std::int64_t blocks_per_sm = 0;
  std::int64_t mask_unroll = 0;
  friend bool operator==(const PortableTactic&, const PortableTactic&) = default;
};

/// The tactic "hopper" of templates/cuda/kernels/hopper_forward.cu.jinja, for sm_90a.
struct HopperTactic {
  std::int64_t q_tile = 0;
  std::int64_t kv_tile = 0;
  std::int64_t stages = 0;
  std::int64_t q_stages = 0;
  bool take_turns = false;
  bool persistent = false;
  bool out_over_q = false;
  std::int64_t mask_unroll = 0;
  bool bounded_waits = false;
  std::int64_t launch_counters = 0;
  friend bool operator==(const HopperTactic&, const HopperTactic&) = default;
};

/// The tactic "decode" of templates/cuda/kernels/decode.cu.jinja, for any GPU from sm_80 up. No
/// spec forces it: it is the only one of its kernels.
struct DecodeTactic {
  std::int64_t kv_tile = 0;
  std::int64_t warps = 0;
  std::int64_t stages = 0;
  bool q_in_registers = false;
  std::int64_t blocks_per_sm = 0;
  std::int64_t mask_unroll = 0;
  friend bool operator==(const DecodeTactic&, const DecodeTactic&) = default;
};

inline constexpr std::string_view kCpu = "cpu";
inline constexpr std::string_view kPortable = "portable";
inline constexpr std::string_view kHopper = "hopper";
inline constexpr std::string_view kDecode = "decode";

/// One way to run a spec on a target: the template and its tile sizes.
struct Tactic {
  std::variant<CpuTactic, PortableTactic, HopperTactic, DecodeTactic> choice;

  /// "cpu", "portable", "hopper" or "decode".
  std::string_view name() const;

  /// "cpu q_tile=64 kv_tile=128 vector_bytes=64"
  std::string describe() const;

  const PortableTactic* portable() const { return std::get_if<PortableTactic>(&choice); }
  const HopperTactic* hopper() const { return std::get_if<HopperTactic>(&choice); }
  const DecodeTactic* decode() const { return std::get_if<DecodeTactic>(&choice); }

  /// Every parameter by the name that a spec's forced tactic gives it; 0 or 1 for a bool.
  std::map<std::string, std::int64_t> parameters() const;

  friend bool operator==(const Tactic&, const Tactic&) = default;
};

/// The tactic of one of a spec's forward kernels, the forced one's parameters filled in where it
/// leaves them open. A forced tactic that needs aligned tensors leaves other kernels alone.
/// @throws Error with code spec where the forced tactic does not exist or does not fit
Tactic choose_tactic(const SpecFacts& facts, const Target& target, const KernelVariant& kernel);

/// The same for the kernel that serves most calls: aligned, and masked where the spec has a
/// mask_mod.
Tactic choose_tactic(const SpecFacts& facts, const Target& target);

/// Rows of q that a row of a packed spec's plan stands for: block[0], as in a block mask. A packed
/// spec without mask_mod has no tiles to decide, and a row of its plan is as long as the fastest q
/// tile.
std::int64_t plan_row_side(const SpecFacts& facts, const Target& target);

/// Rows of q that an entry of a plan's list of work stands for: plan_row_side, or a q tile that
/// covers rows of two rows of tiles. The q tile of each forward kernel divides it.
std::int64_t plan_work_side(const SpecFacts& facts, const Target& target);

}  // namespace tilewright
