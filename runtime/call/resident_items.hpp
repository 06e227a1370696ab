#pragma once

#include <cstdint>
#include <optional>

#include "../api/plan.hpp"

namespace tilewright {

/// The kernel that keeps k and v of short sequences in shared memory, on a device.
struct ResidentLaunch {
  std::int64_t multiprocessors = 0;
  std::int64_t kv_rows = 0;  ///< that a sequence may have; 0: the spec has no such kernel
};

/// Whether TILEWRIGHT_RESIDENT says wherever columns fit, "1" or "on", or never, "0" or "off"; none
/// where it is unset or empty.
/// @throws Error as switch_variable
std::optional<bool> forced_resident();

/// Query heads of an item of that kernel, all that share a head of k and v or a whole share of
/// them: as many as leave few multiprocessors idle in the end. 0 where it does not serve a call:
/// where the call's bounds let a sequence have more columns, or there are too few items.
///
/// forced_resident() decides in its place.
/// @param shape with its bounds filled in
std::int64_t resident_heads(const ResidentLaunch& launch, const PackedShape& shape);

}  // namespace tilewright
