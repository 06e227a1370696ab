#include "verify/judge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/printable_number.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify {
namespace {

// judge.hpp derives them.
constexpr double kLseShare = 4e-5;
constexpr double kLseError16 = 2e-3;
constexpr double kLseShare16 = 0x1p-19;
constexpr double kLseShare8 = 1e-2;

// Greatest and root mean square error of a result, and the size of the reference where it counts.
struct Errors {
  double max = 0;
  double rms = 0;
  std::size_t worst = 0;  // index of the greatest error
};

struct Magnitude {
  double max = 0;
  double rms = 0;
};

double root_mean(double sum_of_squares, std::int64_t count) {
  return count == 0 ? 0 : std::sqrt(sum_of_squares / static_cast<double>(count));
}

// Whether the reference, an infinite one too, reaches the greatest number of an 8-bit out.
bool is_clamped(double reference, DType out_dtype) {
  return is_float8(out_dtype) && std::isfinite(round_to(out_dtype, reference)) &&
         std::fabs(reference) >= std::fabs(round_to(out_dtype, std::copysign(1e300, reference)));
}

bool counts(double reference, DType out_dtype) {
  return std::isfinite(round_to(out_dtype, reference)) && !is_clamped(reference, out_dtype);
}

// Elements where the result is not finite are left out: they are judged by their pattern.
Errors errors_of(const Values& result, const Values& reference, DType out_dtype) {
  Errors errors;
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < reference.data.size(); ++i) {
    if (!counts(reference.data[i], out_dtype) || !std::isfinite(result.data[i])) continue;
    const double error = std::fabs(result.data[i] - reference.data[i]);
    if (error > errors.max) {
      errors.max = error;
      errors.worst = i;
    }
    sum += error * error;
    ++count;
  }
  errors.rms = root_mean(sum, count);
  return errors;
}

Magnitude magnitude_of(const Values& reference, DType out_dtype) {
  Magnitude magnitude;
  double sum = 0;
  std::int64_t count = 0;
  for (const double value : reference.data) {
    if (!counts(value, out_dtype)) continue;
    magnitude.max = std::max(magnitude.max, std::fabs(value));
    sum += value * value;
    ++count;
  }
  magnitude.rms = root_mean(sum, count);
  return magnitude;
}

// TF32 has the significant bits of f16, and the exponents of float32.
double spacing(const Rule& rule, double magnitude) {
  constexpr double kTf32OfF32 = 0x1p13;
  const double factor = rule.products == F32Products::tf32 ? kTf32OfF32 : 1;
  return std::max(factor * ulp_at(rule.dtype, magnitude), ulp_at(rule.out_dtype, magnitude));
}

double fast_math_error(const Rule& rule) {
  return std::ldexp(rule.fast_math_score.value_or(0), -11);
}

double factor_error(const Rule& rule) {
  return 3 * std::ldexp(rule.scaled_score.value_or(0), -24);
}

// An error of every score, in the same direction.
double score_error(const Rule& rule) {
  return fast_math_error(rule) + factor_error(rule);
}

double max_bound(const Errors& naive, const Magnitude& reference, const Rule& rule) {
  return rule.bound_factor *
         (2 * naive.max + 2 * spacing(rule, reference.max) + score_error(rule) * reference.max);
}

double rms_bound(const Errors& naive, const Magnitude& reference, const Rule& rule) {
  return rule.bound_factor *
         (2 * naive.rms + (rule.scales_values ? 1.25 : 0.25) * spacing(rule, reference.rms) +
          score_error(rule) * reference.rms);
}

// A verdict that is being made.
struct Judgement {
  const PlaceOfRow& place_of;
  Verdict verdict = {};
};

BadElement element_at(const Judgement& judgement, std::string tensor, const Values& got,
                      const Values& reference, std::size_t index) {
  const auto i = static_cast<std::int64_t>(index);
  RowPlace place{i / (got.width * got.rows * got.heads), i / got.width % got.rows};
  if (judgement.place_of) place = judgement.place_of(place.b, place.row);
  return {.tensor = std::move(tensor),
          .b = place.b,
          .h = i / (got.width * got.rows) % got.heads,
          .row = place.row,
          .column = i % got.width,
          .got = got.data[index],
          .wanted = reference.data[index]};
}

void blame(Verdict& verdict, std::string reason, const BadElement& element) {
  verdict.ok = false;
  verdict.reasons.push_back(std::move(reason));
  if (!verdict.first_bad) verdict.first_bad = element;
}

template <typename IsBad>
void judge_elements(Judgement& judgement, const std::string& tensor, const Values& got,
                    const Values& reference, const std::string& what, const IsBad& is_bad) {
  std::int64_t bad = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    if (!is_bad(got.data[i], reference.data[i])) continue;
    if (bad++ == 0) first = i;
  }
  if (bad == 0) return;
  const BadElement element = element_at(judgement, tensor, got, reference, first);
  blame(judgement.verdict,
        fmt::format("{}: {} of {} elements, first {}", what, bad, got.data.size(),
                    element.describe()),
        element);
}

// bound_of: how far an element may be from the reference.
template <typename BoundOf>
void judge_pattern(Judgement& judgement, const std::string& tensor, const Values& got,
                   const Values& reference, DType dtype, const BoundOf& bound_of) {
  judge_elements(judgement, tensor, got, reference, tensor + " has NaN or infinity in other places",
                 [&](double value, double wanted) {
                   return !same_pattern(value, wanted, bound_of(wanted), dtype);
                 });
}

// What a kernel may be off by may keep it below the greatest number, where the reference is not far
// beyond.
bool is_clamped_wrongly(double got, double wanted, double bound_max, DType out_dtype) {
  if (!is_clamped(wanted, out_dtype)) return false;
  const double least = round_to(out_dtype, std::fabs(wanted) - bound_max);
  return !(std::copysign(1.0, wanted) * got >= least);
}

void judge_clamped(Judgement& judgement, const Values& got, const Values& reference,
                   DType out_dtype) {
  judge_elements(judgement, "out", got, reference,
                 fmt::format("clamped values are not {}'s greatest", to_string(out_dtype)),
                 [&](double value, double wanted) {
                   return is_clamped_wrongly(value, wanted, judgement.verdict.bound_max, out_dtype);
                 });
}

void judge_max(Judgement& judgement, const Values& got, const Values& reference, DType out_dtype) {
  const Verdict& verdict = judgement.verdict;
  if (verdict.error_max <= verdict.bound_max) return;
  judge_elements(judgement, "out", got, reference,
                 fmt::format("the greatest error {:.3g} is above its bound {:.3g}",
                             verdict.error_max, verdict.bound_max),
                 [&](double value, double wanted) {
                   return counts(wanted, out_dtype) && std::isfinite(value) &&
                          std::fabs(value - wanted) > verdict.bound_max;
                 });
}

void judge_rms(Judgement& judgement, const Values& got, const Values& reference,
               std::size_t worst) {
  Verdict& verdict = judgement.verdict;
  if (verdict.error_rms <= verdict.bound_rms) return;
  blame(verdict,
        fmt::format("the RMS error {:.3g} is above its bound {:.3g}", verdict.error_rms,
                    verdict.bound_rms),
        element_at(judgement, "out", got, reference, worst));
}

// What a row's error is measured by.
double size_of_row(double reference, const Rule& rule) {
  return rule.products == F32Products::tf32 ? 1 : std::max(1.0, std::fabs(reference));
}

// naive_lse or naive_max_scores; 0 where naive has none.
double naive_error_of_rows(const Values& naive, const Values& reference, const Rule& rule) {
  if (naive.data.empty()) return 0;
  double greatest = 0;
  for (std::size_t i = 0; i < reference.data.size(); ++i) {
    if (!std::isfinite(reference.data[i]) || !std::isfinite(naive.data[i])) continue;
    const double error = std::fabs(naive.data[i] - reference.data[i]);
    greatest = std::max(greatest, error / size_of_row(reference.data[i], rule));
  }
  return greatest;
}

// The error of lse or max_scores at the row that comes nearest to its bound.
struct RowError {
  double error = 0;
  double bound = 0;
};

RowError measure_rows(const Values& got, const Values& reference, const Rule& rule,
                      double naive_error) {
  RowError worst;
  double worst_share = -1;
  for (std::size_t i = 0; i < reference.data.size(); ++i) {
    if (!std::isfinite(reference.data[i]) || !std::isfinite(got.data[i])) continue;
    const double error = std::fabs(got.data[i] - reference.data[i]);
    const double bound = lse_bound(reference.data[i], rule, naive_error);
    if (error / bound <= worst_share) continue;
    worst_share = error / bound;
    worst = {error, bound};
  }
  return worst;
}

// name: "lse" or "max_scores".
RowError judge_rows(Judgement& judgement, const std::string& name, const Values& got,
                    const Values& reference, const Rule& rule, double naive_error) {
  judge_pattern(judgement, name, got, reference, DType::f32,
                [&](double wanted) { return lse_bound(wanted, rule, naive_error); });
  const RowError worst = measure_rows(got, reference, rule, naive_error);
  if (worst.error <= worst.bound) return worst;
  judge_elements(
      judgement, name, got, reference,
      fmt::format("{} is off by {:.3g}, above its bound {:.3g}", name, worst.error, worst.bound),
      [&](double value, double wanted) {
        return std::isfinite(value) && std::isfinite(wanted) &&
               std::fabs(value - wanted) > lse_bound(wanted, rule, naive_error);
      });
  return worst;
}

// What each weight may be off by in proportion to itself, as the lse that it is made from is.
double weight_share(const Values& lse, const Rule& rule, double naive_lse) {
  double greatest = 0;
  for (const double value : lse.data) {
    if (std::isfinite(value)) greatest = std::max(greatest, lse_bound(value, rule, naive_lse));
  }
  return greatest;
}

// Dropped elements among them. Where naive's float has a weight, the kernel's may have one too.
void judge_zeros(Judgement& judgement, const Values& got, const Values& reference,
                 const Values& naive) {
  Values zeros = reference;
  for (std::size_t i = 0; i < zeros.data.size(); ++i) {
    if (naive.data[i] != 0) zeros.data[i] = naive.data[i];
  }
  judge_elements(judgement, "weights", got, zeros, "weights of dropped elements are not 0",
                 [](double value, double wanted) { return wanted == 0 && value != 0; });
}

void judge_weights(Judgement& judgement, const AttentionValues& got,
                   const AttentionValues& reference, const AttentionValues& naive,
                   const Rule& rule) {
  Verdict& verdict = judgement.verdict;
  const Errors errors = errors_of(got.weights, reference.weights, rule.out_dtype);
  const Errors naive_errors = errors_of(naive.weights, reference.weights, rule.out_dtype);
  const Magnitude magnitude = magnitude_of(reference.weights, rule.out_dtype);
  const double share = weight_share(reference.lse, rule, verdict.naive_lse);
  verdict.weights_error = errors.max;
  verdict.weights_bound = max_bound(naive_errors, magnitude, rule) + share * magnitude.max;
  const double rms = rms_bound(naive_errors, magnitude, rule) + share * magnitude.rms;
  judge_pattern(judgement, "weights", got.weights, reference.weights, rule.out_dtype,
                [&](double) { return verdict.weights_bound; });
  judge_zeros(judgement, got.weights, reference.weights, naive.weights);
  if (errors.max > verdict.weights_bound) {
    judge_elements(judgement, "weights", got.weights, reference.weights,
                   fmt::format("weights are off by {:.3g}, above their bound {:.3g}", errors.max,
                               verdict.weights_bound),
                   [&](double value, double wanted) {
                     return std::fabs(value - wanted) > verdict.weights_bound;
                   });
  }
  if (errors.rms <= rms) return;
  blame(verdict,
        fmt::format("the RMS error {:.3g} of weights is above its bound {:.3g}", errors.rms, rms),
        element_at(judgement, "weights", got.weights, reference.weights, errors.worst));
}

void require_same_size(const char* name, const Values& values, const Values& reference) {
  if (values.batch == reference.batch && values.heads == reference.heads &&
      values.rows == reference.rows && values.width == reference.width) {
    return;
  }
  throw Error(ErrorCode::usage,
              fmt::format("{} is [{}, {}, {}, {}], but the reference is [{}, {}, {}, {}]", name,
                          values.batch, values.heads, values.rows, values.width, reference.batch,
                          reference.heads, reference.rows, reference.width));
}

}  // namespace

bool is_near_overflow(double reference, double bound, DType dtype) {
  return std::isfinite(reference) &&
         std::isinf(round_to(dtype, std::fabs(reference) + bound + 2 * ulp_at(dtype, reference)));
}

bool same_pattern(double got, double reference, double bound, DType dtype) {
  const double wanted = round_to(dtype, reference);
  if (is_near_overflow(reference, bound, dtype)) {
    const double least = std::fabs(reference) - bound - 2 * ulp_at(dtype, reference);
    return std::copysign(1.0, reference) * got >= round_to(dtype, least);
  }
  if (std::isfinite(wanted)) return std::isfinite(got);
  if (std::isnan(wanted)) return std::isnan(got);
  return got == wanted;
}

double lse_bound(double reference, const Rule& rule, double naive_error) {
  const double magnitude = std::fabs(reference);
  const double bound = rule.dtype == DType::f32 ? kLseShare * std::max(1.0, magnitude)
                       : is_float8(rule.dtype)  ? kLseShare8 * std::max(1.0, magnitude)
                                                : kLseError16 + kLseShare16 * magnitude;
  return bound + 2 * naive_error * size_of_row(reference, rule) + fast_math_error(rule);
}

std::string BadElement::describe() const {
  const std::string place =
      tensor == "out" || tensor == "weights"
          ? fmt::format("{}[b {}, h {}, row {}, column {}]", tensor, b, h, row, column)
          : fmt::format("{}[b {}, h {}, row {}]", tensor, b, h, row);
  return fmt::format("{} is {:.9g}, but the reference is {:.9g}", place, printable(got),
                     printable(wanted));
}

Verdict judge(const AttentionValues& got, const AttentionValues& reference,
              const AttentionValues& naive, const Rule& rule, const PlaceOfRow& place_of) {
  const DefaultFloatEnvironment floats;
  require_same_size("out", got.out, reference.out);
  require_same_size("the naive out", naive.out, reference.out);
  const Errors errors = errors_of(got.out, reference.out, rule.out_dtype);
  const Errors naive_errors = errors_of(naive.out, reference.out, rule.out_dtype);
  const Magnitude magnitude = magnitude_of(reference.out, rule.out_dtype);

  Judgement judgement{place_of};
  Verdict& verdict = judgement.verdict;
  verdict.error_max = errors.max;
  verdict.error_rms = errors.rms;
  verdict.naive_max = naive_errors.max;
  verdict.naive_rms = naive_errors.rms;
  verdict.naive_lse = naive_error_of_rows(naive.lse, reference.lse, rule);
  verdict.naive_max_scores = naive_error_of_rows(naive.max_scores, reference.max_scores, rule);
  verdict.bound_max = max_bound(naive_errors, magnitude, rule);
  verdict.bound_rms = rms_bound(naive_errors, magnitude, rule);

  judge_pattern(judgement, "out", got.out, reference.out, rule.out_dtype,
                [&](double) { return verdict.bound_max; });
  judge_clamped(judgement, got.out, reference.out, rule.out_dtype);
  judge_max(judgement, got.out, reference.out, rule.out_dtype);
  judge_rms(judgement, got.out, reference.out, errors.worst);
  if (!got.lse.data.empty() && !reference.lse.data.empty()) {
    require_same_size("lse", got.lse, reference.lse);
    const RowError worst =
        judge_rows(judgement, "lse", got.lse, reference.lse, rule, verdict.naive_lse);
    verdict.lse_error = worst.error;
    verdict.lse_bound = worst.bound;
  }
  if (!got.max_scores.data.empty() && !reference.max_scores.data.empty()) {
    require_same_size("max_scores", got.max_scores, reference.max_scores);
    const RowError worst = judge_rows(judgement, "max_scores", got.max_scores, reference.max_scores,
                                      rule, verdict.naive_max_scores);
    verdict.max_scores_error = worst.error;
    verdict.max_scores_bound = worst.bound;
  }
  if (!got.weights.data.empty() && !reference.weights.data.empty()) {
    require_same_size("weights", got.weights, reference.weights);
    require_same_size("the naive weights", naive.weights, reference.weights);
    judge_weights(judgement, got, reference, naive, rule);
  }
  return std::move(judgement.verdict);
}

}  // namespace tilewright::verify
