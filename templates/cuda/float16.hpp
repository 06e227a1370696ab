#pragma once

// The 16-bit types of elements.

namespace tw_kernel {

struct Half {
  unsigned short bits;
};

struct BFloat16 {
  unsigned short bits;
};

}  // namespace tw_kernel
