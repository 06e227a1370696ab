#include "verify/gradient_rule.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include "base/printable_number.hpp"
#include "runtime/io/float16.hpp"
#include "verify/gradient_sweep.hpp"
#include "verify/judge.hpp"

namespace tilewright::verify {
namespace {

struct GradientErrors {
  double max = 0, rms = 0, max_reference = 0, rms_reference = 0;
};

// Of a result in the gradient's dtype.
GradientErrors gradient_errors(const std::vector<double>& result, const ComparedGradient& one) {
  GradientErrors errors;
  std::size_t count = 0;
  for (std::size_t i = 0; i < one.reference.size(); ++i) {
    const double reference = one.reference[i];
    if (!std::isfinite(round_to(one.dtype, reference)) || !std::isfinite(result[i])) continue;
    const double error = std::max(0.0, std::fabs(result[i] - reference) - one.ambiguous[i]);
    errors.max = std::max(errors.max, error);
    errors.rms += error * error;
    errors.max_reference = std::max(errors.max_reference, std::fabs(reference));
    errors.rms_reference += reference * reference;
    ++count;
  }
  if (count == 0) return errors;
  errors.rms = std::sqrt(errors.rms / static_cast<double>(count));
  errors.rms_reference = std::sqrt(errors.rms_reference / static_cast<double>(count));
  return errors;
}

// Of the elements that count. sizes: of each element, or none.
double greatest_size(const std::vector<double>& sizes, const ComparedGradient& one) {
  double greatest = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!std::isfinite(round_to(one.dtype, one.reference[i])) || !std::isfinite(sizes[i])) continue;
    greatest = std::max(greatest, std::fabs(sizes[i]));
  }
  return greatest;
}

bool is_same(double got, double wanted) {
  return got == wanted || (std::isnan(got) && std::isnan(wanted));
}

// Makes NaN of the elements that are left out, which then count nowhere.
void leave_out(ComparedGradient& one, GradientVerdict& verdict) {
  for (std::size_t i = 0; i < one.got.size(); ++i) {
    const bool is_odd =
        !std::isfinite(one.got[i]) && !is_same(one.got[i], round_to(one.dtype, one.reference[i]));
    if (one.overflow[i] >= GradientSizes::kUnknown || (is_odd && one.overflow[i] != 0)) {
      ++verdict.overflow;
    } else if (is_odd && one.spread[i] != 0) {
      ++verdict.spread;
    } else {
      continue;
    }
    one.got[i] = one.reference[i] = std::numeric_limits<double>::quiet_NaN();
  }
}

void measure_naive(const ComparedGradient& one, GradientVerdict& verdict) {
  for (const std::vector<double>& naive : one.naive) {
    std::vector<double> rounded;
    for (const double value : naive) rounded.push_back(round_to(one.dtype, value));
    const GradientErrors errors = gradient_errors(rounded, one);
    verdict.naive_max = std::max(verdict.naive_max, errors.max);
    verdict.naive_rms = std::max(verdict.naive_rms, errors.rms);
  }
}

void judge_pattern(const ComparedGradient& one, GradientVerdict& verdict) {
  for (std::size_t i = 0; i < one.got.size(); ++i) {
    const double bound = verdict.bound_max + one.ambiguous[i];
    if (same_pattern(one.got[i], one.reference[i], bound, one.dtype)) continue;
    verdict.reasons.push_back(fmt::format("{}: element {} is {}, but the reference is {}", one.name,
                                          i, printable(one.got[i]), printable(one.reference[i])));
    return;
  }
}

}  // namespace

GradientVerdict judge_gradient(ComparedGradient one, DType spec_dtype) {
  GradientVerdict verdict;
  leave_out(one, verdict);
  measure_naive(one, verdict);
  const GradientErrors errors = gradient_errors(one.got, one);
  const auto ulp = [&](double magnitude) {
    return std::max(ulp_at(one.dtype, magnitude), ulp_at(spec_dtype, magnitude));
  };
  const double floor = one.share_of_terms * greatest_size(one.terms, one) +
                       kShareOfWeights * greatest_size(one.of_weights, one) +
                       one.share_of_magnitudes * greatest_size(one.magnitudes, one);
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
  judge_pattern(one, verdict);
  verdict.ok = verdict.reasons.empty();
  return verdict;
}

}  // namespace tilewright::verify
