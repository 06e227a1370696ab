#pragma once

#include <cstdint>
#include <string>

#include "tactic.hpp"

namespace tilewright {

/// What the choices of all tactics share: taking over forced parameters, and refusing what does not
/// fit. All errors have code spec.

[[noreturn]] void fail_tactic(const std::string& message, std::string hint = {});

std::int64_t parameter(const Tactic& tactic, const char* name);

/// Replaces parameters by the forced ones.
/// @throws Error for a parameter that the tactic does not have, with those that it has
void force_parameters(const TacticSpec& forced, Tactic& tactic);

/// @throws Error unless a parameter is a multiple of `step` from `least` to `greatest`
void require_range(const Tactic& tactic, const char* name, std::int64_t least,
                   std::int64_t greatest, std::int64_t step = 1);

/// @throws Error unless a parameter divides a side of the block mask's tiles
void require_divides(const Tactic& tactic, const char* name, const char* side_name,
                     std::int64_t side, std::string hint = "leave it out or change block");

}  // namespace tilewright
