#include "verify/kinks.hpp"

#include <algorithm>
#include <cmath>

namespace tilewright::verify {
namespace {

constexpr double kNoise = 0x1p-30;       // of a slope in double
constexpr double kFloatNoise = 0x1p-10;  // of a slope in float32
constexpr double kFloatFloor = 0x1p-21;  // of a slope in float32, of the row's greatest

}  // namespace

Kinks::Kinks(const RowSlopes<double>& in_double, const RowSlopes<float>& in_float,
             std::size_t columns)
    : in_double_(in_double), in_float_(in_float) {
  for (std::vector<double>* const one :
       {&errors_, &jumps_, &shifted_, &middle_, &slopes_, &low_, &high_, &far_low_, &far_high_}) {
    one->resize(columns);
  }
  float_scores_.resize(columns);
  float_slopes_.resize(columns);
}

void Kinks::slopes_at(double share, const std::vector<double>& scores,
                      std::vector<double>& slopes) {
  for (std::size_t c = 0; c < scores.size(); ++c) shifted_[c] = scores[c] + share * errors_[c];
  in_double_.slopes(b_, h_, row_, shifted_.data(), slopes.data());
}

void Kinks::take(const std::vector<double>& slopes, std::vector<double>& low,
                 std::vector<double>& high) {
  for (std::size_t c = 0; c < slopes.size(); ++c) {
    low[c] = std::fmin(low[c], slopes[c]);
    high[c] = std::fmax(high[c], slopes[c]);
  }
}

// Of the elements that count.
double Kinks::greatest_slope() const {
  double greatest = 0;
  for (std::size_t c = 0; c < middle_.size(); ++c) {
    const double slope = std::fabs(middle_[c]);
    if (errors_[c] > 0 && std::isfinite(slope)) greatest = std::max(greatest, slope);
  }
  return greatest;
}

bool Kinks::look(std::int64_t b, std::int64_t h, std::int64_t row,
                 const std::vector<double>& scores, const std::vector<double>& errors) {
  b_ = b;
  h_ = h;
  row_ = row;
  errors_ = errors;
  slopes_at(0, scores, middle_);
  low_ = high_ = far_low_ = far_high_ = middle_;
  for (const double share : {-1.0, 1.0}) {
    slopes_at(share, scores, slopes_);
    take(slopes_, low_, high_);
    slopes_at(4 * share, scores, slopes_);
    take(slopes_, far_low_, far_high_);
  }
  std::vector<double> float_low = middle_, float_high = middle_;
  for (const double share : {-1.0, 0.0, 1.0}) {
    for (std::size_t c = 0; c < scores.size(); ++c) {
      float_scores_[c] = static_cast<float>(scores[c] + share * errors_[c]);
    }
    in_float_.slopes(b_, h_, row_, float_scores_.data(), float_slopes_.data());
    std::copy(float_slopes_.begin(), float_slopes_.end(), slopes_.begin());
    take(slopes_, float_low, float_high);
  }
  const double floor = kFloatFloor * greatest_slope();
  bool any = false;
  for (std::size_t c = 0; c < scores.size(); ++c) {
    const double near = high_[c] - low_[c], far = far_high_[c] - far_low_[c];
    const double size = std::fabs(middle_[c]);
    const double in_float = float_high[c] - float_low[c];
    const bool jumps = near > far / 2 && near > kNoise * (1 + size);
    const bool jumps_in_float = in_float > kFloatNoise * size + far + floor;
    jumps_[c] = jumps_in_float ? in_float : jumps ? near : 0;
    if (!std::isfinite(jumps_[c])) jumps_[c] = 0;
    any = any || jumps_[c] > 0;
  }
  return any;
}

void Kinks::add(const std::vector<double>& scores, const std::vector<double>& dy,
                std::vector<double>& sums) {
  std::vector<double> weights(dy.size());
  for (std::size_t c = 0; c < dy.size(); ++c) weights[c] = jumps_[c] > 0 ? std::fabs(dy[c]) : 0;
  const auto sums_at = [&](double share) {
    for (std::size_t c = 0; c < scores.size(); ++c) shifted_[c] = scores[c] + share * errors_[c];
    std::vector<double> at(sums.size());
    in_double_.add(b_, h_, row_, shifted_.data(), weights.data(), at.data());
    return at;
  };
  const std::vector<float> float_weights(weights.begin(), weights.end());
  std::copy(scores.begin(), scores.end(), float_scores_.begin());
  std::vector<double> in_float(sums.size());
  in_float_.add(b_, h_, row_, float_scores_.data(), float_weights.data(), in_float.data());
  const std::vector<double> middle = sums_at(0), low = sums_at(-1), high = sums_at(1);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto [least, most] = std::minmax({middle[i], low[i], high[i], in_float[i]});
    if (std::isfinite(most - least)) sums[i] += most - least;
  }
}

}  // namespace tilewright::verify
