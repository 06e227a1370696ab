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
#include "verify/nearest_to_bound.hpp"
#include "verify/nothing_judged.hpp"

namespace tilewright::verify {
namespace {

struct MaxAndRms {
  double max = 0, rms = 0;
};

bool is_counted(const ComparedGradient& one, std::size_t i) {
  return std::isfinite(round_to(one.dtype, one.reference[i]));
}

// Of the elements that count, where it is finite. of: of the number of an element
template <typename Of>
MaxAndRms size_of(const ComparedGradient& one, const Of& of) {
  MaxAndRms size;
  std::size_t count = 0;
  for (std::size_t i = 0; i < one.reference.size(); ++i) {
    if (!is_counted(one, i)) continue;
    const double magnitude = std::fabs(of(i));
    if (!std::isfinite(magnitude)) continue;
    size.max = std::max(size.max, magnitude);
    size.rms += magnitude * magnitude;
    ++count;
  }
  if (count > 0) size.rms = std::sqrt(size.rms / static_cast<double>(count));
  return size;
}

// sizes: of each element, or none.
double greatest_of(const std::vector<double>& sizes, const ComparedGradient& one) {
  return sizes.empty() ? 0 : size_of(one, [&](std::size_t i) { return sizes[i]; }).max;
}

double error_of(const ComparedGradient& one, double result, std::size_t i) {
  return std::fabs(result - one.reference[i]);
}

// result: in the gradient's dtype. Of the elements' errors less what is ambiguous; that of one that
// is not finite is none.
MaxAndRms sure_error_of(const ComparedGradient& one, const std::vector<double>& result) {
  return size_of(one, [&](std::size_t i) {
    const double error = error_of(one, result[i], i);
    return std::isfinite(error) ? std::max(0.0, error - one.ambiguous[i]) : error;
  });
}

// What an element may be off by for its rows' scores.
double own_of(const ComparedGradient& one, std::size_t i) {
  return std::isfinite(one.own[i]) ? one.own[i] : 0;
}

bool is_same(double got, double wanted) {
  return got == wanted || (std::isnan(got) && std::isnan(wanted));
}

bool has_mark(const std::vector<double>& marks, std::size_t i) {
  return !marks.empty() && marks[i] != 0;
}

// Makes NaN of the elements that are left out, which then count nowhere.
void leave_out(ComparedGradient& one, GradientVerdict& verdict) {
  for (std::size_t i = 0; i < one.got.size(); ++i) {
    const bool is_odd =
        !std::isfinite(one.got[i]) && !is_same(one.got[i], round_to(one.dtype, one.reference[i]));
    if (one.overflow[i] >= GradientSizes::kUnknown || (is_odd && one.overflow[i] != 0)) {
      ++verdict.overflow;
      if (has_mark(one.derivative_overflow, i)) ++verdict.derivative_overflow;
    } else if (is_odd && one.spread[i] != 0) {
      ++verdict.spread;
    } else {
      if (one.terms[i] == 0) ++verdict.unreached;
      if (std::isnan(one.reference[i])) ++verdict.nan;
      continue;
    }
    one.got[i] = one.reference[i] = std::numeric_limits<double>::quiet_NaN();
  }
}

void measure_naive(const ComparedGradient& one, GradientVerdict& verdict) {
  for (const std::vector<double>& naive : one.naive) {
    std::vector<double> rounded;
    for (const double value : naive) rounded.push_back(round_to(one.dtype, value));
    const MaxAndRms errors = sure_error_of(one, rounded);
    verdict.naive_max = std::max(verdict.naive_max, errors.max);
    verdict.naive_rms = std::max(verdict.naive_rms, errors.rms);
  }
}

// base: of all elements' bounds.
void judge_pattern(const ComparedGradient& one, double base, GradientVerdict& verdict) {
  for (std::size_t i = 0; i < one.got.size(); ++i) {
    const double bound = base + own_of(one, i) + one.ambiguous[i];
    if (same_pattern(one.got[i], one.reference[i], bound, one.dtype)) continue;
    verdict.reasons.push_back(fmt::format("{}: element {} is {}, but the reference is {}", one.name,
                                          i, printable(one.got[i]), printable(one.reference[i])));
    return;
  }
}

void find_nearest(const ComparedGradient& one, double base, GradientVerdict& verdict) {
  NearestToBound nearest;
  for (std::size_t i = 0; i < one.got.size(); ++i) {
    if (!is_counted(one, i) || !std::isfinite(one.got[i])) continue;
    nearest.take(error_of(one, one.got[i], i), base + own_of(one, i) + one.ambiguous[i]);
  }
  verdict.error_max = nearest.error;
  verdict.bound_max = nearest.bound;
}

// Elements that are judged together.
GradientVerdict judge_group(const ComparedGradient& one) {
  GradientVerdict verdict;
  measure_naive(one, verdict);
  const MaxAndRms reference = size_of(one, [&](std::size_t i) { return one.reference[i]; });
  const MaxAndRms own = size_of(one, [&](std::size_t i) { return own_of(one, i); });
  const auto ulp = [&](double magnitude) {
    return std::max(ulp_at(one.dtype, magnitude), ulp_at(one.dtype_of_terms, magnitude));
  };
  const double floor = one.share_of_terms * greatest_of(one.terms, one) +
                       one.share_of_magnitudes * greatest_of(one.magnitudes, one);
  const double base = 2 * verdict.naive_max + 2 * ulp(reference.max) + floor;
  find_nearest(one, base, verdict);
  verdict.error_rms = size_of(one, [&](std::size_t i) { return error_of(one, one.got[i], i); }).rms;
  const double allowed = verdict.error_rms - sure_error_of(one, one.got).rms;
  verdict.bound_rms = 2 * verdict.naive_rms + ulp(reference.rms) / 4 + floor + own.rms + allowed;
  if (verdict.error_max > verdict.bound_max) {
    verdict.reasons.push_back(fmt::format("{}: the greatest error is {:.4g}, at most {:.4g}",
                                          one.name, verdict.error_max, verdict.bound_max));
  }
  if (verdict.error_rms > verdict.bound_rms) {
    verdict.reasons.push_back(fmt::format("{}: the RMS error is {:.4g}, at most {:.4g}", one.name,
                                          verdict.error_rms, verdict.bound_rms));
  }
  judge_pattern(one, base, verdict);
  return verdict;
}

// Those that may overflow, or the others; NaN where the rest is.
ComparedGradient group_of(const ComparedGradient& whole, bool overflowing) {
  ComparedGradient group = whole;
  for (std::size_t i = 0; i < group.got.size(); ++i) {
    if ((whole.overflow[i] != 0) == overflowing) continue;
    group.got[i] = group.reference[i] = std::numeric_limits<double>::quiet_NaN();
  }
  return group;
}

}  // namespace

std::vector<std::string> GradientVerdict::why_not_right(const std::string& name) const {
  std::vector<std::string> all = reasons;
  if (!says_nothing()) return all;
  if (derivative_overflow == 0) {
    all.push_back(nothing_judged(name, unreached > 0));
  } else {
    all.push_back(fmt::format(
        "nothing of {} was judged, so this check says nothing of it: in float32 score_mod's "
        "derivative by {} is NaN or infinite, where in double precision it is a number. Give {} "
        "and the scores numbers of more usual sizes",
        name, name.substr(2), name.substr(2)));
  }
  return all;
}

void take_nearer(const GradientVerdict& from, GradientVerdict& verdict) {
  if (from.error_max * verdict.bound_max > verdict.error_max * from.bound_max) {
    verdict.error_max = from.error_max;
    verdict.bound_max = from.bound_max;
    verdict.naive_max = from.naive_max;
  }
  if (from.error_rms * verdict.bound_rms > verdict.error_rms * from.bound_rms) {
    verdict.error_rms = from.error_rms;
    verdict.bound_rms = from.bound_rms;
    verdict.naive_rms = from.naive_rms;
  }
  for (const std::string& reason : from.reasons) {
    const auto known = std::find(verdict.reasons.begin(), verdict.reasons.end(), reason);
    if (known == verdict.reasons.end()) verdict.reasons.push_back(reason);
  }
  verdict.ok = verdict.reasons.empty();
}

GradientVerdict judge_gradient(ComparedGradient one) {
  GradientVerdict unjudged;
  leave_out(one, unjudged);
  const bool has_overflow =
      std::any_of(one.overflow.begin(), one.overflow.end(), [](double mark) { return mark != 0; });
  GradientVerdict verdict = judge_group(has_overflow ? group_of(one, false) : one);
  if (has_overflow) take_nearer(judge_group(group_of(one, true)), verdict);
  verdict.elements = static_cast<std::int64_t>(one.got.size());
  verdict.spread = unjudged.spread;
  verdict.overflow = unjudged.overflow;
  verdict.derivative_overflow = unjudged.derivative_overflow;
  verdict.unreached = unjudged.unreached;
  verdict.nan = unjudged.nan;
  verdict.ok = verdict.reasons.empty();
  return verdict;
}

}  // namespace tilewright::verify
