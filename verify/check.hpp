#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../generator/snippet/snippet.hpp"
#include "../generator/spec/spec.hpp"
#include "../runtime/api/attention.hpp"
#include "agreement.hpp"
#include "guarded_tensor.hpp"
#include "judge.hpp"
#include "mask_check.hpp"
#include "problem.hpp"
#include "reference.hpp"
#include "undefined_behaviour.hpp"
#include "unjudged.hpp"

namespace tilewright::verify {

struct CheckOptions {
  AttentionOptions attention = {};  ///< device, kernels, threads
  /// What the reference's kernels are made with; none: attention.kernels. For tests that put wrong
  /// kernels in attention's place.
  std::optional<Toolchain> interpretations = {};
  /// Runs there too, and compares: both results must be right, and agree.
  std::optional<Device> compared_with = {};
  bool check_mask = true;       ///< compare the block mask with evaluation at every element
  bool check_undefined = true;  ///< run the checked interpretation first
  std::int64_t max_checked_elements = std::int64_t{1} << 24;
  /// A result from elsewhere: judged by the rule, and compared with the kernel's. In out's order of
  /// attention_values.hpp; lse may be empty.
  std::optional<AttentionValues> theirs = {};
  /// Told how far a check is, from the threads that work: a step's name, and how much of all rows
  /// is done, 0 to 1. Called often.
  std::function<void(std::string_view step, double share)> progress = {};
  /// Each run of the kernels on attention.device is made by this, which calls its argument; none:
  /// it is made at once. For tests that share a GPU.
  std::function<void(const std::function<void()>& run)> run_by = {};
};

/// Milliseconds of each step. Making the kernels is divided further in Report::builds.
struct StepTimes {
  double kernels = 0;          ///< render, compile and load forward and the mask's kernel
  double interpretations = 0;  ///< the same for the reference's kernels
  double undefined = 0;        ///< the checked interpretation
  double mask = 0;             ///< building the block mask
  double forward = 0;
  double reference = 0;
  double naive = 0;
  double judge = 0;  ///< comparing, the block mask's tiles included
};

/// All that a check found.
struct Report {
  bool ok = true;  ///< results, the block mask and the memory around out are right, promises kept
  Verdict verdict;
  UnjudgedCounts unjudged;  ///< elements of out that are not judged, and why
  /// One value of each scale that has NaN or infinity, or of out_scale one below 2^-126.
  std::map<SnippetKind, double> odd_scales = {};
  /// Why a sequence of a packed call is wrong where it is judged alone, of the first few that are.
  std::vector<std::string> sequence_reasons = {};
  /// Of the device that it was compared with.
  std::optional<Verdict> other_verdict;
  std::optional<Agreement> agreement;
  /// Of CheckOptions::theirs, by the same rule, and how far they are from the kernel's result.
  std::optional<Verdict> their_verdict;
  std::optional<Agreement> their_agreement;
  std::optional<BlockMask> mask;
  std::optional<MaskVerdict> mask_verdict;  ///< of the block mask, or a packed call's tile map
  std::optional<std::string>
      damage;  ///< what was written outside out and lse, or on a GPU to an input
  /// Of each buffer that the spec promises to be sorted and that is not: the first element that is
  /// less than the one before. Tiles may be wrong then. Of each sequence that keeps a column of a
  /// freed page: the first (freed_pages.hpp).
  std::vector<std::string> broken_promises = {};
  UndefinedOperations undefined;  ///< warnings; fatal ones are thrown
  /// Elements that mask_mod keeps in float and drops in double, or the other way round. The result
  /// is judged by the float decision, which is the kernel's.
  std::int64_t mask_disagreements = 0;
  std::vector<double> dropout = {};  ///< of each head; empty where the spec has none
  std::vector<KernelBuild> builds;   ///< forward and the block mask
  StepTimes ms;

  /// Why it is not ok, one sentence each: broken promises first, then the verdicts', the
  /// agreement's, the memory's, the mask's.
  std::vector<std::string> reasons() const;
};

/// Checks calls of one spec. Kernels are made once.
class Checker {
 public:
  /// @throws Error as Attention and SnippetEvaluator
  explicit Checker(Spec spec, const CheckOptions& options = {});
  Checker(Checker&&) noexcept;
  ~Checker();

  const Attention& attention() const;

  /// Runs the call into poisoned memory and compares it with the double reference.
  /// @param out padding and misalignment of out
  /// @throws Error as Attention::forward; with code snippet where the snippets would trap or read
  ///         foreign memory: then no kernel was run
  Report check(const Problem& problem, const Placement& out = {}) const;

  /// Reference and naive alone, for results that come from elsewhere. `rule` is the one that check
  /// judges by.
  struct Expected {
    Reference reference;
    AttentionValues naive;
    Rule rule;
    Unjudged unjudged = {};                         ///< reference is NaN in these rows
    std::map<SnippetKind, double> odd_scales = {};  ///< Report's
    std::int64_t mask_disagreements = 0;
    std::vector<double> dropout = {};  ///< Report's
    double reference_ms = 0;
    double naive_ms = 0;
  };
  Expected expected(const Problem& problem) const;

  /// As check(problem, out), for a problem that is run several times.
  /// @param wanted of expected(problem)
  Report check(const Problem& problem, const Placement& out, const Expected& wanted) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Checker(spec, options).check(problem), with the time that the kernels took.
Report check(const Spec& spec, const Problem& problem, const CheckOptions& options = {});

}  // namespace tilewright::verify
