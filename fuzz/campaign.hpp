#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "case.hpp"
#include "coverage.hpp"
#include "failure_groups.hpp"
#include "outcome.hpp"
#include "random_case.hpp"
#include "run_case.hpp"

namespace tilewright::verify::fuzz {

/// How far a campaign is, and in the end what it found.
struct CampaignState {
  std::uint64_t seed = 0;
  std::int64_t cases = 0;     ///< calls that were asked for
  std::int64_t refused = 0;   ///< of them those that ended before their kernel ran
  std::int64_t compiles = 0;  ///< kernels for GPUs that were compiled only
  /// Of them those that spill registers: with tactics that are chosen, and with forced ones.
  std::int64_t spills_chosen = 0, spills_forced = 0;
  std::vector<FuzzCase> spilling;  ///< the first few with tactics that are chosen
  std::int64_t kernels = 0;        ///< compiled, of both: what no cache had
  std::int64_t gpu_kernels = 0;    ///< of them those that were compiled only
  std::int64_t snippets = 0;       ///< distinct texts of cases that were run
  std::int64_t failed = 0;         ///< cases
  FailureGroups failures{FailureGroups::Of::found_cases};
  /// How often each relation was checked, those that never were among them.
  std::map<std::string, std::int64_t, std::less<>> relations = {};
  std::int64_t sanitized = 0;      ///< cases whose kernels were compiled with sanitizers
  std::int64_t pairs_covered = 0;  ///< of features
  std::int64_t pairs_possible = 0;
  std::int64_t compile_pairs_covered = 0;
  std::int64_t compile_pairs_possible = 0;      ///< 0 where nothing is compiled only
  std::vector<std::string> pairs_missing = {};  ///< in the end, of both
  double worst_share = 0;                       ///< of its bound that the result of a case came to
  FuzzCase worst_case = {};                     ///< that case
  double seconds = 0;
  double longest_ms = 0;  ///< of a case
  bool stopped = false;   ///< before its end

  bool ok() const { return failed == 0; }
  /// A run that judged nothing says nothing, unless it was stopped.
  bool says_nothing() const { return cases == 0 && !stopped; }
};

struct CampaignOptions {
  CaseSource source = {};
  std::uint64_t seed = 0;
  std::optional<std::int64_t> cases = {};  ///< to run; none: until the time is over
  std::optional<std::chrono::seconds> time = {};
  std::int64_t calls_of_spec = 5;
  /// Kernels for GPUs to compile with each case; 0.25 is one for four cases.
  double compiles_per_case = 0;
  int workers = 1;
  std::chrono::seconds time_limit{120};  ///< of one case
  RunOptions run = {};
  std::function<void(const CampaignState&)> progress =
      {};                                               ///< after each case, at least 4 a second
  std::function<void(const FailureGroup&)> found = {};  ///< after the first case of a group
  std::function<void(const std::string&)> late = {};    ///< see Workers::Options
  std::function<bool()> stop = {};                      ///< asked often
};

/// Compiles one kernel; then makes cases and runs them in separate processes until there are
/// enough, the time is over, or it is told to stop. What runs when the time is over is waited for.
/// The cases depend on seed and source alone, not on time.
/// @throws Error as Workers; where that kernel does not compile, because this machine lacks
/// something or because of the user's snippet; where a case finds that the machine lacks memory,
/// room on the disk or a kernel that may not be compiled. What else goes wrong with a case is part
/// of the result
CampaignState run_campaign(const CampaignOptions& options);

}  // namespace tilewright::verify::fuzz
