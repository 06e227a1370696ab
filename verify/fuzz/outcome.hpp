#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::verify::fuzz {

/// What went wrong with a case. Shrinking keeps the class; duplicates are grouped by it.
enum class Failure : std::uint8_t {
  none,
  wrong_result,      ///< out or lse breaks DESIGN.md's rule
  mask_differs,      ///< a tile of the block mask is not what mask_mod makes it
  red_zone,          ///< memory around an output was written to
  input_changed,     ///< an input or a buffer was written to
  not_repeatable,    ///< a second run gave other bits
  devices_disagree,  ///< CPU and GPU are further apart than both bounds allow
  compile_error,     ///< a kernel does not compile
  undefined,         ///< a snippet does what C++ does not define
  relation_broken,   ///< a metamorphic relation does not hold
  crash,             ///< the process that ran it ended by a signal
  time_out,
  error,  ///< any other error of the library
};

/// "wrong_result", "mask_differs", ...
std::string_view to_string(Failure failure);
/// @throws Error with code file for a name that is none
Failure failure_from_string(std::string_view name);

/// What running a case gave.
struct Outcome {
  Failure failure = Failure::none;
  std::string message = {};  ///< what is wrong, where; empty where nothing is
  /// How near the result came to its bound; above 1 is wrong. 0 where nothing was judged.
  double share_of_bound = 0;
  std::int64_t kernels_compiled = 0;  ///< kernels that were found in no cache
  bool spills = false;                ///< a kernel that was compiled only keeps registers in memory
  bool relation_ran = false;          ///< and was judged
  double ms = 0;                      ///< all that it took

  bool ok() const { return failure == Failure::none; }
};

}  // namespace tilewright::verify::fuzz
