#include "runtime/cuda/tensor_maps.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "base/ceil_div.hpp"
#include "generator/tactic/hopper_tactic.hpp"
#include "runtime/cuda/arguments.hpp"

namespace tilewright::cuda {
namespace {

using abi::cuda::TensorMap;

// Of cuda.h.
constexpr int kUint8 = 0;
constexpr int kFloat16 = 6;
constexpr int kBFloat16 = 9;
constexpr int kNotInterleaved = 0;
constexpr int kSwizzle128Bytes = 3;
constexpr int kPromoteTo256Bytes = 3;
constexpr int kOutsideIsZero = 0;

constexpr std::uint32_t kBoxBytes = 128;      // of a row
constexpr std::uint32_t kQBoxRows = 64;       // a warpgroup's
constexpr std::uint32_t kOutBoxRows = 16;     // a warp's
constexpr std::uint32_t kColumnBoxRows = 64;  // of dk and dv: a warpgroup's
constexpr std::int64_t kGreatestStride = (std::int64_t{1} << 40) - 1;  // in bytes
// A packed tensor's rows, whose stride is taken from that of a turn.
constexpr std::int64_t kGreatestRaggedStride = abi::cuda::kRaggedTurn - 16;

std::int64_t bytes_of(DType dtype) {
  return static_cast<std::int64_t>(size_of(dtype));
}

std::uint32_t box_columns(DType dtype) {
  return kBoxBytes / static_cast<std::uint32_t>(size_of(dtype));
}

// Bytes are copied as they are.
int type_of(DType dtype) {
  if (size_of(dtype) == 1) return kUint8;
  return dtype == DType::f16 ? kFloat16 : kBFloat16;
}

struct Extents {
  std::int64_t columns, rows, heads, batch;
};

bool fits(const Spec& spec, DType dtype, const ResolvedTensor& tensor, std::int64_t rows) {
  const std::int64_t bytes = bytes_of(dtype);
  if (spec.is_packed() &&
      (rows > abi::cuda::kRaggedRows || tensor.row_stride > kGreatestRaggedStride / bytes)) {
    return false;
  }
  const auto is_stride = [bytes](std::int64_t elements) {
    return elements >= 0 && elements <= kGreatestStride / bytes;
  };
  return (tensor.row_stride > 0 || rows == 1) && is_stride(tensor.row_stride) &&
         is_stride(tensor.head_stride) && is_stride(tensor.batch_stride);
}

// Boxes of pages: see templates/cuda/hopper/paged_kv_boxes.hpp.
constexpr std::int64_t kLeastPageBoxRows = 16;
constexpr std::uint32_t kRowsOfGroup = 8;  // which the swizzle of shared memory repeats after

// From a page to the next, in rows of one head.
std::int64_t page_rows(const ResolvedTensor& pool) {
  return pool.batch_stride / pool.row_stride;
}

// The pool's rows count on from page to page, in steps of a row of one head.
bool pages_fit(const ResolvedTensor& pool, std::int64_t page_size, std::int64_t pages) {
  if (page_size % kLeastPageBoxRows != 0) return false;
  if (pages == 0) return true;
  return pool.batch_stride % pool.row_stride == 0 && page_rows(pool) % kRowsOfGroup == 0 &&
         pool.batch_stride <= std::numeric_limits<std::int32_t>::max() &&
         page_rows(pool) <= (abi::cuda::kRaggedExtent - page_size) / pages;
}

bool pools_fit(const ForwardCall& call) {
  const std::int64_t pages = call.shape.kv_len / call.page_size;
  return pages_fit(call.k, call.page_size, pages) && pages_fit(call.v, call.page_size, pages);
}

// A dimension that is broadcast has extent 1, and its stride does not matter; 0 is no stride.
std::uint64_t stride_bytes(DType dtype, std::int64_t elements) {
  constexpr std::uint64_t kAnyStride = 16;
  return elements == 0 ? kAnyStride : static_cast<std::uint64_t>(elements * bytes_of(dtype));
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
  std::array<std::uint32_t, 5> box = {1, 1, 1, 1, 1};

  friend bool operator==(const MapRequest&, const MapRequest&) = default;
};

MapRequest make_request(DType dtype, const ResolvedTensor& tensor, const Extents& size,
                        std::uint32_t box_rows) {
  return {
      .type = type_of(dtype),
      .rank = 4,
      .data = tensor.data,
      .extents = {static_cast<std::uint64_t>(size.columns), static_cast<std::uint64_t>(size.rows),
                  extent(size.heads, tensor.head_stride), extent(size.batch, tensor.batch_stride)},
      .strides = {stride_bytes(dtype, tensor.row_stride), stride_bytes(dtype, tensor.head_stride),
                  stride_bytes(dtype, tensor.batch_stride)},
      .box = {box_columns(dtype), box_rows, 1, 1}};
}

// Rows twice, so that a box can say where its sequence ends: abi/cuda_tensor_maps.hpp.
MapRequest make_ragged_request(DType dtype, const ResolvedTensor& tensor, const Extents& size,
                               std::uint32_t box_rows) {
  const std::uint64_t row = stride_bytes(dtype, tensor.row_stride);
  return {
      .type = type_of(dtype),
      .rank = 5,
      .data = tensor.data,
      .extents = {static_cast<std::uint64_t>(size.columns), abi::cuda::kRaggedRows,
                  extent(size.heads, tensor.head_stride), abi::cuda::kRaggedExtent,
                  abi::cuda::kRaggedExtent},
      .strides = {row, stride_bytes(dtype, tensor.head_stride), row, abi::cuda::kRaggedTurn - row},
      .box = {box_columns(dtype), box_rows, 1, 1, 1}};
}

// Rows in groups of 8, of which a box has whole ones.
// rows_of_group: of the second dimension
// groups: that the tensor has
MapRequest make_group_request(DType dtype, const ResolvedTensor& tensor, const Extents& size,
                              std::uint32_t rows_of_group, std::int64_t groups,
                              std::uint32_t box_rows) {
  const std::uint64_t row = stride_bytes(dtype, tensor.row_stride),
                      head = stride_bytes(dtype, tensor.head_stride);
  const auto all = static_cast<std::uint64_t>(groups);
  const auto columns = static_cast<std::uint64_t>(size.columns);
  const auto panels = static_cast<std::uint32_t>(page_box_panels(size.columns, dtype));
  const std::uint64_t heads = extent(size.heads, tensor.head_stride);
  const std::uint32_t box_groups = box_rows / kRowsOfGroup;
  MapRequest request = {.type = type_of(dtype), .data = tensor.data};
  if (panels > 1 || columns <= box_columns(dtype)) {
    request.rank = 5;
    request.extents = {std::min<std::uint64_t>(columns, box_columns(dtype)), rows_of_group, panels,
                       heads, all};
    request.strides = {row, kBoxBytes, head, kRowsOfGroup * row};
    request.box = {box_columns(dtype), kRowsOfGroup, panels, 1, box_groups};
  } else {
    request.rank = 4;
    request.extents = {columns, rows_of_group, heads, all};
    request.strides = {row, head, kRowsOfGroup * row};
    request.box = {box_columns(dtype), kRowsOfGroup, 1, box_groups};
  }
  return request;
}

// Rows of the pool, counted as if all were of one page.
MapRequest make_page_request(DType dtype, const ResolvedTensor& pool, const Extents& size,
                             std::int64_t page_size, std::uint32_t box_rows) {
  const std::int64_t pages = size.rows / page_size;
  const std::int64_t rows = pages == 0 ? 1 : (pages - 1) * page_rows(pool) + page_size;
  return make_group_request(dtype, pool, size, kRowsOfGroup,
                            ceil_div(rows, std::int64_t{kRowsOfGroup}), box_rows);
}

// Tiles of new rows, which begin at any row.
MapRequest make_new_tile_request(DType dtype, const ResolvedTensor& tensor, const Extents& size,
                                 std::uint32_t box_rows) {
  const std::int64_t groups = ceil_div(size.rows, std::int64_t{kRowsOfGroup});
  return make_group_request(dtype, tensor, size, 2 * kRowsOfGroup - 1,
                            std::max<std::int64_t>(groups, 1), box_rows);
}

void encode(const Driver& driver, const MapRequest& request, TensorMap& map) {
  const std::uint32_t every_element[] = {1, 1, 1, 1, 1};
  // A map has an address, though no kernel brings a box of a tensor without elements.
  constexpr std::uintptr_t kSomewhere = 16;  // a multiple of what a map wants
  void* const data = request.data ? request.data : reinterpret_cast<void*>(kSomewhere);
  driver.check(driver.functions().tensor_map_encode(
                   &map, request.type, request.rank, data, request.extents.data(),
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

// What a kernel brings of K, or of V, besides whole boxes of pages.
void make_new_rows_maps(const Driver& driver, DType dtype, const ResolvedTensor& pool,
                        const Extents& pool_size, const ResolvedTensor& fresh,
                        const Extents& new_size, std::uint32_t kv_tile, std::span<LastMap, 5> last,
                        abi::cuda::NewRowsMaps& maps) {
  const auto pieces = [&](const ResolvedTensor& tensor, const Extents& size, std::size_t first) {
    for (const std::size_t i : {first, first + 1}) {
      const std::uint32_t rows = i == first ? kRowsOfGroup : 1;
      find_or_encode(driver, make_ragged_request(dtype, tensor, size, rows), last[i],
                     maps.pieces[i]);
    }
  };
  pieces(pool, pool_size, 0);
  pieces(fresh, new_size, 2);
  find_or_encode(driver, make_new_tile_request(dtype, fresh, new_size, kv_tile), last[4],
                 maps.tile);
}

// A head of K is a head of the new rows too, in maps that have one where it is broadcast.
bool broadcast_alike(const Shape& shape, const ResolvedTensor& pool, const ResolvedTensor& fresh) {
  return shape.num_kv_heads == 1 || (pool.head_stride == 0) == (fresh.head_stride == 0);
}

bool new_rows_fit(const Spec& spec, const ForwardCall& call) {
  const auto fit = [&](const ResolvedTensor& pool, const ResolvedTensor& fresh) {
    return fits(spec, spec.dtype, fresh, call.shape.q_len) &&
           broadcast_alike(call.shape, pool, fresh);
  };
  return fit(call.k, call.k_new) && fit(call.v, call.v_new);
}

}  // namespace

bool fit_tensor_maps(const Spec& spec, const ForwardCall& call) {
  const DType kv = spec.key_value_dtype();
  return is_aligned(spec, call) && fits(spec, spec.dtype, call.q, call.shape.q_len) &&
         fits(spec, kv, call.k, call.shape.kv_len) && fits(spec, kv, call.v, call.shape.kv_len) &&
         fits(spec, spec.output_dtype(), call.out, call.shape.q_len) &&
         (!spec.is_paged() || pools_fit(call)) && (!spec.kv_new || new_rows_fit(spec, call));
}

int page_box_shift(std::int64_t page_size, std::int64_t kv_tile) {
  constexpr int kMostRows = 256;  // of a box, as the copy engine has it
  const auto both = static_cast<std::uint64_t>(page_size | kv_tile | kMostRows);
  return std::countr_zero(both);
}

void make_tensor_maps(const Driver& driver, const Spec& spec, const ForwardCall& call,
                      std::int64_t kv_tile, ForwardMaps& maps) {
  thread_local LastMap last[15];
  const Shape& shape = call.shape;
  const auto kv_rows = static_cast<std::uint32_t>(
      spec.is_paged() ? 1 << page_box_shift(call.page_size, kv_tile) : kv_tile);
  const Extents q = {spec.head_dim, shape.q_len, shape.num_q_heads, shape.batch};
  const Extents k = {spec.head_dim, shape.kv_len, shape.num_kv_heads, shape.batch};
  const Extents v = {spec.value_head_dim(), shape.kv_len, shape.num_kv_heads, shape.batch};
  const Extents out = {spec.value_head_dim(), shape.q_len, shape.num_q_heads, shape.batch};
  const DType kv = spec.key_value_dtype();
  const auto request = spec.is_packed() ? make_ragged_request : make_request;
  abi::cuda::TensorMaps& of_all =
      spec.kv_new ? static_cast<abi::cuda::TensorMaps&>(maps.new_rows) : maps.paged;
  find_or_encode(driver, request(spec.dtype, call.q, q, kQBoxRows), last[0], of_all.q);
  if (spec.is_paged()) {
    const auto paged = [&](const ResolvedTensor& pool, const Extents& size) {
      return make_page_request(kv, pool, size, call.page_size, kv_rows);
    };
    find_or_encode(driver, paged(call.k, k), last[1], of_all.k);
    find_or_encode(driver, paged(call.v, v), last[2], of_all.v);
  } else {
    find_or_encode(driver, request(kv, call.k, k, kv_rows), last[1], of_all.k);
    find_or_encode(driver, request(kv, call.v, v, kv_rows), last[2], of_all.v);
  }
  if (spec.kv_new) {
    const auto tile = static_cast<std::uint32_t>(kv_tile);
    const Extents k_new = {k.columns, q.rows, k.heads, 1}, v_new = {v.columns, q.rows, v.heads, 1};
    const std::span<LastMap> more = std::span(last).subspan(5);
    make_new_rows_maps(driver, kv, call.k, k, call.k_new, k_new, tile, more.first<5>(),
                       maps.new_rows.more_of_k);
    make_new_rows_maps(driver, kv, call.v, v, call.v_new, v_new, tile, more.last<5>(),
                       maps.new_rows.more_of_v);
  } else if (spec.is_paged()) {
    find_or_encode(driver, request(kv, call.v, v, kRowsOfGroup), last[4], maps.paged.v_end);
  }
  if (size_of(spec.output_dtype()) != 2) return;  // stored from registers
  find_or_encode(driver, request(spec.output_dtype(), call.out, out, kOutBoxRows), last[3],
                 of_all.out);
}

bool fit_backward_maps(const Spec& spec, const BackwardCall& call) {
  const ForwardCall& forward = call.forward;
  const Shape& shape = forward.shape;
  return fits(spec, spec.dtype, forward.q, shape.q_len) &&
         fits(spec, spec.dtype, call.dout, shape.q_len) &&
         fits(spec, spec.dtype, forward.k, shape.kv_len) &&
         fits(spec, spec.dtype, forward.v, shape.kv_len) &&
         fits(spec, spec.dtype, call.dk, shape.kv_len) &&
         fits(spec, spec.dtype, call.dv, shape.kv_len);
}

void make_backward_maps(const Driver& driver, const Spec& spec, const BackwardCall& call,
                        std::int64_t rows, std::int64_t columns, abi::cuda::BackwardMaps& maps) {
  thread_local LastMap last[6];
  const ForwardCall& forward = call.forward;
  const Shape& shape = forward.shape;
  const auto q_rows = static_cast<std::uint32_t>(rows),
             kv_rows = static_cast<std::uint32_t>(columns);
  const Extents q = {spec.head_dim, shape.q_len, shape.num_q_heads, shape.batch};
  const Extents k = {spec.head_dim, shape.kv_len, shape.num_kv_heads, shape.batch};
  const Extents v = {spec.value_head_dim(), shape.kv_len, shape.num_kv_heads, shape.batch};
  const Extents out = {spec.value_head_dim(), shape.q_len, shape.num_q_heads, shape.batch};
  const DType dtype = spec.dtype;
  const auto request = spec.is_packed() ? make_ragged_request : make_request;
  find_or_encode(driver, request(dtype, forward.q, q, q_rows), last[0], maps.q);
  find_or_encode(driver, request(dtype, call.dout, out, q_rows), last[1], maps.dout);
  find_or_encode(driver, request(dtype, forward.k, k, kv_rows), last[2], maps.k);
  find_or_encode(driver, request(dtype, forward.v, v, kv_rows), last[3], maps.v);
  find_or_encode(driver, request(dtype, call.dk, k, kColumnBoxRows), last[4], maps.dk);
  find_or_encode(driver, request(dtype, call.dv, v, kColumnBoxRows), last[5], maps.dv);
}

}  // namespace tilewright::cuda
