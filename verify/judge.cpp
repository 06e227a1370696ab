#include "verify/judge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify {
namespace {

// judge.hpp derives them.
constexpr double kLseShare = 4e-5;
constexpr double kLseError16 = 2e-3;
constexpr double kLseShare16 = 0x1p-19;

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

bool counts(double reference, DType out_dtype) {
  return std::isfinite(round_to(out_dtype, reference));
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

double spacing(const Rule& rule, double magnitude) {
  return std::max(ulp_at(rule.dtype, magnitude), ulp_at(rule.out_dtype, magnitude));
}

double fast_math_error(const Rule& rule) {
  return std::ldexp(rule.fast_math_score.value_or(0), -11);
}

double max_bound(const Errors& naive, const Magnitude& reference, const Rule& rule) {
  return rule.bound_factor *
         (2 * naive.max + 2 * spacing(rule, reference.max) + fast_math_error(rule) * reference.max);
}

double rms_bound(const Errors& naive, const Magnitude& reference, const Rule& rule) {
  return rule.bound_factor *
         (2 * naive.rms + spacing(rule, reference.rms) / 4 + fast_math_error(rule) * reference.rms);
}

// Both finite, both NaN, or the same infinity.
bool same_pattern(double got, double wanted) {
  if (std::isfinite(wanted)) return std::isfinite(got);
  if (std::isnan(wanted)) return std::isnan(got);
  return got == wanted;
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

void judge_pattern(Judgement& judgement, const std::string& tensor, const Values& got,
                   const Values& reference, DType dtype) {
  judge_elements(
      judgement, tensor, got, reference, tensor + " has NaN or infinity in other places",
      [&](double value, double wanted) { return !same_pattern(value, round_to(dtype, wanted)); });
}

void judge_max(Judgement& judgement, const Values& got, const Values& reference, DType out_dtype) {
  const Verdict& verdict = judgement.verdict;
  if (verdict.error_max <= verdict.bound_max) return;
  judge_elements(judgement, "out", got, reference,
                 fmt::format("the greatest error {:.3g} is above its bound {:.3g}",
                             verdict.error_max, verdict.bound_max),
                 [&](double value, double wanted) {
                   return counts(wanted, out_dtype) &&
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

void measure_lse(Verdict& verdict, const Values& got, const Values& reference, const Rule& rule) {
  double worst_share = -1;
  for (std::size_t i = 0; i < reference.data.size(); ++i) {
    if (!std::isfinite(reference.data[i]) || !std::isfinite(got.data[i])) continue;
    const double error = std::fabs(got.data[i] - reference.data[i]);
    const double bound = lse_bound(reference.data[i], rule);
    if (error / bound <= worst_share) continue;
    worst_share = error / bound;
    verdict.lse_error = error;
    verdict.lse_bound = bound;
  }
}

void judge_lse(Judgement& judgement, const Values& got, const Values& reference, const Rule& rule) {
  Verdict& verdict = judgement.verdict;
  judge_pattern(judgement, "lse", got, reference, DType::f32);
  measure_lse(verdict, got, reference, rule);
  if (verdict.lse_error <= verdict.lse_bound) return;
  judge_elements(judgement, "lse", got, reference,
                 fmt::format("lse is off by {:.3g}, above its bound {:.3g}", verdict.lse_error,
                             verdict.lse_bound),
                 [&](double value, double wanted) {
                   return std::isfinite(value) && std::isfinite(wanted) &&
                          std::fabs(value - wanted) > lse_bound(wanted, rule);
                 });
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

double lse_bound(double reference, const Rule& rule) {
  const double magnitude = std::fabs(reference);
  const double bound = rule.dtype == DType::f32 ? kLseShare * std::max(1.0, magnitude)
                                                : kLseError16 + kLseShare16 * magnitude;
  return bound + fast_math_error(rule);
}

std::string BadElement::describe() const {
  const std::string place =
      tensor == "lse" ? fmt::format("lse[b {}, h {}, row {}]", b, h, row)
                      : fmt::format("out[b {}, h {}, row {}, column {}]", b, h, row, column);
  return fmt::format("{} is {:.9g}, but the reference is {:.9g}", place, got, wanted);
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
  verdict.bound_max = max_bound(naive_errors, magnitude, rule);
  verdict.bound_rms = rms_bound(naive_errors, magnitude, rule);

  judge_pattern(judgement, "out", got.out, reference.out, rule.out_dtype);
  judge_max(judgement, got.out, reference.out, rule.out_dtype);
  judge_rms(judgement, got.out, reference.out, errors.worst);
  if (!got.lse.data.empty() && !reference.lse.data.empty()) {
    require_same_size("lse", got.lse, reference.lse);
    judge_lse(judgement, got.lse, reference.lse, rule);
  }
  return std::move(judgement.verdict);
}

}  // namespace tilewright::verify
