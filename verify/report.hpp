#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../generator/snippet/snippet.hpp"
#include "../runtime/api/attention.hpp"
#include "agreement.hpp"
#include "judge.hpp"
#include "mask_check.hpp"
#include "undefined_behaviour.hpp"
#include "unjudged.hpp"

namespace tilewright::verify {

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
  std::int64_t elements = 0;  ///< of out, of the rows that belong to the call
  UnjudgedCounts unjudged;    ///< elements of out that are not judged, and why
  std::int64_t nan = 0;       ///< elements of out that are judged and whose reference is NaN
  /// Of the device that it was compared with, and of the result from elsewhere.
  UnjudgedCounts other_unjudged, their_unjudged;
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

  std::int64_t judged() const { return elements - unjudged.all(); }
  /// Nothing of an out is wrong where nothing of it was judged, and nothing is shown to be right.
  /// Zeros of rows that keep no score show nothing of the others.
  /// @param counts one of the report's
  bool says_nothing(const UnjudgedCounts& counts) const {
    return counts.all() > 0 && counts.all() + counts.unreached == elements;
  }
  bool shows_right() const;

  /// Why it does not show that the call is right, one sentence each: broken promises first, then
  /// the verdicts', that nothing of out was judged, the agreement's, the memory's, the mask's.
  std::vector<std::string> reasons() const;
};

}  // namespace tilewright::verify
