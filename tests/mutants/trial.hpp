#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/device.hpp"
#include "tests/mutants/population.hpp"
#include "tests/mutants/subjects.hpp"

namespace tilewright::mutants {

enum class Fate : std::uint8_t {
  killed,  ///< a call's result is wrong or its kernels' words are refused with an error, or it
           ///< costs what the original does not: block mask tiles, or what tests/compile_matrix
           ///< refuses
  does_not_compile,  ///< the compiler refuses it: killed, but by no test's merit
  survived,          ///< all calls are right
  same_kernels,      ///< the compiler makes the original's kernels of the changed text
  not_reached,       ///< no subject's kernels hold the changed text
};

std::string_view to_string(Fate fate);
/// @throws Error with code internal for a name that is none
Fate fate_from_string(std::string_view name);

/// What a mutant is whose build or call ends with an error: it does not compile where the compiler,
/// the snippet or the template is at fault, else the error has noticed it.
Fate fate_of(const Error& error);

struct Trial {
  Fate fate = Fate::survived;
  int calls = 0;       ///< that were run
  std::string detail;  ///< what killed it: spec, call, reason
};

/// Runs a call's kernels while no other process runs any (gpu_alone.hpp); `never_ends` is what the
/// mutant's trial is where they do not end.
using RunAlone = std::function<void(const Trial& never_ends, const std::function<void()>& run)>;

struct TrialOptions {
  Device device = Device::cpu();
  bool makes_special_calls = true;
  std::string special_word = {};  ///< in the names of specs whose special calls are made
  bool sanitized = false;  ///< kernels for a CPU end the process where they do what C++ leaves
                           ///< undefined
  bool runs_same_kernels =
      false;        ///< also where the compiler makes the original's of the changed text
  int repeats = 3;  ///< of each call, as on a GPU a race need not show at once; one on a CPU
  RunAlone run_alone = {};  ///< none: calls are run at once, and have 90 s
};

/// Runs a mutant's kernels in this process, which may therefore crash or never come back.
/// @throws Error where the unchanged templates fail
Trial try_mutant(const Mutation& mutation, const std::vector<Subject>& subjects,
                 const TrialOptions& options);

/// Compiles a mutant's kernels for a target, the first that hold the changed text. `survived` where
/// they compile.
Trial compile_mutant(const Mutation& mutation, const std::vector<Subject>& subjects,
                     const Target& target);

}  // namespace tilewright::mutants
