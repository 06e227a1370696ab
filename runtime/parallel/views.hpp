#pragma once

#include <cstdint>
#include <vector>

#include "../../generator/spec/spec.hpp"
#include "../api/communicator.hpp"
#include "../api/tensor.hpp"

namespace tilewright::parallel {

// A packed tensor, [rows, heads, width], is taken as one of bshd with one batch; its layout stays.

/// With a batch of one, where the layout is packed; lse and the like too.
TensorView batched(const TensorView& view, Layout layout);

/// As calls take it: without the batch, where the layout is packed.
TensorView unbatched(const TensorView& view, Layout layout);

/// Some rows of a tensor of rank 4.
TensorView rows_of(const TensorView& view, Layout layout, std::int64_t first, std::int64_t count);

/// One head of one batch.
TensorView head_of(const TensorView& view, Layout layout, std::int64_t batch, std::int64_t head);

/// A dense tensor in memory of the workspace.
TensorView dense_view(void* data, DType dtype, Layout layout, std::int64_t batch,
                      std::int64_t heads, std::int64_t rows, std::int64_t width);

/// Whether the rows of each head (bhsd) or each batch (bshd) lie one after another.
bool has_runs(const TensorView& view, Layout layout);

/// Appends a message for each such run: as many, of as many bytes, on both sides.
void append_messages(std::vector<Message>& messages, const TensorView& view, Layout layout,
                     int peer);

/// How many that are.
std::int64_t count_messages(Layout layout, std::int64_t batch, std::int64_t heads);

}  // namespace tilewright::parallel
