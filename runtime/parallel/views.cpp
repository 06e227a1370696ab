#include "runtime/parallel/views.hpp"

#include <cstddef>

namespace tilewright::parallel {
namespace {

int row_dim(Layout layout) {
  return layout == Layout::bhsd ? 2 : 1;
}

int head_dim(Layout layout) {
  return layout == Layout::bhsd ? 1 : 2;
}

TensorView narrowed(TensorView view, int dim, std::int64_t first, std::int64_t count) {
  const auto d = static_cast<std::size_t>(dim);
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  view.data = static_cast<std::byte*>(view.data) + first * view.strides[d] * element;
  view.shape[d] = count;
  return view;
}

// Of one batch, and of one head where heads are apart.
TensorView first_run(const TensorView& view, Layout layout) {
  const TensorView batch = narrowed(view, 0, 0, 1);
  return layout == Layout::bhsd ? narrowed(batch, head_dim(layout), 0, 1) : batch;
}

}  // namespace

TensorView batched(const TensorView& view, Layout layout) {
  if (layout != Layout::packed) return view;
  TensorView result = view;
  result.rank = view.rank + 1;
  for (std::size_t i = 0; i < view.extents().size(); ++i) {
    result.shape[i + 1] = view.shape[i];
    result.strides[i + 1] = view.strides[i];
  }
  result.shape[0] = 1;
  result.strides[0] = 0;
  return result;
}

TensorView unbatched(const TensorView& view, Layout layout) {
  if (layout != Layout::packed) return view;
  TensorView result = view;
  result.rank = view.rank - 1;
  for (std::size_t i = 0; i < result.extents().size(); ++i) {
    result.shape[i] = view.shape[i + 1];
    result.strides[i] = view.strides[i + 1];
  }
  return result;
}

TensorView rows_of(const TensorView& view, Layout layout, std::int64_t first, std::int64_t count) {
  return narrowed(view, row_dim(layout), first, count);
}

TensorView head_of(const TensorView& view, Layout layout, std::int64_t batch, std::int64_t head) {
  return narrowed(narrowed(view, 0, batch, 1), head_dim(layout), head, 1);
}

TensorView dense_view(void* data, DType dtype, Layout layout, std::int64_t batch,
                      std::int64_t heads, std::int64_t rows, std::int64_t width) {
  if (layout == Layout::bhsd)
    return TensorView::contiguous(data, dtype, {batch, heads, rows, width});
  return TensorView::contiguous(data, dtype, {batch, rows, heads, width});
}

bool has_runs(const TensorView& view, Layout layout) {
  return first_run(view, layout).is_contiguous();
}

void append_messages(std::vector<Message>& messages, const TensorView& view, Layout layout,
                     int peer) {
  const std::int64_t bytes = first_run(view, layout).bytes();
  const std::int64_t heads = layout == Layout::bhsd ? view.shape[1] : 1;
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      void* const data =
          layout == Layout::bhsd ? head_of(view, layout, b, h).data : narrowed(view, 0, b, 1).data;
      messages.push_back({.peer = peer, .data = data, .bytes = bytes});
    }
  }
}

std::int64_t count_messages(Layout layout, std::int64_t batch, std::int64_t heads) {
  return layout == Layout::bhsd ? batch * heads : batch;
}

}  // namespace tilewright::parallel
