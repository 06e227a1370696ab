#include "verify/stochastic_rounding.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/io/float16.hpp"
#include "verify/digits.hpp"

namespace tilewright::verify {
namespace {

// In [0, 1), of a number's bits.
double uniform_of(double value, std::size_t draw) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(value) + draw * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return static_cast<double>((bits ^ bits >> 31) >> 11) * 0x1p-53;
}

}  // namespace

double round_stochastically(DType dtype, double value, std::size_t draw) {
  const double ulp = ulp_at(dtype, value);
  if (!std::isfinite(value) || !(ulp > 0)) return round_digits(dtype, value);
  const double below = std::floor(value / ulp) * ulp;
  return round_digits(dtype, uniform_of(value, draw) < (value - below) / ulp ? below + ulp : below);
}

}  // namespace tilewright::verify
