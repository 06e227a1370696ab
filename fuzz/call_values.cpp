#include "fuzz/call_values.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/api/tensor.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify::fuzz {
namespace {

BufferValues copy_buffer(const TensorView& view) {
  BufferValues values;
  values.extents.assign(view.extents().begin(), view.extents().end());
  const std::int64_t count = view.numel();
  values.elements.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    std::int64_t rest = i;
    for (std::size_t d = values.extents.size(); d-- > 0;) {
      offset += rest % values.extents[d] * view.strides[d];
      rest /= values.extents[d];
    }
    const double value = read_element(view.data, view.dtype, offset);
    values.elements.push_back(view.dtype == DType::f64 ? round_to(DType::f32, value) : value);
  }
  return values;
}

}  // namespace

CallValues::CallValues(const Spec& spec, const Shape& call_shape, const SnippetInputs& inputs)
    : shape(call_shape) {
  std::map<std::string, BufferValues> copies;
  for (const auto& [name, view] : inputs.buffers) copies.emplace(name, copy_buffer(view));
  buffers = std::make_shared<const std::map<std::string, BufferValues>>(std::move(copies));
  for (const auto& [name, scalar] : spec.scalars) {
    const auto given = inputs.scalars.find(name);
    if (given == inputs.scalars.end() && !scalar.default_value) {
      throw Error(ErrorCode::usage, fmt::format("scalar \"{}\" has no value", name));
    }
    const double value = given != inputs.scalars.end() ? given->second : *scalar.default_value;
    scalars.emplace(name, ScalarValue{is_floating(scalar.dtype) ? Type::floating : Type::integer,
                                      round_to(scalar.dtype, value)});
  }
}

}  // namespace tilewright::verify::fuzz
