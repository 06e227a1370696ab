#include "runtime/call/few_rows.hpp"

#include "generator/tactic/decode_tactic.hpp"

namespace tilewright {

bool are_decoded(const Spec& spec, const Shape& shape) {
  return has_decode_kernel(spec) &&
         fits_decode_rows(shape.q_len, shape.num_q_heads, shape.num_kv_heads);
}

bool has_few_rows(const Spec& spec, const Shape& shape) {
  return !spec.is_packed() && are_decoded(spec, shape);
}

}  // namespace tilewright
