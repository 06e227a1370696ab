#include "c/shape.hpp"

#include "c/sized.hpp"

namespace tilewright::capi {

Shape shape_of(const tw_shape* shape) {
  const Sized given(&required(shape, "shape"), "tw_shape");
  return {.batch = given->batch,
          .num_q_heads = given->num_q_heads,
          .num_kv_heads = given->num_kv_heads,
          .q_len = given->q_len,
          .kv_len = given->kv_len,
          .q_offset = given->q_offset,
          .kv_offset = given->kv_offset};
}

PackedShape shape_of(const tw_packed_shape* shape) {
  const Sized given(&required(shape, "shape"), "tw_packed_shape");
  return {.batch = given->batch,
          .num_q_heads = given->num_q_heads,
          .num_kv_heads = given->num_kv_heads,
          .total_q = given->total_q,
          .total_kv = given->total_kv,
          .page_size = given->page_size,
          .max_q_len = given->max_q_len,
          .max_kv_len = given->max_kv_len};
}

}  // namespace tilewright::capi
