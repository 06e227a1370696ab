#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../base/error.hpp"

namespace tilewright::verify::fuzz {

/// What went wrong with a case. Shrinking keeps the class; duplicates are grouped by it.
enum class Failure : std::uint8_t {
  none,
  wrong_result,      ///< out or lse breaks the rule of verify/judge.hpp
  wrong_gradient,    ///< a gradient breaks the rule of verify/gradient_rule.hpp
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

/// A failure of one class.
struct Finding {
  std::string message = {};  ///< what is wrong, where
  /// What tells it from other failures of its class: of undefined behaviour its place in the
  /// snippet, of a relation that is broken its name. Empty for other classes.
  std::string key = {};
};

/// What running a case gave.
struct Outcome {
  Failure failure = Failure::none;
  std::string message = {};          ///< what is wrong, where; empty where nothing is
  std::string key = {};              ///< of a Finding
  std::vector<Finding> others = {};  ///< undefined behaviour at other places of the snippets
  std::optional<Error::Details> error = {};  ///< what the library threw
  /// How near the result came to its bound; above 1 is wrong. 0 where nothing was judged.
  double share_of_bound = 0;
  std::int64_t kernels_compiled = 0;  ///< kernels that were found in no cache
  bool spills = false;                ///< a kernel that was compiled only keeps registers in memory
  bool relation_ran = false;          ///< and was judged
  double ms = 0;                      ///< all that it took

  bool ok() const { return failure == Failure::none; }
};

/// What was found, one outcome for each place; one that is ok for nothing.
std::vector<Outcome> taken_apart(const Outcome& outcome);

/// All that an error says.
Error::Details details_of(const Error& error);

/// Whether an error says that this machine lacks something, whatever was asked of it: the kernel
/// where none may be compiled, memory, room on the disk.
bool is_lack_of_machine(const std::optional<Error::Details>& error);

}  // namespace tilewright::verify::fuzz
