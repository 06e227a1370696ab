#include "jax_frame.hpp"

#include "base/error.hpp"
#include "dtypes.hpp"

namespace tilewright::py {
namespace {

DType dtype_of(XLA_FFI_DataType dtype) {
  switch (dtype) {
    case XLA_FFI_DataType_F32:
      return f32;
    case XLA_FFI_DataType_F16:
      return f16;
    case XLA_FFI_DataType_BF16:
      return bf16;
    case XLA_FFI_DataType_S32:
      return i32;
    case XLA_FFI_DataType_S64:
      return i64;
    case XLA_FFI_DataType_F8E4M3FN:
      return f8e4m3;
    case XLA_FFI_DataType_F8E5M2:
      return f8e5m2;
    case XLA_FFI_DataType_S8:
      return i8;
    case XLA_FFI_DataType_U8:
      return u8;
    case XLA_FFI_DataType_PRED:
      return boolean;
    case XLA_FFI_DataType_F64:
      return f64;
    case XLA_FFI_DataType_S16:
      return i16;
    case XLA_FFI_DataType_U16:
      return u16;
    case XLA_FFI_DataType_U32:
      return u32;
    default:
      throw Error(ErrorCode::tensor, "an array has XLA's dtype " + std::to_string(dtype),
                  kDTypeHint);
  }
}

TensorView view_of(const void* argument) {
  const auto& buffer = *static_cast<const XLA_FFI_Buffer*>(argument);
  return TensorView::contiguous(
      buffer.data, dtype_of(buffer.dtype),
      std::span<const std::int64_t>(buffer.dims, static_cast<std::size_t>(buffer.rank)));
}

}  // namespace

TensorView JaxFrame::input(std::size_t index) const {
  return view_of(frame_.args.args[index]);
}

TensorView JaxFrame::output(std::size_t index) const {
  return view_of(frame_.rets.rets[index]);
}

const void* JaxFrame::attribute(std::string_view name, XLA_FFI_AttrType type) const {
  for (std::int64_t i = 0; i < frame_.attrs.size; ++i) {
    const XLA_FFI_ByteSpan& found = *frame_.attrs.names[i];
    if (std::string_view(found.ptr, found.len) == name && frame_.attrs.types[i] == type) {
      return frame_.attrs.attrs[i];
    }
  }
  throw Error(ErrorCode::internal, "XLA's call has no attribute " + std::string(name));
}

std::string JaxFrame::text(std::string_view name) const {
  const auto& span =
      *static_cast<const XLA_FFI_ByteSpan*>(attribute(name, XLA_FFI_AttrType_STRING));
  return {span.ptr, span.len};
}

double JaxFrame::number(std::string_view name) const {
  const void* found = attribute(name, XLA_FFI_AttrType_SCALAR);
  return *static_cast<const double*>(static_cast<const XLA_FFI_Scalar*>(found)->value);
}

std::int64_t JaxFrame::integer(std::string_view name) const {
  const void* found = attribute(name, XLA_FFI_AttrType_SCALAR);
  return *static_cast<const std::int64_t*>(static_cast<const XLA_FFI_Scalar*>(found)->value);
}

std::vector<double> JaxFrame::numbers(std::string_view name) const {
  const auto& array = *static_cast<const XLA_FFI_Array*>(attribute(name, XLA_FFI_AttrType_ARRAY));
  const auto* data = static_cast<const double*>(array.data);
  return {data, data + array.size};
}

void* JaxFrame::stream() const {
  XLA_FFI_Stream_Get_Args args = {};
  args.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
  args.ctx = frame_.ctx;
  if (XLA_FFI_Error* error = frame_.api->XLA_FFI_Stream_Get(&args)) {
    XLA_FFI_Error_Destroy_Args destroyed = {};
    destroyed.struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE;
    destroyed.error = error;
    frame_.api->XLA_FFI_Error_Destroy(&destroyed);
    throw Error(ErrorCode::device, "XLA gives this call no stream");
  }
  return args.stream;
}

}  // namespace tilewright::py
