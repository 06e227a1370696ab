#include "runtime/call/output_shapes.hpp"

#include <cstdint>
#include <initializer_list>

#include "base/error.hpp"

namespace tilewright {
namespace {

TensorView without_data(DType dtype, std::initializer_list<std::int64_t> shape) {
  return TensorView::contiguous(static_cast<void*>(nullptr), dtype, shape);
}

}  // namespace

OutputShapes output_shapes(const Spec& spec, const Shape& shape) {
  if (spec.is_packed()) {
    throw Error(ErrorCode::usage, "the spec is packed, and the shape is one of dense calls",
                "give a PackedShape");
  }
  validate(shape);
  const std::int64_t batch = shape.batch, heads = shape.num_q_heads, rows = shape.q_len;
  const std::int64_t width = spec.value_head_dim();
  const DType dtype = spec.output_dtype();
  OutputShapes result;
  result.out = spec.layout == Layout::bhsd ? without_data(dtype, {batch, heads, rows, width})
                                           : without_data(dtype, {batch, rows, heads, width});
  if (spec.outputs.lse) result.lse = without_data(f32, {batch, heads, rows});
  if (spec.outputs.max_scores) result.max_scores = without_data(f32, {batch, heads, rows});
  if (spec.outputs.weights)
    result.weights = without_data(dtype, {batch, heads, rows, shape.kv_len});
  return result;
}

OutputShapes output_shapes(const Spec& spec, const PackedShape& shape) {
  if (!spec.is_packed()) {
    throw Error(ErrorCode::usage, "the spec is dense, and the shape is one of packed calls",
                "give a Shape");
  }
  validate(shape);
  OutputShapes result;
  result.out =
      without_data(spec.output_dtype(), {shape.total_q, shape.num_q_heads, spec.value_head_dim()});
  const auto rows = without_data(f32, {shape.num_q_heads, shape.total_q});
  if (spec.outputs.lse) result.lse = rows;
  if (spec.outputs.max_scores) result.max_scores = rows;
  return result;
}

}  // namespace tilewright
