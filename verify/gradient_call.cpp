#include "verify/gradient_call.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "generator/spec/gradients.hpp"
#include "runtime/io/float16.hpp"
#include "verify/central_differences.hpp"
#include "verify/digits.hpp"
#include "verify/gradient_rule.hpp"
#include "verify/gradient_spread.hpp"
#include "verify/gradient_sums.hpp"
#include "verify/positions.hpp"
#include "verify/stochastic_rounding.hpp"

namespace tilewright::verify {
namespace {

double greatest_of(DType dtype) {
  return dtype == DType::f16    ? 65504
         : dtype == DType::bf16 ? 0x1.FEp127
                                : std::numeric_limits<float>::max();
}

}  // namespace

GradientCall::GradientCall(const Spec& spec, const Problem& problem, const GradientResults& results,
                           const Toolchain& toolchain, Executor& threads)
    : spec_(spec),
      problem_(problem),
      results_(results),
      threads_(threads),
      parts_(spec, problem),
      dout_(read_values(results.dout, spec.layout)),
      in_float_(spec, toolchain),
      in_double_(spec, toolchain),
      float_slopes_(spec, toolchain),
      double_slopes_(spec, toolchain) {
  if (results.dlse) dlse_ = read_lse(*results.dlse);
  if (results.out) out_ = read_values(*results.out, spec.layout);
  for (const std::string& name : gradient_names(spec)) {
    cells_.add(name, results.gradients.at("d_" + name));
  }
  for (const Parts::Piece& piece : parts_.pieces()) {
    if (piece.score_rows() > 0 && piece.columns() > 0) parts_with_scores_.push_back(&piece);
  }
}

double GradientCall::elements_of_scores() const {
  double elements = 0;
  for (const Parts::Piece* piece : parts_with_scores_) {
    elements += static_cast<double>(piece->score_rows()) * static_cast<double>(piece->columns());
  }
  return elements;
}

GradientValues GradientCall::zeros() const {
  const auto like = [](const Values& values) {
    return Values::zeros(values.batch, values.heads, values.rows, values.width);
  };
  return {.dq = like(read_values(problem_.q, spec_.layout)),
          .dk = like(read_values(problem_.k, spec_.key_value_layout())),
          .dv = like(read_values(problem_.v, spec_.key_value_layout())),
          .named = std::vector<double>(static_cast<std::size_t>(cells_.count()))};
}

DenseProblem GradientCall::read(const Parts::Piece& piece) const {
  DenseProblem dense = parts_.read(piece);
  if (spec_.has_other_snippets()) {
    apply_scales(spec_, scale_values(in_float_, in_double_), piece.arguments, piece.b, 0, dense);
  }
  return dense;
}

GradientInputs GradientCall::inputs(const Parts::Piece& piece) const {
  GradientInputs inputs{.dout = problem_.sequences ? take_rows(dout_, piece) : dout_,
                        .named = cells_.arguments(),
                        .cells = cells_.count()};
  if (dlse_) inputs.dlse = problem_.sequences ? take_rows(*dlse_, piece) : *dlse_;
  if (out_) inputs.out = problem_.sequences ? take_rows(*out_, piece) : *out_;
  return inputs;
}

// What is kept is decided in float, as the kernel does.
template <typename Score, typename Interpretation>
RowSnippets<Score> GradientCall::snippets(const Interpretation& interpretation,
                                          const Parts::Piece& piece) const {
  return
      [this, &interpretation, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                      const Score* scores, Score* modified, unsigned char* keep) {
        interpretation.row(piece.arguments, piece.b + b, h, row, scores, modified, keep);
        if (sizeof(Score) > sizeof(float)) {
          const auto count = static_cast<std::size_t>(piece.columns());
          const std::vector<float> as_float(scores, scores + count);
          std::vector<float> unused(count);
          in_float_.row(piece.arguments, piece.b + b, h, row, as_float.data(), unused.data(), keep);
        }
        if (problem_.positions) PositionTiles(*problem_.positions, piece).apply(h, row, keep);
      };
}

template <typename Score>
RowSlopes<Score> GradientCall::slopes_of(const SlopesEvaluator<Score>& evaluator,
                                         const Parts::Piece& piece) const {
  return {.slopes =
              [&evaluator, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                   const Score* scores, Score* slopes) {
                evaluator.row(piece.arguments, piece.b + b, h, row, scores, slopes);
              },
          .add =
              [this, &evaluator, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                         const Score* scores, const Score* dy, double* sums) {
                evaluator.add(piece.arguments, piece.b + b, h, row, scores, dy,
                              cells_.arguments().data(), sums);
              },
          .add_magnitudes =
              [this, &evaluator, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                         const Score* scores, const Score* dy, double* sums) {
                evaluator.add_magnitudes(piece.arguments, piece.b + b, h, row, scores, dy,
                                         cells_.arguments().data(), sums);
              }};
}

GradientValues GradientCall::reference(GradientSizes& whole) const {
  GradientValues gradients = zeros();
  whole = {.terms = gradients,
           .own = gradients,
           .named_magnitudes = std::vector<double>(static_cast<std::size_t>(cells_.count())),
           .named_in_float = std::vector<double>(static_cast<std::size_t>(cells_.count())),
           .ambiguous = gradients,
           .undefined = gradients,
           .overflow = gradients,
           .derivative_overflow = std::vector<double>(static_cast<std::size_t>(cells_.count()))};
  const GradientRounding<double> rounding{
      .out = [this](double x) { return round_to(spec_.output_dtype(), x); }};
  for (const Parts::Piece* piece : parts_with_scores_) {
    const RowSlopes<float> in_float = slopes_of<float>(float_slopes_, *piece);
    const RowSnippets<float> float_snippets = snippets<float>(in_float_, *piece);
    FloatSearch search{.greatest_dx = greatest_of(spec_.dtype),
                       .has_float_terms = results_.has_float_terms(spec_.dtype)};
    if (!spec_.score_mod.empty()) {
      search.slopes = &in_float;
      search.snippets = &float_snippets;
    }
    if (results_.fast_math) {
      search.share_of_score += kShareOfFastFunctions / 2;
      search.share_of_terms = kShareOfFastFunctions;
    }
    GradientSizes sizes;
    const GradientValues part = sweep_reference(
        read(*piece), inputs(*piece), snippets<double>(in_double_, *piece),
        slopes_of<double>(double_slopes_, *piece), rounding, search, sizes, threads_);
    add_part(part, *piece, false, gradients);
    add_part(sizes.terms, *piece, false, whole.terms);
    add_part(sizes.own, *piece, false, whole.own);
    whole.row_scores.insert(whole.row_scores.end(), sizes.row_scores.begin(),
                            sizes.row_scores.end());
    add_cells(sizes.named_magnitudes, false, whole.named_magnitudes);
    add_cells(sizes.named_in_float, false, whole.named_in_float);
    add_part(sizes.ambiguous, *piece, false, whole.ambiguous);
    add_part(sizes.undefined, *piece, false, whole.undefined);
    add_part(sizes.overflow, *piece, false, whole.overflow);
    add_cells(sizes.derivative_overflow, false, whole.derivative_overflow);
  }
  return gradients;
}

GradientValues GradientCall::naive(std::size_t draw) const {
  GradientRounding<float> rounding;
  const auto to = [draw](DType dtype) {
    return [draw, dtype](float x) {
      const auto exact = static_cast<double>(x);
      return static_cast<float>(draw == 0 ? round_digits(dtype, exact)
                                          : round_stochastically(dtype, exact, draw));
    };
  };
  if (spec_.dtype != DType::f32) rounding.tile = to(spec_.dtype);
  if (spec_.output_dtype() != DType::f32) rounding.out = to(spec_.output_dtype());
  return naive(rounding);
}

GradientValues GradientCall::naive_in_float() const {
  return naive(GradientRounding<float>());
}

GradientValues GradientCall::naive(const GradientRounding<float>& rounding) const {
  GradientValues whole = zeros();
  for (const Parts::Piece* piece : parts_with_scores_) {
    add_part(
        sweep_gradients<float>(read(*piece), inputs(*piece), snippets<float>(in_float_, *piece),
                               slopes_of<float>(float_slopes_, *piece), rounding, threads_),
        *piece, true, whole);
  }
  return whole;
}

GradientValues GradientCall::spread(const GradientSizes& sizes) const {
  GradientValues whole = sizes.undefined;
  for (const Parts::Piece* piece : parts_with_scores_) {
    const auto spread = gradient_spread(read(*piece), inputs(*piece),
                                        snippets<double>(in_double_, *piece), spec_.block);
    if (spread) add_part(*spread, *piece, false, whole);
  }
  return whole;
}

std::string GradientCall::find_wrong_derivative() const {
  return verify::find_wrong_derivative(parts_with_scores_, in_double_, double_slopes_);
}

std::vector<double> GradientCall::rows_of_parts(const Values& values) const {
  if (!problem_.sequences) return values.data;
  std::vector<double> rows;
  for (const Parts::Piece& piece : parts_.pieces()) {
    const Values part = take_rows(values, piece);
    rows.insert(rows.end(), part.data.begin(), part.data.end());
  }
  return rows;
}

}  // namespace tilewright::verify
