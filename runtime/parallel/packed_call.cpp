#include "runtime/parallel/packed_call.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "runtime/parallel/schedule.hpp"

namespace tilewright::parallel {
namespace {

// What a box has of the ranges of a shard, and where they begin within it.
class Cut {
 public:
  Cut(std::int64_t first, std::int64_t count) : first_(first), end_(first + count) {}

  struct Piece {
    std::int64_t skipped;  // of the range, before the box
    std::int64_t count;
  };
  Piece next(std::int64_t length) {
    const std::int64_t from = std::max(first_, at_);
    const std::int64_t to = std::min(end_, at_ + length);
    const Piece piece = from < to ? Piece{from - at_, to - from} : Piece{0, 0};
    at_ += length;
    return piece;
  }

 private:
  std::int64_t first_;
  std::int64_t end_;
  std::int64_t at_ = 0;
};

// The numbers of a call's sequences, as kernels read them.
struct SequenceNumbers {
  std::vector<std::int32_t> q_begin = {0};
  std::vector<std::int32_t> kv_begin = {0};
  std::vector<std::int32_t> q_offset;
  std::vector<std::int32_t> kv_offset;
  std::int64_t longest_q = 0;
  std::int64_t longest_kv = 0;

  SequenceNumbers(const SharedSequences& whole, const PackedBox& box) {
    Cut rows(box.first_row, box.row_count);
    Cut columns(box.first_column, box.column_count);
    for (std::size_t b = 0; b + 1 < whole.q_begin.size(); ++b) {
      const SequenceRange& q = (*box.rows)[b];
      const SequenceRange& kv = (*box.columns)[b];
      const Cut::Piece of_q = rows.next(q.q_len);
      const Cut::Piece of_kv = columns.next(kv.kv_len);
      append(q_begin, q_begin.back() + of_q.count);
      append(kv_begin, kv_begin.back() + of_kv.count);
      append(q_offset, whole.q_offset[b] + q.q_first + of_q.skipped);
      append(kv_offset, whole.kv_offset[b] + kv.kv_first + of_kv.skipped);
      longest_q = std::max(longest_q, of_q.count);
      longest_kv = std::max(longest_kv, of_kv.count);
    }
  }

 private:
  static void append(std::vector<std::int32_t>& numbers, std::int64_t number) {
    numbers.push_back(static_cast<std::int32_t>(number));
  }
};

constexpr std::int64_t aligned_bytes(const std::vector<std::int32_t>& numbers) {
  return round_up(std::ssize(numbers) * std::int64_t{sizeof(std::int32_t)}, kAlignment);
}

}  // namespace

PackedCall::PackedCall(const Attention& attention, const SharedSequences& whole,
                       const PackedBox& box, const Bindings& bindings, bool backward,
                       Stream stream) {
  const SequenceNumbers numbers(whole, box);
  shape_ = {.batch = std::ssize(whole.q_begin) - 1,
            .num_q_heads = whole.num_q_heads,
            .num_kv_heads = whole.num_kv_heads,
            .total_q = box.row_count,
            .total_kv = box.column_count,
            .max_q_len = numbers.longest_q,
            .max_kv_len = numbers.longest_kv};
  const std::int64_t plan_bytes = round_up(attention.workspace_size(shape_), kAlignment);
  std::int64_t bytes = plan_bytes;
  for (const auto* list :
       {&numbers.q_begin, &numbers.kv_begin, &numbers.q_offset, &numbers.kv_offset}) {
    bytes += aligned_bytes(*list);
  }
  const TensorView memory = memory_of(attention.device(), bytes);
  std::int64_t at = plan_bytes;
  const auto stored = [&](const std::vector<std::int32_t>& list) {
    const auto size = list.size() * sizeof(std::int32_t);
    void* const to = static_cast<std::byte*>(memory.data) + at;
    if (on_gpu_) {
      on_gpu_->copy_from(list.data(), size,
                         static_cast<std::size_t>(static_cast<std::byte*>(to) -
                                                  static_cast<std::byte*>(on_gpu_->data())));
    } else if (!list.empty()) {
      std::memcpy(to, list.data(), size);
    }
    at += aligned_bytes(list);
    return TensorView::contiguous(to, DType::i32, {std::ssize(list)});
  };
  const Sequences sequences = {.q_begin = stored(numbers.q_begin),
                               .kv_begin = stored(numbers.kv_begin),
                               .q_offset = stored(numbers.q_offset),
                               .kv_offset = stored(numbers.kv_offset)};
  const PlanOptions options = {
      .workspace = TensorView::contiguous(memory.data, DType::u8, {plan_bytes}),
      .stream = stream,
      .backward = backward};
  plan_ = attention.plan(shape_, sequences, bindings, options);
  const PlanReport report = plan_->report();
  if (report.count == report.unsorted) return;
  throw Error(ErrorCode::tensor, "the sequences do not fit: " + report.text(),
              "positions of rows and columns must be ints");
}

PackedCall::PackedCall(PackedCall&&) noexcept = default;
PackedCall& PackedCall::operator=(PackedCall&&) noexcept = default;
PackedCall::~PackedCall() = default;

TensorView PackedCall::memory_of(const Device& device, std::int64_t bytes) {
  const std::int64_t with_room = bytes + kAlignment;
  std::byte* begin = nullptr;
  if (device.kind() == Device::Kind::cuda) {
    on_gpu_ = std::make_unique<cuda::DeviceMemory>(device, static_cast<std::size_t>(with_room));
    begin = static_cast<std::byte*>(on_gpu_->data());
  } else {
    on_host_ = Tensor::zeros(DType::u8, {with_room});
    begin = static_cast<std::byte*>(on_host_.data());
  }
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  begin += static_cast<std::int64_t>(
               round_up(static_cast<std::int64_t>(address % kAlignment), kAlignment)) -
           static_cast<std::int64_t>(address % kAlignment);
  return TensorView::contiguous(begin, DType::u8, {bytes});
}

}  // namespace tilewright::parallel
