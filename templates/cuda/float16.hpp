#pragma once

// The 16-bit types of elements.

namespace tw_kernel {

struct Half {
  unsigned short bits;
};

struct BFloat16 {
  unsigned short bits;
};

// Binary digits of a number, the leading one included.
template <typename Element>
constexpr int kDigits = 24;  // float
template <>
constexpr int kDigits<Half> = 11;
template <>
constexpr int kDigits<BFloat16> = 8;

}  // namespace tw_kernel
