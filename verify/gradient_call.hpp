#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/executor.hpp"
#include "../runtime/api/toolchain.hpp"
#include "gradient_cells.hpp"
#include "gradient_sweep.hpp"
#include "parts.hpp"
#include "problem.hpp"
#include "slopes_evaluator.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// What a call of the backward pass read and wrote, on the host.
struct GradientResults {
  TensorView dout = {};
  /// As forward stored it and backward read it; none: the reference's own, rounded to its dtype.
  std::optional<TensorView> out = {};
  std::optional<TensorView> dlse = {};
  std::map<std::string, TensorView> gradients = {};  ///< "dq", "dk", "dv", "d_slopes"
  bool fast_math = false;  ///< the kernel's snippets use fast functions (uses_fast_math)
  /// Not of this project's kernels: terms of buffers and scalars may be rounded to the spec's
  /// dtype.
  bool is_from_elsewhere = false;

  /// Whether gradients of buffers and scalars are held to float32's terms (gradient_rule.hpp).
  /// Without out delta has the roundings of 16 bits.
  bool has_float_terms(DType spec_dtype) const {
    return spec_dtype != DType::f32 && out && !is_from_elsewhere;
  }
};

/// A call of the backward pass, computed once more.
class GradientCall {
 public:
  /// All arguments must outlive it. @throws Error as load_kernel
  GradientCall(const Spec& spec, const Problem& problem, const GradientResults& results,
               const Toolchain& toolchain, Executor& threads);

  /// In double. @param sizes becomes what else it says
  GradientValues reference(GradientSizes& sizes) const;
  /// As a naive implementation has it. @param draw 0: rounds to nearest; another one stochastically
  GradientValues naive(std::size_t draw) const;
  /// With S, P, dP and dS in float32.
  GradientValues naive_in_float() const;
  /// Not 0 where NaN and infinity of the inputs and of scores may be. @param sizes of reference
  GradientValues spread(const GradientSizes& sizes) const;
  /// Where score_mod's derivative is not what it says; empty where it is.
  std::string find_wrong_derivative() const;

  /// Rows of values like q's that belong to a sequence, or all of a dense call: the others are not
  /// written, so they are not looked at.
  std::vector<double> rows_of_parts(const Values& values) const;
  const GradientCells& cells() const { return cells_; }
  double elements_of_scores() const;

 private:
  GradientValues zeros() const;
  GradientValues naive(const GradientRounding<float>& rounding) const;
  DenseProblem read(const Parts::Piece& piece) const;
  GradientInputs inputs(const Parts::Piece& piece) const;
  template <typename Score, typename Interpretation>
  RowSnippets<Score> snippets(const Interpretation& interpretation,
                              const Parts::Piece& piece) const;
  template <typename Score>
  RowSlopes<Score> slopes_of(const SlopesEvaluator<Score>& evaluator,
                             const Parts::Piece& piece) const;

  const Spec& spec_;
  const Problem& problem_;
  const GradientResults& results_;
  Executor& threads_;
  Parts parts_;
  std::vector<const Parts::Piece*> parts_with_scores_ = {};
  Values dout_;
  std::optional<Values> dlse_ = {}, out_ = {};
  FloatInterpretation in_float_;
  DoubleInterpretation in_double_;
  SlopesEvaluator<float> float_slopes_;
  SlopesEvaluator<double> double_slopes_;
  GradientCells cells_;
};

}  // namespace tilewright::verify
