#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/language.hpp"

// Sums of gradients of buffers and scalars that many blocks add to.

namespace tw_kernel {

using tilewright::abi::cuda::kExponentsOfBin;
using tilewright::abi::cuda::kFiniteBins;
using tilewright::abi::cuda::kSumBins;
using tilewright::abi::cuda::SumsArgument;

// The same sum in whatever order: a float is a whole number at its bin's unit.
TW_INLINE void add_exactly(long long* bins, float x) {
  const unsigned bits = __float_as_uint(x);
  const unsigned exponent = bits >> 23 & 0xffu;
  const unsigned fraction = bits & 0x7fffffu;
  int bin;
  long long term;
  if (exponent == 0xffu) {
    bin = kFiniteBins + (fraction != 0 ? 2 : static_cast<int>(bits >> 31));
    term = 1;
  } else {
    const unsigned scale = exponent == 0 ? 1 : exponent;  // of a denormal too
    const unsigned mantissa = exponent == 0 ? fraction : fraction | 0x800000u;
    bin = static_cast<int>(scale / kExponentsOfBin);
    term = static_cast<long long>(mantissa) << scale % kExponentsOfBin;
    if (bits >> 31 != 0) term = -term;
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(bins + bin), static_cast<unsigned long long>(term));
}

TW_INLINE void add_to_sum(const SumsArgument& to, long long cell, float x) {
  if (to.bins != nullptr) {
    add_exactly(to.bins + cell * kSumBins, x);
  } else {
    atomicAdd(to.sums + cell, x);
  }
}

// The float nearest to a sum.
TW_INLINE float exact_sum(const long long* bins) {
  const long long infinities = bins[kFiniteBins], negative = bins[kFiniteBins + 1];
  if (bins[kFiniteBins + 2] != 0 || (infinities != 0 && negative != 0)) return __builtin_nanf("");
  if (infinities != 0) return __builtin_inff();
  if (negative != 0) return -__builtin_inff();
  // The first bin's unit is 2^-150, each other's 2^8 times the one before.
  double sum = 0.0, unit = 0x1p-150;
#pragma unroll 1
  for (int bin = 0; bin < kFiniteBins; ++bin, unit *= 1 << kExponentsOfBin) {
    sum += static_cast<double>(bins[bin]) * unit;
  }
  return static_cast<float>(sum);
}

}  // namespace tw_kernel
