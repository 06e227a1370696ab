#pragma once

#include "cuda/float16.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"

// In place of templates/cuda/ptx/mma.hpp, which says who holds which elements.

namespace tw_kernel {

// Two elements of 16 bits, or one of TF32.
template <typename Element>
struct Operand {
  static constexpr int kElements = 4 / sizeof(Element);
  static float element(unsigned operand, int which) {
    if constexpr (sizeof(Element) == 4) {
      return __uint_as_float(operand & ~0x1fffu);  // the others are not looked at
    } else {
      return to_float(Element{static_cast<unsigned short>(operand >> 16 * which)});
    }
  }
};

template <typename Element>
TW_INLINE void multiply_add(float& c0, float& c1, float& c2, float& c3, const unsigned (&a)[4],
                            unsigned b0, unsigned b1) {
  struct Fragments {
    unsigned a[4];
    unsigned b[2];
  };
  const Fragments mine = [&] {
    Fragments fragments;
    for (int i = 0; i < 4; ++i) fragments.a[i] = a[i];
    fragments.b[0] = b0;
    fragments.b[1] = b1;
    return fragments;
  }();
  const auto all = emulated::exchange(mine);
  const unsigned lane = threadIdx.x % 32;
  float* const c[4] = {&c0, &c1, &c2, &c3};
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      float sum = *c[2 * i + j];
      // A lane has kEach neighbouring elements of each half of the sum.
      constexpr int kEach = Operand<Element>::kElements, kHalf = 4 * kEach;
      for (int k = 0; k < 2 * kHalf; ++k) {
        const Fragments& row = all.of[lane / 4 * 4 + k % kHalf / kEach];
        const Fragments& column = all.of[(lane % 4 * 2 + j) * 4 + k % kHalf / kEach];
        sum += Operand<Element>::element(row.a[i + 2 * (k / kHalf)], k % kEach) *
               Operand<Element>::element(column.b[k / kHalf], k % kEach);
      }
      *c[2 * i + j] = sum;
    }
  }
}

}  // namespace tw_kernel
