#include "verify/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify {
namespace {

void require_sizes(const Values& first, const Values& second, const Values& reference,
                   const Values& other_reference) {
  const std::size_t size = reference.data.size();
  if (first.data.size() == size && second.data.size() == size &&
      other_reference.data.size() == size) {
    return;
  }
  throw Error(
      ErrorCode::usage,
      fmt::format("results of {} and {} elements are compared, the references have {} and "
                  "{}",
                  first.data.size(), second.data.size(), size, other_reference.data.size()));
}

// Infinite where one of them is no number: they agree on nothing there.
double distance(double first, double second) {
  const double difference = std::fabs(first - second);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

// Of an element of out: each is judged alone there.
bool is_right_infinity(double value, double reference, const DeviceResult& result, std::size_t i) {
  return std::isinf(value) && std::signbit(value) == std::signbit(reference) &&
         is_near_overflow(reference, result.verdict.out_bounds.data[i], result.rule.out_dtype);
}

void compare_out(const DeviceResult& first, const DeviceResult& second, Agreement& agreement) {
  const Values& reference = first.reference.out;
  require_sizes(first.values.out, second.values.out, reference, second.reference.out);
  double worst_share = -1;
  for (std::size_t i = 0; i < reference.data.size(); ++i) {
    const double wanted = reference.data[i];
    const double a = first.values.out.data[i], b = second.values.out.data[i];
    if (!std::isfinite(round_to(first.rule.out_dtype, wanted))) continue;
    if (!std::isfinite(second.reference.out.data[i])) continue;
    if (is_right_infinity(a, wanted, first, i) || is_right_infinity(b, wanted, second, i)) continue;
    const double difference = distance(a, b);
    const double bound = first.verdict.out_bounds.data[i] + second.verdict.out_bounds.data[i];
    if (difference / bound <= worst_share) continue;
    worst_share = difference / bound;
    agreement.difference = difference;
    agreement.bound = bound;
  }
  if (agreement.difference <= agreement.bound) return;
  agreement.ok = false;
  agreement.reasons.push_back(
      fmt::format("two devices differ by {:.3g} in out, above both bounds together, {:.3g}",
                  agreement.difference, agreement.bound));
}

void compare_lse(const DeviceResult& first, const DeviceResult& second, Agreement& agreement) {
  const Values& reference = first.reference.lse;
  require_sizes(first.values.lse, second.values.lse, reference, second.reference.lse);
  double worst_share = -1;
  for (std::size_t i = 0; i < reference.data.size(); ++i) {
    if (!std::isfinite(reference.data[i]) || !std::isfinite(second.reference.lse.data[i])) continue;
    const double difference = distance(first.values.lse.data[i], second.values.lse.data[i]);
    const double bound = lse_bound(reference.data[i], first.rule, first.verdict.naive_lse, i) +
                         lse_bound(reference.data[i], second.rule, second.verdict.naive_lse, i);
    if (difference / bound <= worst_share) continue;
    worst_share = difference / bound;
    agreement.lse_difference = difference;
    agreement.lse_bound = bound;
  }
  if (agreement.lse_difference <= agreement.lse_bound) return;
  agreement.ok = false;
  agreement.reasons.push_back(
      fmt::format("two devices differ by {:.3g} in lse, above both bounds together, {:.3g}",
                  agreement.lse_difference, agreement.lse_bound));
}

}  // namespace

Agreement compare(const DeviceResult& first, const DeviceResult& second) {
  Agreement agreement;
  compare_out(first, second, agreement);
  const bool has_lse = !first.values.lse.data.empty() && !second.values.lse.data.empty() &&
                       !first.reference.lse.data.empty();
  if (has_lse) compare_lse(first, second, agreement);
  return agreement;
}

}  // namespace tilewright::verify
