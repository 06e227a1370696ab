#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "spec.hpp"
#include "target.hpp"

namespace tilewright {

/// One way to run a spec on a target: the template and its tile sizes.
struct Tactic {
  std::string name;                                ///< "cpu"; for GPUs "portable"
  std::map<std::string, std::int64_t> parameters;  ///< "q_tile", "kv_tile", ...: cuda_tactic.hpp

  /// "cpu q_tile=64 kv_tile=128 vector_bytes=64"
  std::string describe() const;
};

/// The tactic for a spec, the forced one's parameters filled in where it leaves them open.
/// @throws Error with code spec where the forced tactic does not exist or does not fit
Tactic choose_tactic(const Spec& spec, const Target& target);

}  // namespace tilewright
