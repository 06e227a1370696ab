#include "verify/element_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/io/float16.hpp"
#include "verify/nearest_to_bound.hpp"

namespace tilewright::verify {
namespace {

// With a share like that the scores of a row say nothing of its weights.
constexpr double kUnknownShare = 1;

// TF32 has the significant bits of f16, and the exponents of float32.
double spacing(const Rule& rule, double magnitude) {
  constexpr double kTf32OfF32 = 0x1p13;
  const double factor = rule.products == F32Products::tf32 ? kTf32OfF32 : 1;
  return std::max(factor * ulp_at(rule.dtype, magnitude), ulp_at(rule.out_dtype, magnitude));
}

// Of some elements.
struct Size {
  double max = 0;
  double rms = 0;          // of those in rows with a known share
  std::size_t worst = 0;   // the greatest of these
  std::int64_t count = 0;  // of these
};

// The elements that are judged together: those that Rule::large marks, or the others.
class Group {
 public:
  Group(const JudgedTensor& tensor, const Rule& rule, bool is_large)
      : tensor_(tensor),
        rule_(rule),
        is_large_(is_large),
        factor_(is_large ? kBoundFactorOfSequence : rule.bound_factor),
        reference_(size([&](std::size_t i) { return tensor.reference.data[i]; })),
        naive_(error_of(tensor.naive)),
        ulp_max_(spacing(rule, is_large ? greatest_limit() : reference_.max)),
        ulp_rms_(is_large ? ulp_max_ : spacing(rule, reference_.rms)) {}

  bool has(std::size_t i) const {
    return (!tensor_.large.data.empty() && tensor_.large.data[i] != 0) == is_large_;
  }

  double bound_of(std::size_t i) const {
    const double base = 2 * naive_.max + 2 * ulp_max_;
    return factor_ * (base + own(i)) + lost(i);
  }

  double bound_rms() const {
    const double of_shares =
        size([&](std::size_t i) { return share(i) * tensor_.reference.data[i]; }).rms;
    const double of_lost = size([&](std::size_t i) { return lost(i); }).rms;
    const double ulps = rule_.scales_values ? 1.25 : 0.25;
    return factor_ * (2 * naive_.rms + ulps * ulp_rms_ + of_shares) + of_lost;
  }

  Size error_of(const Values& result) const {
    return size([&](std::size_t i) { return result.data[i] - tensor_.reference.data[i]; });
  }

  bool is_empty() const { return reference_.count == 0; }
  const Size& naive() const { return naive_; }

 private:
  // Of what is finite: the rest is judged by its pattern.
  template <typename Of>
  Size size(const Of& of) const {
    Size size;
    if (is_large_ && tensor_.large.data.empty()) return size;  // no element is
    double sum = 0, greatest = -1;
    for (std::size_t i = 0; i < tensor_.reference.data.size(); ++i) {
      if (!has(i) || !counts(tensor_.reference.data[i], rule_.out_dtype)) continue;
      const double magnitude = std::fabs(of(i));
      if (!std::isfinite(magnitude)) continue;
      size.max = std::max(size.max, magnitude);
      if (!(share(i) < kUnknownShare)) continue;
      if (magnitude > greatest) {
        greatest = magnitude;
        size.worst = i;
      }
      sum += magnitude * magnitude;
      ++size.count;
    }
    if (size.count > 0) size.rms = std::sqrt(sum / static_cast<double>(size.count));
    return size;
  }

  std::size_t row_of(std::size_t i) const {
    return i / static_cast<std::size_t>(tensor_.reference.width);
  }
  double share(std::size_t i) const {
    return tensor_.shares.empty() ? 0 : tensor_.shares[row_of(i)];
  }
  double lost(std::size_t i) const { return tensor_.lost.data.empty() ? 0 : tensor_.lost.data[i]; }

  double own(std::size_t i) const {
    const double of_scores = share(i) * reference_.max;
    if (of_scores == 0 || tensor_.limits.empty()) return of_scores;
    const double limit = tensor_.limits[row_of(i)];
    return std::min(of_scores, 2 * (limit + spacing(rule_, limit)));
  }

  double greatest_limit() const {
    if (tensor_.limits.empty()) return reference_.max;
    return size([&](std::size_t i) { return tensor_.limits[row_of(i)]; }).max;
  }

  const JudgedTensor& tensor_;
  const Rule& rule_;
  bool is_large_;
  double factor_;
  Size reference_, naive_;
  double ulp_max_, ulp_rms_;
};

void find_nearest(const JudgedTensor& tensor, const Rule& rule, ElementErrors& errors) {
  NearestToBound nearest;
  for (std::size_t i = 0; i < tensor.reference.data.size(); ++i) {
    if (!counts(tensor.reference.data[i], rule.out_dtype)) continue;
    if (!std::isfinite(tensor.got.data[i])) continue;
    nearest.take(std::fabs(tensor.got.data[i] - tensor.reference.data[i]), errors.bounds.data[i]);
  }
  errors.error_max = nearest.error;
  errors.bound_max = nearest.bound;
}

}  // namespace

bool is_clamped(double reference, DType out_dtype) {
  return is_float8(out_dtype) && std::isfinite(round_to(out_dtype, reference)) &&
         std::fabs(reference) >= std::fabs(round_to(out_dtype, std::copysign(1e300, reference)));
}

bool counts(double reference, DType out_dtype) {
  return std::isfinite(round_to(out_dtype, reference)) && !is_clamped(reference, out_dtype);
}

ElementErrors measure(const JudgedTensor& tensor, const Rule& rule) {
  const Group ordinary(tensor, rule, false), large(tensor, rule, true);
  ElementErrors errors{.bounds = tensor.reference};
  for (std::size_t i = 0; i < errors.bounds.data.size(); ++i) {
    errors.bounds.data[i] = (ordinary.has(i) ? ordinary : large).bound_of(i);
  }
  find_nearest(tensor, rule, errors);
  for (const Group* const group : {&ordinary, &large}) {
    const Size error = group->error_of(tensor.got);
    const double bound = group->bound_rms();
    const bool is_first = group == &ordinary;
    if (!is_first &&
        (group->is_empty() || error.rms * errors.bound_rms <= errors.error_rms * bound))
      continue;
    errors.worst = error.worst;
    errors.error_rms = error.rms;
    errors.bound_rms = bound;
    errors.naive_max = group->naive().max;
    errors.naive_rms = group->naive().rms;
  }
  return errors;
}

}  // namespace tilewright::verify
