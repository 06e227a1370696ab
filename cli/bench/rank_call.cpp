#include "cli/bench/rank_call.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "runtime/api/thread_pool.hpp"
#include "runtime/cuda/context.hpp"

namespace tilewright::cli {
namespace {

constexpr std::int64_t kElement = 2;  // bytes of a bf16

// One row of random numbers with magnitudes from 0.5 to 2.
void fill_row(std::uint16_t* row, std::int64_t width, std::uint64_t seed) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15 + 0x7f4a7c159e3779b9;
  for (std::int64_t d = 0; d < width; ++d) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const std::uint64_t bits = state * 0x2545f4914f6cdd1d >> 48;
    row[d] = static_cast<std::uint16_t>((bits & 0x80ff) | 0x3f00);
  }
}

// A part of a sequence.
struct Rows {
  std::int64_t begin;
  std::int64_t count;
};

// [heads, rows of all parts, width].
std::unique_ptr<GpuMemory> random_rows(int ordinal, std::int64_t heads,
                                       const std::vector<Rows>& parts, std::int64_t width,
                                       std::uint64_t tensor) {
  std::int64_t rows = 0;
  for (const Rows& part : parts) rows += part.count;
  std::vector<std::uint16_t> host(static_cast<std::size_t>(heads * rows * width));
  ThreadPool::shared().parallel_for(heads, [&](std::int64_t head, int) {
    std::uint16_t* row = host.data() + head * rows * width;
    for (const Rows& part : parts) {
      for (std::int64_t i = 0; i < part.count; ++i, row += width) {
        const std::int64_t place = part.begin + i;
        fill_row(row, width,
                 (tensor << 60) + (static_cast<std::uint64_t>(head) << 40) +
                     static_cast<std::uint64_t>(place) + 1);
      }
    }
  });
  auto memory = std::make_unique<GpuMemory>(ordinal, std::ssize(host) * kElement);
  memory->fill(host.data(), std::ssize(host) * kElement);
  return memory;
}

double number(std::uint16_t bits) {
  return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16)};
}

}  // namespace

GpuMemory::GpuMemory(int ordinal, std::int64_t bytes)
    : driver_(cuda::Driver::get()), ordinal_(ordinal) {
  const cuda::ContextScope scope(driver_, ordinal);
  driver_.check(driver_.functions().allocate(
                    &pointer_, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))),
                "allocating memory");
}

GpuMemory::~GpuMemory() {
  try {
    const cuda::ContextScope scope(driver_, ordinal_);
    driver_.functions().free(pointer_);
  } catch (const Error&) {
    return;  // the context is gone, and the memory with it
  }
}

void* GpuMemory::data() const {
  return reinterpret_cast<void*>(pointer_);  // NOLINT(performance-no-int-to-ptr)
}

void GpuMemory::fill(const void* from, std::int64_t bytes) const {
  const cuda::ContextScope scope(driver_, ordinal_);
  driver_.check(
      driver_.functions().copy_to_device(pointer_, from, static_cast<std::size_t>(bytes), nullptr),
      "copying to the GPU");
  driver_.check(driver_.functions().stream_synchronize(nullptr), "copying to the GPU");
}

void GpuMemory::read(void* to, std::int64_t bytes) const {
  const cuda::ContextScope scope(driver_, ordinal_);
  driver_.check(
      driver_.functions().copy_to_host(to, pointer_, static_cast<std::size_t>(bytes), nullptr),
      "copying from the GPU");
  driver_.check(driver_.functions().stream_synchronize(nullptr), "copying from the GPU");
}

SequenceRows::SequenceRows(const Workload& workload, const std::vector<Shard>& shards,
                           const Device& device)
    : spec_(workload.spec), shape_(workload.shape), shards_(shards) {
  std::vector<Rows> rows;
  std::vector<Rows> columns;
  for (const Shard& shard : shards) {
    rows.push_back({shard.q_begin, shard.q_len});
    columns.push_back({shard.kv_begin, shard.kv_len});
    q_rows_ += shard.q_len;
    kv_rows_ += shard.kv_len;
  }
  const int gpu = device.index();
  q_ = random_rows(gpu, shape_.num_q_heads, rows, spec_.head_dim, 1);
  k_ = random_rows(gpu, shape_.num_kv_heads, columns, spec_.head_dim, 2);
  v_ = random_rows(gpu, shape_.num_kv_heads, columns, spec_.value_head_dim(), 3);
  out_ = std::make_unique<GpuMemory>(
      gpu, shape_.num_q_heads * q_rows_ * spec_.value_head_dim() * kElement);
  lse_ =
      std::make_unique<GpuMemory>(gpu, shape_.num_q_heads * q_rows_ * std::int64_t{sizeof(float)});
}

TensorView SequenceRows::view(const GpuMemory& memory, std::int64_t heads, std::int64_t rows,
                              std::int64_t width) const {
  return TensorView::contiguous(memory.data(), DType::bf16, {shape_.batch, heads, rows, width});
}

ForwardTensors SequenceRows::tensors() const {
  ForwardTensors tensors = {
      .q = view(*q_, shape_.num_q_heads, q_rows_, spec_.head_dim),
      .k = view(*k_, shape_.num_kv_heads, kv_rows_, spec_.head_dim),
      .v = view(*v_, shape_.num_kv_heads, kv_rows_, spec_.value_head_dim()),
      .out = view(*out_, shape_.num_q_heads, q_rows_, spec_.value_head_dim())};
  tensors.lse =
      TensorView::contiguous(lse_->data(), DType::f32, {shape_.batch, shape_.num_q_heads, q_rows_});
  return tensors;
}

void SequenceRows::read_results(std::vector<std::uint16_t>& out, std::vector<float>& lse) const {
  const std::int64_t width = spec_.value_head_dim();
  std::vector<std::uint16_t> own_out(
      static_cast<std::size_t>(shape_.num_q_heads * q_rows_ * width));
  std::vector<float> own_lse(static_cast<std::size_t>(shape_.num_q_heads * q_rows_));
  out_->read(own_out.data(), std::ssize(own_out) * kElement);
  lse_->read(own_lse.data(), std::ssize(own_lse) * std::int64_t{sizeof(float)});
  for (std::int64_t head = 0; head < shape_.num_q_heads; ++head) {
    std::int64_t row = head * q_rows_;
    for (const Shard& shard : shards_) {
      const std::int64_t place = head * shape_.q_len + shard.q_begin;
      std::copy_n(own_out.begin() + row * width, shard.q_len * width, out.begin() + place * width);
      std::copy_n(own_lse.begin() + row, shard.q_len, lse.begin() + place);
      row += shard.q_len;
    }
  }
}

std::vector<Shard> whole_shard(const Shape& shape) {
  return {{.q_begin = 0, .q_len = shape.q_len, .kv_begin = 0, .kv_len = shape.kv_len}};
}

DocumentIds::DocumentIds(std::int64_t tokens, int ordinal)
    : length(tokens), memory(ordinal, tokens * std::int64_t{sizeof(std::int32_t)}) {
  // Lengths of 2 to 4 of 36 parts.
  constexpr std::array<std::int64_t, 12> kParts = {2, 4, 3, 3, 4, 2, 2, 4, 3, 3, 4, 2};
  std::vector<std::int32_t> ids;
  std::int64_t end = 0;
  for (std::size_t document = 0; document < kParts.size(); ++document) {
    end += kParts[document];
    ids.resize(static_cast<std::size_t>(length * end / 36), static_cast<std::int32_t>(document));
  }
  memory.fill(ids.data(), length * std::int64_t{sizeof(std::int32_t)});
}

SnippetInputs DocumentIds::inputs() const {
  return {.buffers = {{"doc", TensorView::contiguous(memory.data(), DType::i32, {length})}}};
}

ResultDistance distance(const std::vector<std::uint16_t>& out, const std::vector<float>& lse,
                        const std::vector<std::uint16_t>& other_out,
                        const std::vector<float>& other_lse) {
  double apart = 0;
  double size = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double value = number(out[i]);
    const double difference = value - number(other_out[i]);
    apart += difference * difference;
    size += value * value;
  }
  ResultDistance result = {.relative_rms = std::sqrt(apart / size)};
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const double difference = std::fabs(double{lse[i]} - double{other_lse[i]});
    // Not the greater one of two, which would pass over NaN.
    if (!(difference <= result.lse_max)) result.lse_max = difference;
  }
  return result;
}

}  // namespace tilewright::cli
