#include "c/tensor.hpp"

#include <algorithm>
#include <string>

namespace tilewright::capi {
namespace {

static_assert(static_cast<int>(DType::f32) == TW_F32 && static_cast<int>(DType::f16) == TW_F16 &&
              static_cast<int>(DType::bf16) == TW_BF16 && static_cast<int>(DType::i32) == TW_I32 &&
              static_cast<int>(DType::i64) == TW_I64 && static_cast<int>(DType::u8) == TW_U8 &&
              static_cast<int>(DType::boolean) == TW_BOOL &&
              static_cast<int>(DType::f8e4m3) == TW_F8E4M3 &&
              static_cast<int>(DType::f8e5m2) == TW_F8E5M2 &&
              static_cast<int>(DType::i8) == TW_I8 && static_cast<int>(DType::f64) == TW_F64 &&
              static_cast<int>(DType::i16) == TW_I16 && static_cast<int>(DType::u16) == TW_U16 &&
              static_cast<int>(DType::u32) == TW_U32 && kAllDTypes.size() == TW_U32 + 1);
static_assert(kMaxRank == 5);

bool is_read_by(const tw_tensor& tensor, const Device& device) {
  switch (tensor.device_type) {
    case TW_ANY_DEVICE:
    case TW_CUDA_HOST:
    case TW_CUDA_MANAGED:
      return true;
    case TW_CPU:
      return device.kind() == Device::Kind::cpu;
    case TW_CUDA:
      return device.kind() == Device::Kind::cuda && device.index() == tensor.device_id;
    default:
      return false;
  }
}

[[noreturn]] void refuse_device(const tw_tensor& tensor, const Device& device, const char* name) {
  const std::string given = tensor.device_type == TW_CPU ? "cpu"
                            : tensor.device_type == TW_CUDA
                                ? "cuda:" + std::to_string(tensor.device_id)
                                : "a device of DLPack's type " + std::to_string(tensor.device_type);
  throw Error(ErrorCode::tensor,
              std::string(name) + " lies on " + given + ", and " + device.name() + " reads it",
              "copy it there, or set device_type to 0 (TW_ANY_DEVICE) if that device reads this "
              "memory");
}

[[noreturn]] void refuse_dtype(const tw_tensor& tensor, const char* name) {
  throw Error(ErrorCode::tensor,
              std::string(name) + " has dtype " + std::to_string(tensor.dtype) + ", which is none",
              "name one of tilewright.h: TW_F32, TW_BF16, ...");
}

}  // namespace

TensorView view_of(const tw_tensor& tensor, const Device& device, const char* name) {
  if (!is_read_by(tensor, device)) refuse_device(tensor, device, name);
  if (tensor.dtype < TW_F32 || tensor.dtype > TW_U32) refuse_dtype(tensor, name);
  TensorView view;
  view.data = tensor.data;
  view.dtype = static_cast<DType>(tensor.dtype);
  view.rank = tensor.rank;
  std::copy(tensor.shape, tensor.shape + kMaxRank, view.shape.begin());
  std::copy(tensor.strides, tensor.strides + kMaxRank, view.strides.begin());
  return view;
}

std::optional<TensorView> optional_view_of(const tw_tensor& tensor, const Device& device,
                                           const char* name) {
  if (is_absent(tensor)) return std::nullopt;
  return view_of(tensor, device, name);
}

ForwardTensors tensors_of(const tw_call& call, const Device& device) {
  return {.q = view_of(call.q, device, "q"),
          .k = view_of(call.k, device, "k"),
          .v = view_of(call.v, device, "v"),
          .out = view_of(call.out, device, "out"),
          .lse = optional_view_of(call.lse, device, "lse"),
          .k_new = optional_view_of(call.k_new, device, "k_new"),
          .v_new = optional_view_of(call.v_new, device, "v_new"),
          .max_scores = optional_view_of(call.max_scores, device, "max_scores"),
          .weights = optional_view_of(call.weights, device, "weights")};
}

BackwardTensors tensors_of(const tw_backward_call& call, const Device& device) {
  return {.q = view_of(call.q, device, "q"),
          .k = view_of(call.k, device, "k"),
          .v = view_of(call.v, device, "v"),
          .out = view_of(call.out, device, "out"),
          .lse = view_of(call.lse, device, "lse"),
          .dout = view_of(call.dout, device, "dout"),
          .dlse = optional_view_of(call.dlse, device, "dlse"),
          .dq = optional_view_of(call.dq, device, "dq"),
          .dk = optional_view_of(call.dk, device, "dk"),
          .dv = optional_view_of(call.dv, device, "dv")};
}

tw_tensor tensor_of(const TensorView& view) {
  return tw_tensor_contiguous(view.data, static_cast<std::int32_t>(view.dtype), view.rank,
                              view.shape.data());
}

}  // namespace tilewright::capi

extern "C" tw_tensor tw_tensor_contiguous(void* data, int32_t dtype, int32_t rank,
                                          const int64_t* shape) {
  tw_tensor tensor = {};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = rank;
  if (rank < 1 || rank > tilewright::kMaxRank || !shape) return tensor;
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    tensor.shape[i] = shape[i];
    tensor.strides[i] = stride;
    // Sizes that 64 bits do not count are refused by the call that gets the tensor.
    if (__builtin_mul_overflow(stride, shape[i], &stride)) stride = INT64_MAX;
  }
  return tensor;
}
