#pragma once

#include "cpu/element.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/vector.hpp"

// Rows in and out of a tile of the backward pass, and the weights of its elements.

namespace tw_kernel {

// What a row of q brings to each of its elements.
struct RowFacts {
  float lse;    // +inf of a row with nothing kept: all of its weights are 0
  float delta;  // rowsum(dO * O) - dlse
};

struct RowVectors {
  Vector lse;
  Vector delta;
};

TW_INLINE RowVectors vectors_of(const RowFacts* facts) {
  RowVectors vectors;
  for (int lane = 0; lane < kLanes; ++lane) {
    vectors.lse[lane] = facts[lane].lse;
    vectors.delta[lane] = facts[lane].delta;
  }
  return vectors;
}

// e^(y - lse), 0 of a row with nothing kept, and of what is dropped though lse is NaN. An lse of another call
// could make it overflow.
TW_INLINE Vector weight(Vector y, Vector lse) {
  const Vector greatest = broadcast(80.0f);
  const Vector x = y - lse;
  const IntVector is_nothing = lse == kInfinity | y == -kInfinity;
  return is_nothing ? Vector{} : exp_not_positive(x > greatest ? greatest : x);
}

template <typename Element>
TW_INLINE Element* row_of(const TensorArgument& tensor, int b, int h, int row) {
  return head_of<Element>(tensor, b, h) + row * tensor.row_stride;
}

// count rows as floats: [count][kDim].
template <int kDim, typename Element>
TW_NOINLINE void stage_rows(const Element* rows, long long stride, int count, float* staged) {
  for (int i = 0; i < count; ++i) load_row<kDim>(rows + i * stride, staged + i * kDim);
}

// One lane of chunks times a factor, as a row; zeros where it is empty, whatever the lane holds.
template <int kDim, typename Element>
TW_NOINLINE void store_lane(const Vector* lanes, int i, float factor, bool is_empty, float* row,
                            Element* to) {
  const float* const lane = reinterpret_cast<const float*>(lanes + i / kLanes * kDim) + i % kLanes;
  for (int d = 0; d < kDim; ++d) row[d] = is_empty ? 0.0f : lane[d * kLanes] * factor;
  store_row<kDim>(row, to);
}

}  // namespace tw_kernel
