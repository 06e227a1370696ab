#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../runtime/api/executor.hpp"
#include "../templates/abi/cpu.hpp"
#include "attention_values.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// What gradients are computed from in addition to a call's q, k and v.
struct GradientInputs {
  Values dout;                      ///< [batch, num_q_heads, q_len, v_head_dim]
  std::optional<Values> dlse = {};  ///< [batch, num_q_heads, q_len, 1]
  std::optional<Values> out = {};   ///< as stored, which backward reads; none: it is computed
  std::int64_t num_kv_heads = 1;
  std::vector<abi::GradientArgument> named = {};  ///< where gradients of buffers and scalars are
  std::int64_t cells = 0;                         ///< of all of them
};

/// A row of scores through score_mod's derivatives. Called from many threads at once.
template <typename Score>
struct RowSlopes {
  std::function<void(std::int64_t b, std::int64_t h, std::int64_t row, const Score* scores,
                     Score* slopes)>
      slopes;
  std::function<void(std::int64_t b, std::int64_t h, std::int64_t row, const Score* scores,
                     const Score* dy, double* sums)>
      add;
  /// The same with the terms' magnitudes. Only the reference's are called.
  std::function<void(std::int64_t b, std::int64_t h, std::int64_t row, const Score* scores,
                     const Score* dy, double* sums)>
      add_magnitudes;
};

/// Gradients as doubles, in the order of attention_values.hpp.
struct GradientValues {
  Values dq, dk, dv;          ///< dk and dv with the batch of k and v
  std::vector<double> named;  ///< all cells of GradientInputs::named
};

/// How values are rounded on the way: the identity for the reference.
template <typename Score>
struct GradientRounding {
  std::function<Score(Score)> tile = [](Score x) { return x; };  ///< S, P, dP and dS
  std::function<Score(Score)> out = [](Score x) { return x; };   ///< out where it is computed
};

/// What else the reference says of its gradients.
struct GradientSizes {
  GradientValues terms;  ///< the sums of the terms' absolute values
  /// What the elements may be off by for the scores of their rows alone (gradient_rule.hpp).
  GradientValues own;
  /// Of the cells of GradientInputs::named: what they sum, each term by its magnitude.
  std::vector<double> named_magnitudes;
  /// What they may be off by where terms are float32's and products those of 16 bits; 0 unless
  /// FloatSearch::has_float_terms (gradient_rule.hpp).
  std::vector<double> named_in_float;
  /// How far each element may be off: by kinks (kinks.hpp), and by weights that may be 0 in kernels
  /// (kLeastSureWeight).
  GradientValues ambiguous;
  /// 1 where an element may be NaN: a row whose lse is NaN keeps the element with a score of -inf.
  GradientValues undefined;
  /// Where float32 does not hold what a kernel computes on the way to an element: kMayBeInfinite
  /// where an overflow makes it NaN or infinite; kUnknown or more where nothing is known of it, as
  /// a kept score of the row overflows, or the row's greatest is 2^22 or more: float32's roundings
  /// of the score and of the stored lse then change a weight by a factor of e.
  GradientValues overflow;
  /// Of the cells of GradientInputs::named: not 0 where float32's derivative by what was read is
  /// NaN or infinite on the way to them. `overflow` has kMayBeInfinite there.
  std::vector<double> derivative_overflow = {};
  /// Of the rows of which something is known: the greatest magnitude of a score that has a weight
  /// in float32. Only where FloatSearch::share_of_terms is not 0.
  std::vector<double> row_scores = {};

  static constexpr double kMayBeInfinite = 1, kUnknown = 0x1p32;
};

/// How the reference finds elements that float32 decides otherwise: ambiguous ones, and overflows.
struct FloatSearch {
  const RowSlopes<float>* slopes = nullptr;      ///< null: the spec has no score_mod
  const RowSnippets<float>* snippets = nullptr;  ///< likewise
  double share_of_score = 0x1p-20;               ///< what score_mod rounds, of the score
  double share_of_terms = 0;  ///< what fast functions may change of a term, for each unit of score
  double greatest_dx = std::numeric_limits<float>::max();  ///< of what dX is rounded to
  bool has_float_terms = false;  ///< GradientSizes::named_in_float is wanted
};

/// Of the gradients of a call, all 0.
GradientValues zeros_for(const DenseProblem& problem, const GradientInputs& inputs);

/// Gradients by their definition, with sums in Score.
template <typename Score>
GradientValues sweep_gradients(const DenseProblem& problem, const GradientInputs& inputs,
                               const RowSnippets<Score>& snippets, const RowSlopes<Score>& slopes,
                               const GradientRounding<Score>& rounding, Executor& threads);

/// The reference, which also says how large its terms are.
GradientValues sweep_reference(const DenseProblem& problem, const GradientInputs& inputs,
                               const RowSnippets<double>& snippets, const RowSlopes<double>& slopes,
                               const GradientRounding<double>& rounding, const FloatSearch& search,
                               GradientSizes& sizes, Executor& threads);

}  // namespace tilewright::verify
