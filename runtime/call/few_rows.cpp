#include "runtime/call/few_rows.hpp"

#include "generator/tactic/decode_tactic.hpp"

namespace tilewright {

bool has_few_rows(const Spec& spec, const Shape& shape) {
  return !spec.is_packed() && has_decode_kernel(spec) &&
         fits_decode_rows(shape.q_len, shape.num_q_heads, shape.num_kv_heads);
}

}  // namespace tilewright
