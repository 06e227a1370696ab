#include "verify/unjudged.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/io/float16.hpp"

namespace tilewright::verify {
namespace {

constexpr double kLeftOut = std::numeric_limits<double>::quiet_NaN();

NotJudged reason_of(double element) {
  return static_cast<NotJudged>(static_cast<int>(element));
}

void count(NotJudged reason, std::int64_t elements, UnjudgedCounts& counts) {
  if (reason == NotJudged::spread || reason == NotJudged::weight) counts.spread += elements;
  if (reason == NotJudged::scale) counts.scale += elements;
  if (reason == NotJudged::overflow) counts.overflow += elements;
}

// rows: of `values`, which may have no elements.
void blank(const Values& rows, Values& values) {
  if (values.data.empty()) return;
  for (std::size_t row = 0; row < rows.data.size(); ++row) {
    if (reason_of(rows.data[row]) == NotJudged::no) continue;
    std::fill_n(values.data.begin() + static_cast<std::ptrdiff_t>(row) * values.width, values.width,
                kLeftOut);
  }
}

void blank_rows(const Unjudged& unjudged, AttentionValues& values) {
  blank(unjudged.out_rows, values.out);
  blank(unjudged.score_rows, values.lse);
  blank(unjudged.score_rows, values.max_scores);
  blank(unjudged.score_rows, values.weights);
}

// Also where 8 bits clamp infinity.
bool is_infinite(double value, DType dtype) {
  return !std::isfinite(value) || (is_float8(dtype) && std::fabs(value) == round_to(dtype, 1e300));
}

// Whether `got` is right where NaN and infinity may be.
bool is_right(NotJudged reason, double got, double reference, double naive, DType dtype) {
  if (reason == NotJudged::no) return false;
  if (reason == NotJudged::weight) {
    return std::isinf(reference) && std::isnan(got) && std::isnan(naive);
  }
  return std::isfinite(reference) ? is_infinite(got, dtype)
                                  : std::isinf(reference) && std::isnan(got);
}

// Of rows that keep no score. reference: of which no single element was left out
void count_unreached(const Unjudged& unjudged, const AttentionValues& reference, Judged& judged) {
  const Values& rows = unjudged.out_rows;
  for (std::size_t i = 0; i < reference.out.data.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(reference.out.width);
    if (!rows.data.empty() && reason_of(rows.data[row]) != NotJudged::no) continue;
    const std::vector<double>& scores = reference.max_scores.data;
    const bool keeps_none = !scores.empty() && std::isinf(scores[row]);
    if (keeps_none && judged.reference.out.data[i] == 0) ++judged.counts.unreached;
  }
}

}  // namespace

Values large_elements(const Unjudged& unjudged) {
  Values large = unjudged.infinite;
  for (double& element : large.data) {
    element = reason_of(element) == NotJudged::overflow ? 1 : 0;
  }
  return large;
}

void leave_out(const Unjudged& unjudged, Reference& reference) {
  blank_rows(unjudged, reference.values);
  for (Values* const sizes : {&reference.sizes.scores, &reference.sizes.products}) {
    blank(unjudged.score_rows, *sizes);
  }
}

Judged leave_out(const Unjudged& unjudged, const AttentionValues& reference,
                 const AttentionValues& naive, DType out_dtype, AttentionValues got) {
  blank_rows(unjudged, got);
  Judged judged{.got = std::move(got), .reference = reference};
  for (const double row : unjudged.out_rows.data) {
    count(reason_of(row), reference.out.width, judged.counts);
  }
  for (std::size_t i = 0; i < unjudged.infinite.data.size(); ++i) {
    const NotJudged reason = reason_of(unjudged.infinite.data[i]);
    double& element = judged.got.out.data[i];
    double& wanted = judged.reference.out.data[i];
    if (!is_right(reason, element, wanted, naive.out.data[i], out_dtype)) continue;
    element = wanted = kLeftOut;
    count(reason, 1, judged.counts);
  }
  count_unreached(unjudged, reference, judged);
  return judged;
}

}  // namespace tilewright::verify
