#include "runtime/cuda/tensor_maps.hpp"

#include <array>
#include <cstdint>

#include "runtime/cuda/arguments.hpp"

namespace tilewright::cuda {
namespace {

using abi::cuda::TensorMap;

// Of cuda.h.
constexpr int kFloat16 = 6;
constexpr int kBFloat16 = 9;
constexpr int kNotInterleaved = 0;
constexpr int kSwizzle128Bytes = 3;
constexpr int kPromoteTo256Bytes = 3;
constexpr int kOutsideIsZero = 0;

constexpr std::uint32_t kBoxColumns = 64;
constexpr std::uint32_t kQBoxRows = 64;    // a warpgroup's
constexpr std::uint32_t kOutBoxRows = 16;  // a warp's
constexpr std::int64_t kElementBytes = 2;
constexpr std::int64_t kGreatestStride = (std::int64_t{1} << 40) - 1;  // in bytes
// A packed tensor's rows, whose stride is taken from that of a turn.
constexpr std::int64_t kGreatestRaggedStride = abi::cuda::kRaggedTurn - 16;

struct Extents {
  std::int64_t columns, rows, heads, batch;
};

bool fits(const Spec& spec, const ResolvedTensor& tensor, std::int64_t rows) {
  if (spec.is_packed() && (rows > abi::cuda::kRaggedRows ||
                           tensor.row_stride > kGreatestRaggedStride / kElementBytes)) {
    return false;
  }
  const auto is_stride = [](std::int64_t elements) {
    return elements >= 0 && elements <= kGreatestStride / kElementBytes;
  };
  return (tensor.row_stride > 0 || rows == 1) && is_stride(tensor.row_stride) &&
         is_stride(tensor.head_stride) && is_stride(tensor.batch_stride);
}

// A dimension that is broadcast has extent 1, and its stride does not matter; 0 is no stride.
std::uint64_t stride_bytes(std::int64_t elements) {
  constexpr std::uint64_t kAnyStride = 16;
  return elements == 0 ? kAnyStride : static_cast<std::uint64_t>(elements * kElementBytes);
}

std::uint64_t extent(std::int64_t size, std::int64_t stride) {
  return stride == 0 ? 1 : static_cast<std::uint64_t>(size);
}

// What a map is made of: fastest dimension first.
struct MapRequest {
  int type = 0;
  unsigned rank = 0;
  void* data = nullptr;
  std::array<std::uint64_t, 5> extents = {};
  std::array<std::uint64_t, 4> strides = {};  // in bytes
  std::array<std::uint32_t, 5> box = {};

  friend bool operator==(const MapRequest&, const MapRequest&) = default;
};

MapRequest make_request(DType dtype, const ResolvedTensor& tensor, const Extents& size,
                        std::uint32_t box_rows) {
  return {
      .type = dtype == DType::f16 ? kFloat16 : kBFloat16,
      .rank = 4,
      .data = tensor.data,
      .extents = {static_cast<std::uint64_t>(size.columns), static_cast<std::uint64_t>(size.rows),
                  extent(size.heads, tensor.head_stride), extent(size.batch, tensor.batch_stride)},
      .strides = {stride_bytes(tensor.row_stride), stride_bytes(tensor.head_stride),
                  stride_bytes(tensor.batch_stride)},
      .box = {kBoxColumns, box_rows, 1, 1}};
}

// Rows twice, so that a box can say where its sequence ends: abi/cuda_tensor_maps.hpp.
MapRequest make_ragged_request(DType dtype, const ResolvedTensor& tensor, const Extents& size,
                               std::uint32_t box_rows) {
  const std::uint64_t row = stride_bytes(tensor.row_stride);
  return {.type = dtype == DType::f16 ? kFloat16 : kBFloat16,
          .rank = 5,
          .data = tensor.data,
          .extents = {static_cast<std::uint64_t>(size.columns), abi::cuda::kRaggedRows,
                      extent(size.heads, tensor.head_stride), abi::cuda::kRaggedExtent,
                      abi::cuda::kRaggedExtent},
          .strides = {row, stride_bytes(tensor.head_stride), row, abi::cuda::kRaggedTurn - row},
          .box = {kBoxColumns, box_rows, 1, 1, 1}};
}

void encode(const Driver& driver, const MapRequest& request, TensorMap& map) {
  const std::uint32_t every_element[] = {1, 1, 1, 1, 1};
  driver.check(driver.functions().tensor_map_encode(
                   &map, request.type, request.rank, request.data, request.extents.data(),
                   request.strides.data(), request.box.data(), every_element, kNotInterleaved,
                   kSwizzle128Bytes, kPromoteTo256Bytes, kOutsideIsZero),
               "describing a tensor");
}

// The last map of a thread, as calls often come with the tensors of the call before.
struct LastMap {
  MapRequest request;
  TensorMap map;
};

void find_or_encode(const Driver& driver, const MapRequest& request, LastMap& last,
                    TensorMap& map) {
  if (!(request == last.request)) {
    last.request = {};  // nothing is known should the driver refuse
    encode(driver, request, last.map);
    last.request = request;
  }
  map = last.map;
}

}  // namespace

bool fit_tensor_maps(const Spec& spec, const ForwardCall& call) {
  return is_aligned(spec, call) && fits(spec, call.q, call.shape.q_len) &&
         fits(spec, call.k, call.shape.kv_len) && fits(spec, call.v, call.shape.kv_len) &&
         fits(spec, call.out, call.shape.q_len);
}

void make_tensor_maps(const Driver& driver, const Spec& spec, const ForwardCall& call,
                      std::int64_t kv_box_rows, abi::cuda::TensorMaps& maps) {
  thread_local LastMap last[4];
  const Shape& shape = call.shape;
  const auto kv_rows = static_cast<std::uint32_t>(kv_box_rows);
  const Extents q = {spec.head_dim, shape.q_len, shape.num_q_heads, shape.batch};
  const Extents k = {spec.head_dim, shape.kv_len, shape.num_kv_heads, shape.batch};
  const Extents v = {spec.value_head_dim(), shape.kv_len, shape.num_kv_heads, shape.batch};
  const Extents out = {spec.value_head_dim(), shape.q_len, shape.num_q_heads, shape.batch};
  const auto request = spec.is_packed() ? make_ragged_request : make_request;
  find_or_encode(driver, request(spec.dtype, call.q, q, kQBoxRows), last[0], maps.q);
  find_or_encode(driver, request(spec.dtype, call.k, k, kv_rows), last[1], maps.k);
  find_or_encode(driver, request(spec.dtype, call.v, v, kv_rows), last[2], maps.v);
  if (spec.output_dtype() == DType::f32) return;
  find_or_encode(driver, request(spec.output_dtype(), call.out, out, kOutBoxRows), last[3],
                 maps.out);
}

}  // namespace tilewright::cuda
