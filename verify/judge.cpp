#include "verify/judge.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/printable_number.hpp"
#include "runtime/io/float16.hpp"
#include "verify/element_bounds.hpp"

namespace tilewright::verify {
namespace {

// judge.hpp derives them.
constexpr double kLseShare = 4e-5;
constexpr double kLseError16 = 2e-3;
constexpr double kLseShare16 = 0x1p-19;
constexpr double kLseShare8 = 1e-2;

double own_score(const Values& scores, std::size_t row) {
  return !scores.data.empty() && std::isfinite(scores.data[row]) ? scores.data[row] : 0;
}

double fast_error(const Rule& rule, std::size_t row) {
  return rule.fast_functions ? std::ldexp(own_score(rule.sizes.scores, row), -11) : 0;
}

// An error of every score of a row, in the same direction.
double score_error(const Rule& rule, std::size_t row) {
  const double factor =
      rule.scaled_scores ? 3 * std::ldexp(own_score(rule.sizes.scores, row), -24) : 0;
  return fast_error(rule, row) + factor;
}

std::vector<double> score_errors(const Rule& rule) {
  std::vector<double> errors;
  if (!rule.fast_functions && !rule.scaled_scores) return errors;
  for (std::size_t row = 0; row < rule.sizes.scores.data.size(); ++row) {
    errors.push_back(score_error(rule, row));
  }
  return errors;
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

// is_bad: of the number of an element
template <typename IsBad>
void judge_elements(Judgement& judgement, const std::string& tensor, const Values& got,
                    const Values& reference, const std::string& what, const IsBad& is_bad) {
  std::int64_t bad = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    if (!is_bad(i)) continue;
    if (bad++ == 0) first = i;
  }
  if (bad == 0) return;
  const BadElement element = element_at(judgement, tensor, got, reference, first);
  blame(judgement.verdict,
        fmt::format("{}: {} of {}, first {}", what, bad, counted(got.data.size(), "element"),
                    element.describe()),
        element);
}

// bound_of: how far an element may be from the reference.
template <typename BoundOf>
void judge_pattern(Judgement& judgement, const std::string& tensor, const Values& got,
                   const Values& reference, DType dtype, const BoundOf& bound_of) {
  judge_elements(judgement, tensor, got, reference, tensor + " has NaN or infinity in other places",
                 [&](std::size_t i) {
                   return !same_pattern(got.data[i], reference.data[i], bound_of(i), dtype);
                 });
}

// What a kernel may be off by may keep it below the greatest number, where the reference is not far
// beyond.
bool is_clamped_wrongly(double got, double wanted, double bound, DType out_dtype) {
  if (!is_clamped(wanted, out_dtype)) return false;
  const double least = round_to(out_dtype, std::fabs(wanted) - bound);
  return !(std::copysign(1.0, wanted) * got >= least);
}

void judge_clamped(Judgement& judgement, const Values& got, const Values& reference,
                   const Values& bounds, DType out_dtype) {
  judge_elements(judgement, "out", got, reference,
                 fmt::format("clamped values are not {}'s greatest", to_string(out_dtype)),
                 [&](std::size_t i) {
                   return is_clamped_wrongly(got.data[i], reference.data[i], bounds.data[i],
                                             out_dtype);
                 });
}

// Elements that are further off than their bounds, if the one that comes nearest to its bound is.
// what: "weights are off by {:.3g}, above their bound {:.3g}"
void judge_max(Judgement& judgement, const std::string& name, const JudgedTensor& tensor,
               const ElementErrors& errors, DType out_dtype, const std::string& what) {
  if (errors.error_max <= errors.bound_max) return;
  judge_elements(judgement, name, tensor.got, tensor.reference, what, [&](std::size_t i) {
    const double got = tensor.got.data[i], wanted = tensor.reference.data[i];
    return counts(wanted, out_dtype) && std::isfinite(got) &&
           std::fabs(got - wanted) > errors.bounds.data[i];
  });
}

void judge_rms(Judgement& judgement, const std::string& name, const JudgedTensor& tensor,
               const ElementErrors& errors, const std::string& what) {
  if (errors.error_rms <= errors.bound_rms) return;
  blame(judgement.verdict, what,
        element_at(judgement, name, tensor.got, tensor.reference, errors.worst));
}

Values judge_out(Judgement& judgement, const AttentionValues& got, const AttentionValues& reference,
                 const AttentionValues& naive, const Rule& rule) {
  const std::vector<double> shares = score_errors(rule);
  const JudgedTensor out{.got = got.out,
                         .reference = reference.out,
                         .naive = naive.out,
                         .shares = shares,
                         .limits = rule.sizes.values.data,
                         .lost = rule.sizes.lost,
                         .large = rule.large};
  ElementErrors errors = measure(out, rule);
  Verdict& verdict = judgement.verdict;
  verdict.error_max = errors.error_max;
  verdict.error_rms = errors.error_rms;
  verdict.naive_max = errors.naive_max;
  verdict.naive_rms = errors.naive_rms;
  verdict.bound_max = errors.bound_max;
  verdict.bound_rms = errors.bound_rms;
  judge_pattern(judgement, "out", got.out, reference.out, rule.out_dtype,
                [&](std::size_t i) { return errors.bounds.data[i]; });
  judge_clamped(judgement, got.out, reference.out, errors.bounds, rule.out_dtype);
  judge_max(judgement, "out", out, errors, rule.out_dtype,
            fmt::format("the greatest error {:.3g} is above its bound {:.3g}", errors.error_max,
                        errors.bound_max));
  judge_rms(judgement, "out", out, errors,
            fmt::format("the RMS error {:.3g} is above its bound {:.3g}", errors.error_rms,
                        errors.bound_rms));
  return std::move(errors.bounds);
}

// What a row's error is measured by.
double size_of_row(double reference, const Rule& rule, std::size_t row) {
  const double of_products = std::max(1.0, own_score(rule.sizes.products, row));
  return rule.products == F32Products::tf32 ? of_products
                                            : std::max(of_products, std::fabs(reference));
}

// naive_lse or naive_max_scores; 0 where naive has none.
double naive_error_of_rows(const Values& naive, const Values& reference, const Rule& rule) {
  if (naive.data.empty()) return 0;
  double greatest = 0;
  for (std::size_t row = 0; row < reference.data.size(); ++row) {
    if (!std::isfinite(reference.data[row]) || !std::isfinite(naive.data[row])) continue;
    const double error = std::fabs(naive.data[row] - reference.data[row]);
    greatest = std::max(greatest, error / size_of_row(reference.data[row], rule, row));
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
  for (std::size_t row = 0; row < reference.data.size(); ++row) {
    if (!std::isfinite(reference.data[row]) || !std::isfinite(got.data[row])) continue;
    const double error = std::fabs(got.data[row] - reference.data[row]);
    const double bound = lse_bound(reference.data[row], rule, naive_error, row);
    if (error / bound <= worst_share) continue;
    worst_share = error / bound;
    worst = {error, bound};
  }
  return worst;
}

// name: "lse" or "max_scores".
RowError judge_rows(Judgement& judgement, const std::string& name, const Values& got,
                    const Values& reference, const Rule& rule, double naive_error) {
  const auto bound_of = [&](std::size_t row) {
    return lse_bound(reference.data[row], rule, naive_error, row);
  };
  judge_pattern(judgement, name, got, reference, DType::f32, bound_of);
  const RowError worst = measure_rows(got, reference, rule, naive_error);
  if (worst.error <= worst.bound) return worst;
  judge_elements(
      judgement, name, got, reference,
      fmt::format("{} is off by {:.3g}, above its bound {:.3g}", name, worst.error, worst.bound),
      [&](std::size_t row) {
        const double value = got.data[row], wanted = reference.data[row];
        return std::isfinite(value) && std::isfinite(wanted) &&
               std::fabs(value - wanted) > bound_of(row);
      });
  return worst;
}

// What each weight of a row may be off by in proportion to itself: what the scores are, and the lse
// that it is made from.
std::vector<double> weight_shares(const Values& lse, const Rule& rule, double naive_lse) {
  std::vector<double> shares;
  for (std::size_t row = 0; row < lse.data.size(); ++row) {
    const bool has_lse = std::isfinite(lse.data[row]);
    const double of_lse = has_lse ? lse_bound(lse.data[row], rule, naive_lse, row) : 0;
    shares.push_back(score_error(rule, row) + of_lse);
  }
  return shares;
}

// Of each element, as the whole of a small weight may be missing.
Values lost_weights(const Values& reference) {
  Values lost = reference;
  for (double& weight : lost.data) {
    weight = std::fabs(weight) < kLeastSureWeight ? std::fabs(weight) : 0;
  }
  return lost;
}

// Dropped elements among them. Where naive's float has a weight, the kernel's may have one too.
void judge_zeros(Judgement& judgement, const Values& got, const Values& reference,
                 const Values& naive) {
  judge_elements(judgement, "weights", got, reference, "weights of dropped elements are not 0",
                 [&](std::size_t i) {
                   return reference.data[i] == 0 && naive.data[i] == 0 && got.data[i] != 0;
                 });
}

void judge_weights(Judgement& judgement, const AttentionValues& got,
                   const AttentionValues& reference, const AttentionValues& naive,
                   const Rule& rule) {
  Verdict& verdict = judgement.verdict;
  const std::vector<double> shares = weight_shares(reference.lse, rule, verdict.naive_lse);
  const Values lost = lost_weights(reference.weights), no_large = {};
  const JudgedTensor weights{.got = got.weights,
                             .reference = reference.weights,
                             .naive = naive.weights,
                             .shares = shares,
                             .limits = no_large.data,
                             .lost = lost,
                             .large = no_large};
  const ElementErrors errors = measure(weights, rule);
  verdict.weights_error = errors.error_max;
  verdict.weights_bound = errors.bound_max;
  judge_pattern(judgement, "weights", got.weights, reference.weights, rule.out_dtype,
                [&](std::size_t i) { return errors.bounds.data[i]; });
  judge_zeros(judgement, got.weights, reference.weights, naive.weights);
  judge_max(judgement, "weights", weights, errors, rule.out_dtype,
            fmt::format("weights are off by {:.3g}, above their bound {:.3g}", errors.error_max,
                        errors.bound_max));
  judge_rms(judgement, "weights", weights, errors,
            fmt::format("the RMS error {:.3g} of weights is above its bound {:.3g}",
                        errors.error_rms, errors.bound_rms));
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

double lse_bound(double reference, const Rule& rule, double naive_error, std::size_t row) {
  const double magnitude = std::fabs(reference);
  const double bound = rule.dtype == DType::f32 ? kLseShare * std::max(1.0, magnitude)
                       : is_float8(rule.dtype)  ? kLseShare8 * std::max(1.0, magnitude)
                                                : kLseError16 + kLseShare16 * magnitude;
  return bound + 2 * naive_error * size_of_row(reference, rule, row) + fast_error(rule, row);
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

  Judgement judgement{place_of};
  Verdict& verdict = judgement.verdict;
  verdict.naive_lse = naive_error_of_rows(naive.lse, reference.lse, rule);
  verdict.naive_max_scores = naive_error_of_rows(naive.max_scores, reference.max_scores, rule);
  verdict.out_bounds = judge_out(judgement, got, reference, naive, rule);
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
