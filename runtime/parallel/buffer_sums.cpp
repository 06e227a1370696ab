#include "runtime/parallel/buffer_sums.hpp"

#include <cstddef>
#include <vector>

namespace tilewright::parallel {
namespace {

struct Dim {
  std::int64_t extent;
  std::int64_t from_stride;
  std::int64_t to_stride;
};

// The dimensions of a dense tensor and one of its shape, with those joined that lie one after
// another in both.
std::vector<Dim> joined_dims(const TensorView& from, const TensorView& to) {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < to.extents().size(); ++i) {
    if (to.shape[i] == 1) continue;
    const Dim next = {to.shape[i], from.strides[i], to.strides[i]};
    const bool joins = !dims.empty() && dims.back().to_stride == next.to_stride * next.extent;
    if (!joins) {
      dims.push_back(next);
    } else {
      dims.back() = {dims.back().extent * next.extent, next.from_stride, next.to_stride};
    }
  }
  return dims;
}

// As RowSums takes it: rank 4 with a contiguous last dimension.
TensorView rows_view(void* data, DType dtype, std::span<const Dim> dims, std::int64_t width,
                     std::int64_t Dim::*stride) {
  TensorView view = TensorView::contiguous(data, dtype, {1, 1, 1, width});
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = 3 - dims.size() + i;
    view.shape[d] = dims[i].extent;
    view.strides[d] = dims[i].*stride;
  }
  return view;
}

class Storing {
 public:
  Storing(RowSums& sums, DType to_dtype, Stream stream)
      : sums_(sums), to_dtype_(to_dtype), stream_(stream) {}

  void run(std::byte* from, std::byte* to, std::span<const Dim> dims) const {
    if (dims.size() > 3 && dims.back().to_stride != 1) return run_each(from, to, dims);
    if (dims.size() > 4) return run_each(from, to, dims);
    std::int64_t width = 1;
    if (dims.size() > 1 && dims.back().to_stride == 1) {
      width = dims.back().extent;
      dims = dims.first(dims.size() - 1);
    }
    sums_.add(rows_view(from, DType::f32, dims, width, &Dim::from_stride),
              rows_view(to, to_dtype_, dims, width, &Dim::to_stride), false, stream_);
  }

 private:
  void run_each(std::byte* from, std::byte* to, std::span<const Dim> dims) const {
    const Dim& first = dims.front();
    const auto element = static_cast<std::int64_t>(size_of(to_dtype_));
    for (std::int64_t i = 0; i < first.extent; ++i) {
      run(from + i * first.from_stride * kShareElement, to + i * first.to_stride * element,
          dims.subspan(1));
    }
  }

  RowSums& sums_;
  DType to_dtype_;
  Stream stream_;
};

}  // namespace

BufferSums::BufferSums(ContextPlanState& plan, Communicator& communicator,
                       const ContextCallOptions& options)
    : plan_(plan),
      gradients_(plan.gradients->buffers),
      communicator_(communicator),
      options_(options) {
  for (const NamedGradient& named : gradients_.named) {
    part_[named.name] =
        TensorView::contiguous(at(gradients_.part_offset) + named.first, DType::f32, named.extents);
  }
}

float* BufferSums::at(std::int64_t offset) const {
  return reinterpret_cast<float*>(static_cast<std::byte*>(options_.workspace.data) + offset);
}

// from: null for zeros
void BufferSums::add(const float* from, float* to, std::int64_t count, bool adds) const {
  const std::int64_t rows = count / kSummedWidth;
  const auto view = [&](const float* data) {
    return TensorView::contiguous(data, DType::f32, {1, 1, rows, kSummedWidth});
  };
  plan_.sums->add(from ? view(from) : TensorView{}, view(to), adds, options_.stream);
}

// The part too: its gaps are added with it.
void BufferSums::clear() const {
  if (gradients_.empty()) return;
  add(nullptr, at(gradients_.part_offset), gradients_.elements, false);
  add(nullptr, at(gradients_.share_offset), gradients_.elements, false);
}

void BufferSums::add_part() const {
  if (gradients_.empty()) return;
  add(at(gradients_.part_offset), at(gradients_.share_offset), gradients_.elements, true);
}

void BufferSums::sum_over_ranks() {
  if (gradients_.empty() || communicator_.size() == 1) return;
  send_shares();
  add_slices();
  send_sums();
}

void BufferSums::send_shares() {
  plan_.sends.clear();
  plan_.receives.clear();
  const std::int64_t own = gradients_.slice_of(plan_.rank).count;
  for (int peer = 0; peer < communicator_.size(); ++peer) {
    if (peer == plan_.rank) continue;
    const Slice slice = gradients_.slice_of(peer);
    if (slice.count > 0) {
      plan_.sends.push_back({.peer = peer,
                             .data = at(gradients_.share_offset) + slice.first,
                             .bytes = slice.count * kShareElement});
    }
    if (own > 0) {
      plan_.receives.push_back(
          {.peer = peer,
           .data = at(gradients_.received_offset) + peer * gradients_.longest_slice,
           .bytes = own * kShareElement});
    }
  }
  exchange();
}

// Into the place of rank 0's.
void BufferSums::add_slices() const {
  const Slice own = gradients_.slice_of(plan_.rank);
  if (own.count == 0) return;
  float* const sum = at(gradients_.received_offset);
  float* const share = at(gradients_.share_offset) + own.first;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const float* const from = rank == plan_.rank ? share : sum + rank * gradients_.longest_slice;
    if (from != sum) add(from, sum, own.count, rank > 0);
  }
  add(sum, share, own.count, false);
}

void BufferSums::send_sums() {
  plan_.sends.clear();
  plan_.receives.clear();
  const auto message = [&](int peer, const Slice& slice) {
    return Message{.peer = peer,
                   .data = at(gradients_.share_offset) + slice.first,
                   .bytes = slice.count * kShareElement};
  };
  const Slice own = gradients_.slice_of(plan_.rank);
  for (int peer = 0; peer < communicator_.size(); ++peer) {
    if (peer == plan_.rank) continue;
    const Slice slice = gradients_.slice_of(peer);
    if (own.count > 0) plan_.sends.push_back(message(peer, own));
    if (slice.count > 0) plan_.receives.push_back(message(peer, slice));
  }
  exchange();
}

void BufferSums::exchange() {
  plan_.lane->follow(options_.stream);
  communicator_.exchange(plan_.sends, plan_.receives, plan_.lane->stream());
  plan_.lane->mark(0);
  plan_.lane->join(options_.stream, 0);
}

void BufferSums::store(const GradientBuffers& to) const {
  for (const NamedGradient& named : gradients_.named) {
    const TensorView from = TensorView::contiguous(at(gradients_.share_offset) + named.first,
                                                   DType::f32, named.extents);
    const TensorView& given = to.at(named.name);
    const std::vector<Dim> dims =
        named.extents.empty() ? std::vector<Dim>{} : joined_dims(from, given);
    Storing(*plan_.sums, given.dtype, options_.stream)
        .run(static_cast<std::byte*>(from.data), static_cast<std::byte*>(given.data), dims);
  }
}

}  // namespace tilewright::parallel
