#include "runtime/call/x_pools.hpp"

#include <fmt/format.h>

namespace tilewright {
namespace {

bool is_of_k(const TensorRole& role) {
  return role.x > 1;
}

// What a page has of a head is contiguous, so that kernels need no strides of it.
void require_dense_pages(const TensorRole& role, const TensorView& view) {
  std::int64_t inside = 1;
  for (int i = view.rank - 1; i >= 2; --i) {
    if (view.shape[i] > 1 && view.strides[i] != inside) {
      role.refuse(view, fmt::format("has stride {} in dimension {}; what a page of kv_layout "
                                    "\"paged_x\" has of a head must be contiguous",
                                    view.strides[i], i));
    }
    inside *= view.shape[i];
  }
}

}  // namespace

TensorSizes sizes_of_x_pool(const TensorRole& role, const TensorView& view) {
  const int rank = is_of_k(role) ? 5 : 4;
  if (view.rank != rank) {
    role.refuse(view,
                fmt::format("has rank {}; kv_layout \"paged_x\" needs rank {}", view.rank, rank));
  }
  for (int i = 1; i < rank; ++i) {
    if (view.shape[i] < 1) role.refuse(view, fmt::format("is empty in dimension {}", i));
  }
  if (is_of_k(role) && view.shape[4] != role.x) {
    role.refuse(view,
                fmt::format("has {} elements in its last dimension, but 16 bytes of {} are {}",
                            view.shape[4], to_string(role.dtype), role.x));
  }
  require_dense_pages(role, view);
  if (const std::string fault = view.fault(); !fault.empty()) role.refuse(view, fault);
  const std::int64_t width = is_of_k(role) ? view.shape[2] * view.shape[4] : view.shape[2];
  return {view.shape[0], view.shape[1], view.shape[3], width};
}

ResolvedTensor resolved_x_pool(const TensorView& view) {
  return {.data = view.data,
          .batch_stride = view.shape[0] <= 1 ? 0 : view.strides[0],
          .head_stride = view.strides[1],
          .row_stride = view.rank == 5 ? view.shape[4] : 1};
}

}  // namespace tilewright
