#include "verify/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/float_environment.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/io/float16.hpp"
#include "verify/central_differences.hpp"
#include "verify/digits.hpp"
#include "verify/gradient_spread.hpp"
#include "verify/gradient_sums.hpp"
#include "verify/gradient_sweep.hpp"
#include "verify/parts.hpp"
#include "verify/positions.hpp"
#include "verify/slopes_evaluator.hpp"
#include "verify/snippet_evaluator.hpp"
#include "verify/stochastic_rounding.hpp"

namespace tilewright::verify {
namespace {

constexpr double kErrorOfFastFunctions = 0x1p-11;  // of a score

double greatest_of(DType dtype) {
  return dtype == DType::f16    ? 65504
         : dtype == DType::bf16 ? 0x1.FEp127
                                : std::numeric_limits<float>::max();
}

std::vector<double> elements_of(const TensorView& view) {
  std::vector<double> elements;
  for (std::int64_t i = 0; i < view.numel(); ++i) {
    std::int64_t rest = i, at = 0;
    for (std::size_t d = static_cast<std::size_t>(view.rank); d-- > 0;) {
      at += rest % view.shape[d] * view.strides[d];
      rest /= view.shape[d];
    }
    elements.push_back(read_element(view.data, view.dtype, at));
  }
  return elements;
}

class GradientJudge {
 public:
  GradientJudge(const Spec& spec, const Problem& problem, const GradientResults& results,
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
    for (const std::string& name : gradient_names(spec)) add_named(name);
    for (const Parts::Piece& piece : parts_.pieces()) {
      if (piece.score_rows() > 0 && piece.columns() > 0) parts_with_scores_.push_back(&piece);
    }
  }

  std::map<std::string, GradientVerdict> run() {
    GradientSizes sizes = no_sizes();
    const GradientValues reference = reference_gradients(sizes);
    const GradientValues spread = spread_of(sizes);
    std::vector<GradientValues> naive;
    const std::size_t draws = spec_.dtype == DType::f32 ? 1 : 4;
    for (std::size_t draw = 0; draw < draws; ++draw) naive.push_back(naive_gradients(draw));

    std::map<std::string, GradientVerdict> verdicts;
    for (const auto& [name, view] : results_.gradients) {
      ComparedGradient one{.name = name, .dtype = view.dtype};
      one.got = got(name, view);
      one.reference = part_of(reference, name);
      one.terms = part_of(sizes.terms, name);
      one.of_weights = part_of(sizes.of_weights, name);
      one.ambiguous = part_of(sizes.ambiguous, name);
      one.spread = part_of(spread, name);
      one.overflow = part_of(sizes.overflow, name);
      for (const GradientValues& draw : naive) one.naive.push_back(part_of(draw, name));
      if (name.starts_with("d_")) {
        const double elements =
            elements_of_scores() / static_cast<double>(std::max<std::size_t>(one.got.size(), 1));
        one.magnitudes = cells_of(name, sizes.named_magnitudes);
        one.share_of_magnitudes = std::sqrt(std::max(elements, 1.0)) * 0x1p-24;
      }
      if (results_.fast_math) one.share_of_terms += 0x1p-10 * sizes.greatest_score;
      mark_large_sums(one);
      verdicts.emplace(name, judge_gradient(std::move(one), spec_.dtype));
    }
    const std::string doubt = find_wrong_derivative(parts_with_scores_, in_double_, double_slopes_);
    if (!doubt.empty()) {
      for (auto& [name, verdict] : verdicts) {
        verdict.ok = false;
        verdict.reasons.push_back(doubt);
      }
    }
    return verdicts;
  }

 private:
  // Kernels multiply the sums of dq and dk by the scale in the end.
  void mark_large_sums(ComparedGradient& one) const {
    const double scale = std::fabs(scale_of(spec_, problem_));
    const bool is_scaled = one.name == "dq" || one.name == "dk";
    const double factor = is_scaled ? std::max(1.0, 1 / scale) : 1;
    for (std::size_t i = 0; i < one.terms.size(); ++i) {
      const double sum = one.terms[i] * factor;
      if (std::isfinite(sum) && sum >= std::numeric_limits<float>::max()) {
        one.overflow[i] = std::max(one.overflow[i], GradientSizes::kMayBeInfinite);
      }
    }
  }

  void add_named(const std::string& name) {
    const TensorView& view = results_.gradients.at("d_" + name);
    abi::GradientArgument gradient{.first = cells_, .size = {1, 1, 1, 1, 1}, .stride = {}};
    std::int64_t stride = 1;
    for (std::size_t d = static_cast<std::size_t>(view.rank); d-- > 0;) {
      gradient.size[d] = view.shape[d];
      gradient.stride[d] = view.shape[d] == 1 ? 0 : stride;
      stride *= view.shape[d];
    }
    named_.push_back(gradient);
    first_[name] = {static_cast<std::size_t>(cells_), static_cast<std::size_t>(stride)};
    cells_ += stride;
  }

  double elements_of_scores() const {
    double elements = 0;
    for (const Parts::Piece* piece : parts_with_scores_) {
      elements += static_cast<double>(piece->score_rows()) * static_cast<double>(piece->columns());
    }
    return elements;
  }

  GradientValues zeros() const {
    const auto like = [](const Values& values) {
      return Values::zeros(values.batch, values.heads, values.rows, values.width);
    };
    return {.dq = like(read_values(problem_.q, spec_.layout)),
            .dk = like(read_values(problem_.k, spec_.key_value_layout())),
            .dv = like(read_values(problem_.v, spec_.key_value_layout())),
            .named = std::vector<double>(static_cast<std::size_t>(cells_))};
  }

  DenseProblem read(const Parts::Piece& piece) const {
    DenseProblem dense = parts_.read(piece);
    if (spec_.has_other_snippets()) {
      apply_scales(spec_, scale_values(in_float_, in_double_), piece.arguments, piece.b, 0, dense);
    }
    return dense;
  }

  GradientInputs inputs(const Parts::Piece& piece) const {
    GradientInputs inputs{.dout = problem_.sequences ? take_rows(dout_, piece) : dout_,
                          .named = named_,
                          .cells = cells_};
    if (dlse_) inputs.dlse = problem_.sequences ? take_rows(*dlse_, piece) : *dlse_;
    if (out_) inputs.out = problem_.sequences ? take_rows(*out_, piece) : *out_;
    return inputs;
  }

  GradientSizes no_sizes() const {
    return {.terms = zeros(),
            .of_weights = zeros(),
            .named_magnitudes = std::vector<double>(static_cast<std::size_t>(cells_)),
            .ambiguous = zeros(),
            .undefined = zeros(),
            .overflow = zeros()};
  }

  // Adds to the sizes.
  GradientValues reference_gradients(GradientSizes& whole) const {
    GradientValues gradients = zeros();
    const GradientRounding<double> rounding{
        .out = [this](double x) { return round_to(spec_.output_dtype(), x); }};
    for (const Parts::Piece* piece : parts_with_scores_) {
      const RowSlopes<float> in_float = slopes_of<float>(float_slopes_, *piece);
      const RowSnippets<float> float_snippets = snippets<float>(in_float_, *piece);
      FloatSearch search{.greatest_dx = greatest_of(spec_.dtype)};
      if (!spec_.score_mod.empty()) {
        search.slopes = &in_float;
        search.snippets = &float_snippets;
      }
      if (results_.fast_math) search.share_of_score += kErrorOfFastFunctions;
      GradientSizes sizes;
      const GradientValues part = sweep_reference(
          read(*piece), inputs(*piece), snippets<double>(in_double_, *piece),
          slopes_of<double>(double_slopes_, *piece), rounding, search, sizes, threads_);
      add_part(part, *piece, false, gradients);
      add_part(sizes.terms, *piece, false, whole.terms);
      add_part(sizes.of_weights, *piece, false, whole.of_weights);
      add_cells(sizes.named_magnitudes, false, whole.named_magnitudes);
      add_part(sizes.ambiguous, *piece, false, whole.ambiguous);
      add_part(sizes.undefined, *piece, false, whole.undefined);
      add_part(sizes.overflow, *piece, false, whole.overflow);
      whole.greatest_score = std::max(whole.greatest_score, sizes.greatest_score);
    }
    return gradients;
  }

  // Where NaN and infinity of the inputs and of scores may be.
  GradientValues spread_of(const GradientSizes& sizes) const {
    GradientValues whole = sizes.undefined;
    for (const Parts::Piece* piece : parts_with_scores_) {
      const auto spread = gradient_spread(read(*piece), inputs(*piece),
                                          snippets<double>(in_double_, *piece), spec_.block);
      if (spread) add_part(*spread, *piece, false, whole);
    }
    return whole;
  }

  // What is kept is decided in float, as the kernel does.
  template <typename Score, typename Interpretation>
  RowSnippets<Score> snippets(const Interpretation& interpretation,
                              const Parts::Piece& piece) const {
    return [this, &interpretation, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                           const Score* scores, Score* modified,
                                           unsigned char* keep) {
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
  RowSlopes<Score> slopes_of(const SlopesEvaluator<Score>& evaluator,
                             const Parts::Piece& piece) const {
    return {.slopes =
                [&evaluator, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                     const Score* scores, Score* slopes) {
                  evaluator.row(piece.arguments, piece.b + b, h, row, scores, slopes);
                },
            .add =
                [this, &evaluator, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                           const Score* scores, const Score* dy, double* sums) {
                  evaluator.add(piece.arguments, piece.b + b, h, row, scores, dy, named_.data(),
                                sums);
                },
            .add_magnitudes =
                [this, &evaluator, &piece](std::int64_t b, std::int64_t h, std::int64_t row,
                                           const Score* scores, const Score* dy, double* sums) {
                  evaluator.add_magnitudes(piece.arguments, piece.b + b, h, row, scores, dy,
                                           named_.data(), sums);
                }};
  }

  GradientValues naive_gradients(std::size_t draw) {
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
    GradientValues whole = zeros();
    for (const Parts::Piece* piece : parts_with_scores_) {
      add_part(
          sweep_gradients<float>(read(*piece), inputs(*piece), snippets<float>(in_float_, *piece),
                                 slopes_of<float>(float_slopes_, *piece), rounding, threads_),
          *piece, true, whole);
    }
    return whole;
  }

  // Rows of q that belong to no sequence are not written, so they are not looked at.
  std::vector<double> rows_of_parts(const Values& values) const {
    if (!problem_.sequences) return values.data;
    std::vector<double> rows;
    for (const Parts::Piece& piece : parts_.pieces()) {
      const Values part = take_rows(values, piece);
      rows.insert(rows.end(), part.data.begin(), part.data.end());
    }
    return rows;
  }

  std::vector<double> got(const std::string& name, const TensorView& view) const {
    if (name.starts_with("d_")) return elements_of(view);
    if (name == "dq") return rows_of_parts(read_values(view, spec_.layout));
    return read_values(view, spec_.key_value_layout()).data;
  }

  std::vector<double> part_of(const GradientValues& values, const std::string& name) const {
    if (name == "dq") return rows_of_parts(values.dq);
    if (name == "dk") return values.dk.data;
    if (name == "dv") return values.dv.data;
    return cells_of(name, values.named);
  }

  std::vector<double> cells_of(const std::string& name, const std::vector<double>& named) const {
    const auto [first, count] = first_.at(name.substr(2));
    const auto begin = named.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

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
  std::vector<abi::GradientArgument> named_ = {};
  std::int64_t cells_ = 0;
  std::map<std::string, std::pair<std::size_t, std::size_t>> first_;
};

}  // namespace

std::map<std::string, GradientVerdict> judge_gradients(const Spec& spec, const Problem& problem,
                                                       const GradientResults& results,
                                                       const Toolchain& toolchain,
                                                       Executor& threads) {
  const DefaultFloatEnvironment floats;
  return GradientJudge(spec, problem, results, toolchain, threads).run();
}

}  // namespace tilewright::verify
