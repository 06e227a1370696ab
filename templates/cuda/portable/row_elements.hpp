#pragma once

#include "cuda/attention/either_row.hpp"
#include "cuda/attention/strided_rows.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"

// Elements of a row one by one, for rows that have fewer columns than a tile's: kHeadColumns of kHeadDim,
// kValueColumns of kValueDim.

namespace tw_kernel {

template <typename Element>
TW_INLINE float float_of(const RowSource<Element>& source, int i) {
  return to_float(source.data[i]);
}
template <typename Paged, typename New>
TW_INLINE float float_of(const EitherSource<Paged, New>& source, int i) {
  return source.fresh != nullptr ? to_float(source.fresh[i]) : to_float(source.paged[i]);
}

}  // namespace tw_kernel
