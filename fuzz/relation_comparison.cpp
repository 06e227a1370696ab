#include "fuzz/relation_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/printable_number.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

double greatest(const Values& values) {
  double result = 0;
  for (const double value : values.data) {
    if (std::isfinite(value)) result = std::max(result, std::abs(value));
  }
  return result;
}

void compare(const char* name, const Values& got, const Values& wanted, double bound, double more,
             RelationResult& result) {
  if (got.data.size() != wanted.data.size()) {
    result.message =
        fmt::format("{} has {} elements instead of {}", name, got.data.size(), wanted.data.size());
    return;
  }
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    const double expected = wanted.data[i] + more;
    const bool both_nan = std::isnan(got.data[i]) && std::isnan(expected);
    if (got.data[i] == expected || both_nan) continue;
    const double share = std::abs(got.data[i] - expected) / bound;
    if (share <= 1) {
      result.share_of_bound = std::max(result.share_of_bound, share);
    } else if (result.message.empty()) {
      result.message =
          fmt::format("{}[{}] is {}, but the other side says {} (at most {} apart)", name, i,
                      printable(got.data[i]), printable(expected), printable(bound));
    }
  }
}

bool same(const Values& a, const Values& b, double step) {
  return std::equal(
      a.data.begin(), a.data.end(), b.data.begin(), b.data.end(),
      [&](double x, double y) { return x == y || (x != x && y != y) || std::abs(x - y) <= step; });
}

}  // namespace

RelationComparison::RelationComparison(const Spec& spec, const AttentionValues& wanted,
                                       double out_more)
    : wanted_(wanted) {
  const double scores = greatest(wanted.lse);
  const bool in_float = spec.dtype == DType::f32;
  // A weight has the significant bits of f16 in TF32.
  const DType weights = spec.f32_products == F32Products::tf32 ? DType::f16 : spec.dtype;
  const double rounding = 4 * ulp_at(weights, 1) + 4 * ulp_at(spec.output_dtype(), 1);
  const double of_scores = (in_float ? 0x1p-20 : 0x1p-13) * std::max(1.0, scores);
  out_bound_ = (rounding + of_scores) * std::max(greatest(wanted.out), 0x1p-10) + out_more;
  lse_bound_ = (in_float ? 2e-5 : 4e-3) * std::max(1.0, in_float ? scores : scores / 8);
}

RelationResult RelationComparison::with(const AttentionValues& got, double lse_more) const {
  RelationResult result;
  compare("out", got.out, wanted_.out, out_bound_, 0, result);
  compare("lse", got.lse, wanted_.lse, lse_bound_, lse_more, result);
  return result;
}

std::string same_bits(const AttentionValues& got, const AttentionValues& wanted, const char* what,
                      double out_step) {
  if (same(got.out, wanted.out, out_step) && same(got.lse, wanted.lse, 0)) return "";
  return fmt::format("{} gives other bits", what);
}

}  // namespace tilewright::verify::fuzz
