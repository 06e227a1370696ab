#pragma once

#include "cuda/attention/either_row.hpp"
#include "cuda/attention/strided_rows.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "kernel/configuration.hpp"

// Four elements of a row from global to shared memory, as floats; zeros where there is no row.

namespace tw_kernel {

TW_INLINE void copy_elements(unsigned to, const float* from, bool present) {
  if (kAligned) {
    copy_async_16(to, from, present);
  } else {
    store_shared_16(to, present ? __float_as_uint(from[0]) : 0,
                    present ? __float_as_uint(from[1]) : 0, present ? __float_as_uint(from[2]) : 0,
                    present ? __float_as_uint(from[3]) : 0);
  }
}

template <typename Element>
TW_INLINE void copy_elements(unsigned to, const Element* from, bool present) {
  unsigned bits[4] = {};
  if (present) {
#pragma unroll
    for (int i = 0; i < 4; ++i) bits[i] = __float_as_uint(to_float(from[i]));
  }
  store_shared_16(to, bits[0], bits[1], bits[2], bits[3]);
}

template <typename Element>
TW_INLINE void copy_source(unsigned to, const RowSource<Element>& source) {
  copy_elements(to, source.data, source.is_present);
}
template <typename Paged, typename New>
TW_INLINE void copy_source(unsigned to, const EitherSource<Paged, New>& source) {
  if (source.fresh != nullptr) {
    copy_elements(to, source.fresh, source.is_present);
  } else {
    copy_elements(to, source.paged, source.is_present);
  }
}

}  // namespace tw_kernel
