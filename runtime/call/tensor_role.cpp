#include "runtime/call/tensor_role.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/call/x_pools.hpp"

namespace tilewright {
namespace {

std::string dimension_names(Layout layout, std::string_view heads, std::string_view rows,
                            std::string_view width, std::int64_t x) {
  switch (layout) {
    case Layout::bhsd:
      return fmt::format("[batch, {}, {}, {}]", heads, rows, width);
    case Layout::bshd:
      return fmt::format("[batch, {}, {}, {}]", rows, heads, width);
    case Layout::paged:
      return fmt::format("[pages, page_size, {}, {}]", heads, width);
    case Layout::paged_x:
      if (x > 1) return fmt::format("[pages, {0}, {1} / {2}, page_size, {2}]", heads, width, x);
      return fmt::format("[pages, {}, {}, page_size]", heads, width);
    case Layout::packed:
      break;
  }
  return fmt::format("[{}, {}, {}]", rows, heads, width);
}

bool is_packed(Layout layout) {
  return layout == Layout::packed;
}
int rank_of(Layout layout) {
  return is_packed(layout) ? 3 : 4;
}
int head_dimension(Layout layout) {
  return layout == Layout::bshd || layout == Layout::paged ? 2 : 1;
}
int row_dimension(Layout layout) {
  return layout == Layout::bhsd ? 2 : is_packed(layout) ? 0 : 1;
}
// Which may have extent 0: rows of all sequences, or pages.
bool may_be_empty(Layout layout, int dimension) {
  return (is_packed(layout) || layout == Layout::paged) && dimension == 0;
}

std::string element_text(const std::array<std::int64_t, kMaxRank>& index, int rank) {
  return fmt::format("[{}]", fmt::join(index.begin(), index.begin() + rank, ", "));
}

// Whether each dimension's stride is at least as long as what lies inside it, for an order of the
// dimensions, fastest first. What calls usually bring passes here, in two nanoseconds.
bool nest(const TensorView& view, std::initializer_list<int> order) {
  std::int64_t inside = view.shape[view.rank - 1];
  for (const int d : order) {
    if (view.shape[d] <= 1) continue;
    if (view.strides[d] < inside) return false;
    inside += view.strides[d] * (view.shape[d] - 1);
  }
  return true;
}

}  // namespace

void TensorRole::refuse(const TensorView& view, const std::string& why) const {
  throw Error(ErrorCode::tensor, fmt::format("{} {}", name, why),
              fmt::format("given: {}; wanted: {} {}", view.describe(), to_string(dtype),
                          dimension_names(layout, heads, rows, width, x)));
}

bool lacks_data(const TensorView& view) {
  if (view.data != nullptr) return false;
  if (view.rank < 0 || view.rank > kMaxRank) return true;
  const auto extents = view.extents();
  return std::find(extents.begin(), extents.end(), 0) == extents.end();
}

TensorSizes sizes_of(const TensorRole& role, const TensorView& view) {
  if (lacks_data(view)) role.refuse(view, "has no data");
  if (view.dtype != role.dtype) {
    role.refuse(view, fmt::format("is {}, but the spec says {}", to_string(view.dtype),
                                  to_string(role.dtype)));
  }
  if (role.layout == Layout::paged_x) return sizes_of_x_pool(role, view);
  const int rank = rank_of(role.layout);
  if (view.rank != rank) {
    const std::string_view kind = is_packed(role.layout)         ? "packed "
                                  : role.layout == Layout::paged ? "paged "
                                                                 : "";
    role.refuse(view, fmt::format("has rank {}; {}attention needs rank {}", view.rank, kind, rank));
  }
  for (int i = 0; i < rank; ++i) {
    if (view.shape[i] < 1 && !may_be_empty(role.layout, i)) {
      role.refuse(view, fmt::format("is empty in dimension {}", i));
    }
  }
  const int width = rank - 1;
  if (view.shape[width] > 1 && view.strides[width] != 1) {
    role.refuse(view, fmt::format("has stride {} in its last dimension, which must be contiguous",
                                  view.strides[width]));
  }
  if (const std::string fault = view.fault(); !fault.empty()) role.refuse(view, fault);
  return {is_packed(role.layout) ? 1 : view.shape[0], view.shape[head_dimension(role.layout)],
          view.shape[row_dimension(role.layout)], view.shape[width]};
}

void require_size(const TensorRole& role, const TensorView& view, std::string_view what,
                  std::int64_t given, std::int64_t wanted, std::string_view because) {
  if (given == wanted) return;
  role.refuse(view, fmt::format("has {} {}, but {} is {}", what, given, because, wanted));
}

ResolvedTensor resolved(const TensorView& view, Layout layout) {
  if (layout == Layout::paged_x) return resolved_x_pool(view);
  return {.data = view.data,
          .batch_stride = is_packed(layout) || view.shape[0] <= 1 ? 0 : view.strides[0],
          .head_stride = view.strides[head_dimension(layout)],
          .row_stride = view.strides[row_dimension(layout)]};
}

void require_own_elements(const TensorRole& role, const TensorView& view) {
  const bool nests = view.rank == 3   ? nest(view, {1, 0}) || nest(view, {0, 1})
                     : view.rank == 4 ? nest(view, {2, 1, 0}) || nest(view, {1, 2, 0})
                                      : nest(view, {3, 2, 1, 0});
  if (nests) return;
  const std::optional<SharedElements> shared = find_shared_elements(view);
  if (!shared) return;
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  std::string strides;
  for (int d = 0; d < view.rank; ++d) {
    if (shared->first[d] == shared->second[d]) continue;
    strides += fmt::format("{}stride {} ({} bytes) in dimension {}", strides.empty() ? "" : ", ",
                           view.strides[d], view.strides[d] * element, d);
  }
  role.refuse(view, fmt::format("overlaps itself: elements {} and {} share bytes, with {}; a row "
                                "takes {} bytes",
                                element_text(shared->first, view.rank),
                                element_text(shared->second, view.rank), strides,
                                view.shape[view.rank - 1] * element));
}

std::int64_t rows_of_pool(const TensorView& k, const TensorSizes& sizes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (sizes.batch <= kMost / sizes.rows) return sizes.batch * sizes.rows;
  throw Error(ErrorCode::tensor,
              fmt::format("k has {} pages of {} rows, and kernels count {} rows", sizes.batch,
                          sizes.rows, kMost),
              fmt::format("given: {}", k.describe()));
}

bool is_aligned(const ResolvedTensor& tensor, DType dtype) {
  constexpr std::int64_t kCopyBytes = 16;
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  const auto base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
  return ((base | tensor.batch_stride * bytes | tensor.head_stride * bytes |
           tensor.row_stride * bytes) %
          kCopyBytes) == 0;
}

}  // namespace tilewright
