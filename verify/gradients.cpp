#include "verify/gradients.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "base/float_environment.hpp"
#include "base/printable_number.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/io/float16.hpp"
#include "verify/digits.hpp"
#include "verify/gradient_spread.hpp"
#include "verify/gradient_sweep.hpp"
#include "verify/judge.hpp"
#include "verify/parts.hpp"
#include "verify/positions.hpp"
#include "verify/random.hpp"
#include "verify/slopes_evaluator.hpp"
#include "verify/snippet_evaluator.hpp"

namespace tilewright::verify {
namespace {

constexpr double kShareOfTerms = 0x1p-22;
constexpr double kShareOfWeights = 0x1p-22;
constexpr double kErrorOfFastFunctions = 0x1p-11;  // of a score

double greatest_of(DType dtype) {
  return dtype == DType::f16    ? 65504
         : dtype == DType::bf16 ? 0x1.FEp127
                                : std::numeric_limits<float>::max();
}

// In [0, 1), of a number's bits: the same in every run and thread.
double uniform_of(double value, std::size_t draw) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(value) + draw * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return static_cast<double>((bits ^ bits >> 31) >> 11) * 0x1p-53;
}

// To a neighbour, the nearer one more often.
double round_stochastically(DType dtype, double value, std::size_t draw) {
  const double ulp = ulp_at(dtype, value);
  if (!std::isfinite(value) || !(ulp > 0)) return round_digits(dtype, value);
  const double below = std::floor(value / ulp) * ulp;
  return round_digits(dtype, uniform_of(value, draw) < (value - below) / ulp ? below + ulp : below);
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

struct GradientErrors {
  double max = 0, rms = 0, max_reference = 0, rms_reference = 0;
};

GradientErrors gradient_errors(const std::vector<double>& got, const std::vector<double>& reference,
                               const std::vector<double>& ambiguous, DType dtype) {
  GradientErrors errors;
  std::size_t count = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (!std::isfinite(round_to(dtype, reference[i])) || !std::isfinite(got[i])) continue;
    const double error = std::max(0.0, std::fabs(got[i] - reference[i]) - ambiguous[i]);
    errors.max = std::max(errors.max, error);
    errors.rms += error * error;
    errors.max_reference = std::max(errors.max_reference, std::fabs(reference[i]));
    errors.rms_reference += reference[i] * reference[i];
    ++count;
  }
  if (count == 0) return errors;
  errors.rms = std::sqrt(errors.rms / static_cast<double>(count));
  errors.rms_reference = std::sqrt(errors.rms_reference / static_cast<double>(count));
  return errors;
}

// One gradient of all three results.
struct Compared {
  std::string name;
  DType dtype = DType::f32;
  std::vector<double> got, reference, terms, of_weights;
  std::vector<double> ambiguous;  // how far an element may be off without being wrong
  std::vector<double> spread;     // not 0 where NaN or infinity of an input may be
  std::vector<double> overflow;   // as GradientSizes has it
  std::vector<std::vector<double>> naive;
  double share_of_terms = kShareOfTerms;
  double floor_of_sum = 0;  // what adding up its terms rounds
};

double greatest_magnitude(const std::vector<double>& values) {
  double greatest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) greatest = std::max(greatest, std::fabs(value));
  }
  return greatest;
}

// Elements of which nothing is known count nowhere.
void leave_out_unknown(Compared& one) {
  for (std::size_t i = 0; i < one.got.size(); ++i) {
    if (one.overflow[i] < GradientSizes::kUnknown) continue;
    one.got[i] = one.reference[i] = std::numeric_limits<double>::quiet_NaN();
    one.terms[i] = one.of_weights[i] = 0;
  }
}

std::int64_t count_unknown(const Compared& one) {
  return std::count_if(one.overflow.begin(), one.overflow.end(),
                       [](double x) { return x >= GradientSizes::kUnknown; });
}

GradientVerdict judge_one(const Compared& one, DType spec_dtype) {
  GradientVerdict verdict{.overflow = count_unknown(one)};
  for (const std::vector<double>& naive : one.naive) {
    std::vector<double> rounded;
    for (const double value : naive) rounded.push_back(round_to(one.dtype, value));
    const GradientErrors errors = gradient_errors(rounded, one.reference, one.ambiguous, one.dtype);
    verdict.naive_max = std::max(verdict.naive_max, errors.max);
    verdict.naive_rms = std::max(verdict.naive_rms, errors.rms);
  }
  const GradientErrors errors = gradient_errors(one.got, one.reference, one.ambiguous, one.dtype);
  const auto ulp = [&](double magnitude) {
    return std::max(ulp_at(one.dtype, magnitude), ulp_at(spec_dtype, magnitude));
  };
  const double floor = one.share_of_terms * greatest_magnitude(one.terms) +
                       kShareOfWeights * greatest_magnitude(one.of_weights) + one.floor_of_sum;
  verdict.error_max = errors.max;
  verdict.error_rms = errors.rms;
  verdict.bound_max = 2 * verdict.naive_max + 2 * ulp(errors.max_reference) + floor;
  verdict.bound_rms = 2 * verdict.naive_rms + ulp(errors.rms_reference) / 4 + floor;
  if (errors.max > verdict.bound_max) {
    verdict.reasons.push_back(fmt::format("{}: the greatest error is {:.4g}, at most {:.4g}",
                                          one.name, errors.max, verdict.bound_max));
  }
  if (errors.rms > verdict.bound_rms) {
    verdict.reasons.push_back(fmt::format("{}: the RMS error is {:.4g}, at most {:.4g}", one.name,
                                          errors.rms, verdict.bound_rms));
  }
  for (std::size_t i = 0; i < one.got.size(); ++i) {
    const double reference = one.reference[i];
    if (same_pattern(one.got[i], reference, verdict.bound_max + one.ambiguous[i], one.dtype))
      continue;
    if (one.overflow[i] != 0 && !std::isfinite(one.got[i])) {
      ++verdict.overflow;
      continue;
    }
    if (one.spread[i] != 0 && !std::isfinite(one.got[i])) {
      ++verdict.spread;
      continue;
    }
    verdict.reasons.push_back(fmt::format("{}: element {} is {}, but the reference is {}", one.name,
                                          i, printable(one.got[i]), printable(reference)));
    break;
  }
  verdict.ok = verdict.reasons.empty();
  return verdict;
}

// Gradients of whole tensors: the sums over the parts of a call.
struct WholeGradients {
  Values dq, dk, dv;
  std::vector<double> named;
};

void add(const std::vector<double>& from, std::vector<double>& to, bool in_float) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] += from[i];
    if (in_float) to[i] = static_cast<double>(static_cast<float>(to[i]));
  }
}

// Adds a part's rows to those of the whole from `first` on.
void add_rows(const Values& part, std::int64_t first, Values& whole, bool in_float) {
  for (std::int64_t b = 0; b < part.batch; ++b) {
    for (std::int64_t h = 0; h < part.heads; ++h) {
      for (std::int64_t i = 0; i < part.rows * part.width; ++i) {
        double& sum = whole.row(b, h, first)[i];
        sum += part.row(b, h, 0)[i];
        if (in_float) sum = static_cast<double>(static_cast<float>(sum));
      }
    }
  }
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
    WholeGradients terms = zeros(), of_weights = zeros(), ambiguous = zeros(), overflow = zeros();
    WholeGradients spread = spread_of_inputs();
    const WholeGradients reference =
        reference_gradients(terms, of_weights, ambiguous, spread, overflow);
    std::vector<WholeGradients> naive;
    const std::size_t draws = spec_.dtype == DType::f32 ? 1 : 4;
    for (std::size_t draw = 0; draw < draws; ++draw) naive.push_back(naive_gradients(draw));

    std::map<std::string, GradientVerdict> verdicts;
    for (const auto& [name, view] : results_.gradients) {
      Compared one{.name = name, .dtype = view.dtype};
      one.got = got(name, view);
      one.reference = part_of(reference, name);
      one.terms = part_of(terms, name);
      one.of_weights = part_of(of_weights, name);
      one.ambiguous = part_of(ambiguous, name);
      one.spread = part_of(spread, name);
      one.overflow = part_of(overflow, name);
      for (const WholeGradients& draw : naive) one.naive.push_back(part_of(draw, name));
      if (name.starts_with("d_")) {
        const double elements =
            elements_of_scores() / static_cast<double>(std::max<std::size_t>(one.got.size(), 1));
        one.floor_of_sum = std::sqrt(std::max(elements, 1.0)) * 0x1p-24 *
                           greatest_magnitude(cells_of(name, named_magnitudes_));
      }
      if (results_.fast_math) one.share_of_terms += 0x1p-10 * greatest_score_;
      mark_large_sums(one);
      leave_out_unknown(one);
      verdicts.emplace(name, judge_one(one, spec_.dtype));
    }
    if (const std::string doubt = disagreement(); !doubt.empty()) {
      for (auto& [name, verdict] : verdicts) {
        verdict.ok = false;
        verdict.reasons.push_back(doubt);
      }
    }
    return verdicts;
  }

 private:
  // Kernels multiply the sums of dq and dk by the scale in the end.
  void mark_large_sums(Compared& one) const {
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

  WholeGradients zeros() const {
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

  // Of a part to those of the whole.
  static void take(const GradientValues& part, const Parts::Piece& piece, bool in_float,
                   WholeGradients& sums) {
    add_rows(part.dq, piece.row, sums.dq, in_float);
    add_rows(part.dk, piece.kv_row, sums.dk, in_float);
    add_rows(part.dv, piece.kv_row, sums.dv, in_float);
    add(part.named, sums.named, in_float);
  }

  // named_magnitudes_ are the reference's too.
  WholeGradients reference_gradients(WholeGradients& terms, WholeGradients& of_weights,
                                     WholeGradients& ambiguous, WholeGradients& spread,
                                     WholeGradients& overflow) {
    WholeGradients whole = zeros();
    named_magnitudes_.assign(static_cast<std::size_t>(cells_), 0);
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
      take(part, *piece, false, whole);
      take(sizes.terms, *piece, false, terms);
      take(sizes.of_weights, *piece, false, of_weights);
      add(sizes.named_magnitudes, named_magnitudes_, false);
      take(sizes.ambiguous, *piece, false, ambiguous);
      take(sizes.undefined, *piece, false, spread);
      take(sizes.overflow, *piece, false, overflow);
    }
    return whole;
  }

  WholeGradients spread_of_inputs() const {
    WholeGradients whole = zeros();
    for (const Parts::Piece* piece : parts_with_scores_) {
      const auto spread = gradient_spread(read(*piece), inputs(*piece),
                                          snippets<double>(in_double_, *piece), spec_.block);
      if (spread) take(*spread, *piece, false, whole);
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
      if (sizeof(Score) > sizeof(float)) {
        take_greatest(modified, keep, static_cast<std::size_t>(piece.columns()));
      }
    };
  }

  // The greatest magnitude of a row's kept scores after score_mod.
  template <typename Score>
  void take_greatest(const Score* modified, const unsigned char* keep, std::size_t count) const {
    double greatest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto score = static_cast<double>(modified[i]);
      if (keep[i] != 0 && std::isfinite(score)) greatest = std::max(greatest, std::fabs(score));
    }
    double seen = greatest_score_;
    while (seen < greatest && !greatest_score_.compare_exchange_weak(seen, greatest)) {
    }
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

  WholeGradients naive_gradients(std::size_t draw) {
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
    WholeGradients whole = zeros();
    for (const Parts::Piece* piece : parts_with_scores_) {
      take(sweep_gradients<float>(read(*piece), inputs(*piece), snippets<float>(in_float_, *piece),
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

  std::vector<double> part_of(const WholeGradients& values, const std::string& name) const {
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

  // The derivative by the score against central differences, on a few rows.
  std::string disagreement() const {
    if (parts_with_scores_.empty()) return {};
    Random random(5, "central differences");
    for (std::int64_t sample = 0; sample < 16; ++sample) {
      const std::int64_t last = static_cast<std::int64_t>(parts_with_scores_.size()) - 1;
      const std::int64_t part = last == 0 ? 0 : random.integer(0, last);
      const std::string doubt =
          disagreement_in(*parts_with_scores_[static_cast<std::size_t>(part)], random);
      if (!doubt.empty()) return doubt;
    }
    return {};
  }

  std::string disagreement_in(const Parts::Piece& piece, Random& random) const {
    const auto count = static_cast<std::size_t>(piece.columns());
    std::vector<double> scores(count), low(count), middle(count), high(count), slope(count);
    std::vector<unsigned char> keep(count);
    const double h = 0x1p-16;
    const std::int64_t b = piece.b + random.integer(0, piece.batch - 1);
    const std::int64_t head = random.integer(0, piece.arguments.num_q_heads - 1);
    const std::int64_t row = random.integer(0, piece.rows() - 1);
    for (double& score : scores) score = random.normal();
    const auto evaluate = [&](double shift, std::vector<double>& modified) {
      std::vector<double> shifted = scores;
      for (double& score : shifted) score += shift;
      in_double_.row(piece.arguments, b, head, row, shifted.data(), modified.data(), keep.data());
    };
    evaluate(-h, low);
    evaluate(0, middle);
    evaluate(h, high);
    double_slopes_.row(piece.arguments, b, head, row, scores.data(), slope.data());
    for (std::size_t c = 0; c < count; ++c) {
      const double left = (middle[c] - low[c]) / h, right = (high[c] - middle[c]) / h;
      const double wanted = (left + right) / 2, size = 1 + std::fabs(wanted);
      // Each value is rounded by 2^-53 of it: a large one swallows the differences.
      const double greatest =
          std::max({std::fabs(low[c]), std::fabs(middle[c]), std::fabs(high[c])});
      const bool is_smooth = std::fabs(left - right) < 1e-3 * size;
      const bool is_exact = greatest * 0x1p-53 / h < 1e-4 * size;
      if (!is_smooth || !is_exact || std::fabs(slope[c] - wanted) <= 1e-3 * size) continue;
      return fmt::format(
          "the derivative of score_mod is {} at b {}, h {}, row {}, column {} for score {}, but "
          "central differences give {}",
          printable(slope[c]), b, head, row, c, scores[c], wanted);
    }
    return {};
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
  std::vector<double> named_magnitudes_ = {};
  std::map<std::string, std::pair<std::size_t, std::size_t>> first_;
  mutable std::atomic<double> greatest_score_ = 0;  // of all magnitudes, in double precision
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
