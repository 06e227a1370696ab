#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../spec/spec.hpp"
#include "difference_value.hpp"
#include "facts.hpp"
#include "reduce.hpp"
#include "snippet.hpp"

namespace tilewright {

/// A snippet with what its text says.
struct AnalysedSnippet {
  Snippet snippet;
  snippet::SnippetTree tree;
  snippet::SnippetFacts facts;
};

/// The forms of score_mod that kernels take.
enum class ScoreForm : std::uint8_t {
  as_written,
  simplified,  ///< the same for all spellings
  reduced,     ///< what SpecFacts::reduction leaves
  /// The rest of SpecFacts::difference; reduced where there is none.
  without_difference,
};

/// A value by the difference of indices, with what the texts say.
struct AnalysedDifference {
  snippet::DifferenceValue found;
  snippet::SnippetFacts rest;
  snippet::SnippetTree value;  ///< which returns it
  snippet::SnippetFacts value_facts;
};

/// What score_mod reads of its buffers: nothing, values that a whole head shares (`slopes[h]`), or
/// more: values that differ between elements, rows or columns, for which a kernel needs registers
/// in its loop.
enum class ScoreModReads : std::uint8_t { none, for_heads, more };

/// What a scale or the sink differs between, by what its text names. It costs accordingly: what a
/// tile's elements share is folded into factors that the kernel has anyway.
enum class Granularity : std::uint8_t {
  absent,    ///< the spec has no such snippet
  sequence,  ///< names at most b, h_kv and lengths: one number for a head of k and v
  head,      ///< names h: one number for a query head
  row,       ///< names q_idx, q_token, kv_idx or kv_token: one for each row of its tensor
};

/// A spec with what its snippets say, found once: kernels, tactics and launches read it. A spec
/// converts to it, so that what takes one takes the other.
class SpecFacts {
 public:
  /// @param spec  must outlive it
  /// @throws Error with code snippet where a snippet fails its checks
  SpecFacts(const Spec& spec);  // NOLINT(google-explicit-constructor)
  SpecFacts(const SpecFacts&) = delete;
  SpecFacts& operator=(const SpecFacts&) = delete;
  operator const Spec&() const { return spec; }  // NOLINT(google-explicit-constructor)

  const Spec& spec;
  std::optional<AnalysedSnippet> score_mod = {};
  std::optional<AnalysedSnippet> mask_mod = {};
  std::optional<AnalysedSnippet> q_scale = {};
  std::optional<AnalysedSnippet> k_scale = {};
  std::optional<AnalysedSnippet> v_scale = {};
  std::optional<AnalysedSnippet> out_scale = {};
  std::optional<AnalysedSnippet> sink = {};
  std::optional<AnalysedSnippet> dropout = {};
  /// score_mod without what Hopper's kernels do anyway; empty without a score_mod.
  snippet::ScoreReduction reduction = {};
  snippet::SnippetFacts reduced = {};                       ///< of what the reduction leaves
  std::optional<AnalysedDifference> difference = {};        ///< of what the reduction leaves
  std::optional<AnalysedDifference> whole_difference = {};  ///< of the whole score_mod
  snippet::SnippetTree simple = {};                         ///< score_mod, simplified
  snippet::SnippetFacts simple_facts = {};

  /// That of a kind.
  const std::optional<AnalysedSnippet>& of(SnippetKind kind) const;
  /// Of a scale or the sink. With kv_new, k_scale and v_scale are of rows whatever they name: new
  /// rows have none.
  Granularity granularity(SnippetKind kind) const;

  /// Whether k_scale or v_scale differs between rows of k or v, so that each score or weight of a
  /// tile has its own.
  bool scales_kv_rows() const;

  /// The tree that a kernel prints in a form; null where it takes the user's text.
  const snippet::SnippetTree* printed(ScoreForm form) const;
  /// Of score_mod in a form; of nothing without one.
  const snippet::SnippetFacts& score_facts(ScoreForm form) const;

  /// @throws Error with code snippet if the spec has no mask_mod
  const Snippet& required_mask_mod() const;
  /// Whether the reduction takes anything out of score_mod.
  bool is_reduced() const;
  /// What the softmax may take from all scores in place of their maxima, in units of what the
  /// reduction leaves: where that is bounded, exponents differ by no more than bf16 has room for
  /// (templates/cuda/attention/softmax.hpp). f16 has not.
  std::optional<double> fixed_max() const;
  /// The greatest factor of results that Hopper's kernels take: up to there fixed_max is right.
  double greatest_result_factor() const;
  bool has_slope() const { return reduction.slope_sign != 0; }
  ScoreModReads score_mod_reads() const;
  /// score_mod's reads that differ between elements, if all of them are at sums of indices.
  std::vector<snippet::BufferRead> linear_reads() const;
  bool score_mod_loops() const { return score_mod && score_mod->facts.has_loop; }
  bool score_mod_divides() const { return score_mod && score_mod->facts.divides; }
  bool mask_mod_divides() const { return mask_mod && mask_mod->facts.divides; }
  bool any_snippet_divides() const;
  bool mask_mod_reads() const;
  /// Whether mask_mod may be proved by intervals, which evaluate both sides of && and ||.
  bool may_prove_mask() const;
  /// Whether mask_mod is one short expression of sums, multiples, quotients, comparisons and
  /// truths, without reads: a proof of it takes no branch and few registers.
  bool has_plain_mask() const;
};

}  // namespace tilewright
