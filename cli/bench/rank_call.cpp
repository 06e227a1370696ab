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

std::unique_ptr<GpuMemory> empty_rows(int ordinal, std::int64_t heads, std::int64_t rows,
                                      std::int64_t width) {
  return std::make_unique<GpuMemory>(ordinal, heads * rows * width * kElement);
}

// Copies [heads, rows of all parts, width] to [heads, rows of the whole, width].
template <typename Element>
void put_parts(const GpuMemory& memory, const std::vector<Rows>& parts, std::int64_t heads,
               std::int64_t width, std::vector<Element>& whole) {
  std::int64_t rows = 0;
  for (const Rows& part : parts) rows += part.count;
  std::vector<Element> own(static_cast<std::size_t>(heads * rows * width));
  memory.read(own.data(), std::ssize(own) * std::int64_t{sizeof(Element)});
  const std::int64_t whole_rows = std::ssize(whole) / (heads * width);
  for (std::int64_t head = 0; head < heads; ++head) {
    std::int64_t row = head * rows;
    for (const Rows& part : parts) {
      std::copy_n(own.begin() + row * width, part.count * width,
                  whole.begin() + (head * whole_rows + part.begin) * width);
      row += part.count;
    }
  }
}

std::vector<Rows> parts_of_q(const std::vector<Shard>& shards) {
  std::vector<Rows> parts;
  for (const Shard& shard : shards) parts.push_back({shard.q_begin, shard.q_len});
  return parts;
}

std::vector<Rows> parts_of_kv(const std::vector<Shard>& shards) {
  std::vector<Rows> parts;
  for (const Shard& shard : shards) parts.push_back({shard.kv_begin, shard.kv_len});
  return parts;
}

// The root mean square of the difference, divided by the tensor's.
double relative_rms(const std::vector<std::uint16_t>& tensor,
                    const std::vector<std::uint16_t>& other) {
  double apart = 0;
  double size = 0;
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const double value = number(tensor[i]);
    const double difference = value - number(other[i]);
    apart += difference * difference;
    size += value * value;
  }
  return std::sqrt(apart / size);
}

// Not std::max, which would pass over NaN.
double worse(double a, double b) {
  return b <= a ? a : b;
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

WholeResults::WholeResults(const Workload& workload) {
  const Shape& shape = workload.shape;
  const Spec& spec = workload.spec;
  const auto size = [](std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return static_cast<std::size_t>(heads * rows * width);
  };
  out.resize(size(shape.num_q_heads, shape.q_len, spec.value_head_dim()));
  lse.resize(size(shape.num_q_heads, shape.q_len, 1));
  if (spec.gradients.empty()) return;
  dq.resize(size(shape.num_q_heads, shape.q_len, spec.head_dim));
  dk.resize(size(shape.num_kv_heads, shape.kv_len, spec.head_dim));
  dv.resize(size(shape.num_kv_heads, shape.kv_len, spec.value_head_dim()));
}

SequenceRows::SequenceRows(const Workload& workload, const std::vector<Shard>& shards,
                           const Device& device)
    : spec_(workload.spec), shape_(workload.shape), shards_(shards) {
  const std::vector<Rows> rows = parts_of_q(shards), columns = parts_of_kv(shards);
  for (const Shard& shard : shards) {
    q_rows_ += shard.q_len;
    kv_rows_ += shard.kv_len;
  }
  const int gpu = device.index();
  const std::int64_t value_dim = spec_.value_head_dim();
  q_ = random_rows(gpu, shape_.num_q_heads, rows, spec_.head_dim, 1);
  k_ = random_rows(gpu, shape_.num_kv_heads, columns, spec_.head_dim, 2);
  v_ = random_rows(gpu, shape_.num_kv_heads, columns, value_dim, 3);
  out_ = empty_rows(gpu, shape_.num_q_heads, q_rows_, value_dim);
  lse_ =
      std::make_unique<GpuMemory>(gpu, shape_.num_q_heads * q_rows_ * std::int64_t{sizeof(float)});
  if (spec_.gradients.empty()) return;
  dout_ = random_rows(gpu, shape_.num_q_heads, rows, value_dim, 4);
  dq_ = empty_rows(gpu, shape_.num_q_heads, q_rows_, spec_.head_dim);
  dk_ = empty_rows(gpu, shape_.num_kv_heads, kv_rows_, spec_.head_dim);
  dv_ = empty_rows(gpu, shape_.num_kv_heads, kv_rows_, value_dim);
}

TensorView SequenceRows::of_q(const GpuMemory& memory, std::int64_t width) const {
  return TensorView::contiguous(memory.data(), DType::bf16,
                                {shape_.batch, shape_.num_q_heads, q_rows_, width});
}

TensorView SequenceRows::of_kv(const GpuMemory& memory, std::int64_t width) const {
  return TensorView::contiguous(memory.data(), DType::bf16,
                                {shape_.batch, shape_.num_kv_heads, kv_rows_, width});
}

ForwardTensors SequenceRows::tensors() const {
  ForwardTensors tensors = {.q = of_q(*q_, spec_.head_dim),
                            .k = of_kv(*k_, spec_.head_dim),
                            .v = of_kv(*v_, spec_.value_head_dim()),
                            .out = of_q(*out_, spec_.value_head_dim())};
  tensors.lse =
      TensorView::contiguous(lse_->data(), DType::f32, {shape_.batch, shape_.num_q_heads, q_rows_});
  return tensors;
}

BackwardTensors SequenceRows::backward_tensors() const {
  const ForwardTensors forward = tensors();
  return {.q = forward.q,
          .k = forward.k,
          .v = forward.v,
          .out = forward.out,
          .lse = *forward.lse,
          .dout = of_q(*dout_, spec_.value_head_dim()),
          .dq = of_q(*dq_, spec_.head_dim),
          .dk = of_kv(*dk_, spec_.head_dim),
          .dv = of_kv(*dv_, spec_.value_head_dim())};
}

void SequenceRows::read_results(Pass pass, WholeResults& whole) const {
  const std::vector<Rows> rows = parts_of_q(shards_), columns = parts_of_kv(shards_);
  const std::int64_t q_heads = shape_.num_q_heads, kv_heads = shape_.num_kv_heads;
  if (pass == Pass::forward) {
    put_parts(*out_, rows, q_heads, spec_.value_head_dim(), whole.out);
    put_parts(*lse_, rows, q_heads, 1, whole.lse);
    return;
  }
  put_parts(*dq_, rows, q_heads, spec_.head_dim, whole.dq);
  put_parts(*dk_, columns, kv_heads, spec_.head_dim, whole.dk);
  put_parts(*dv_, columns, kv_heads, spec_.value_head_dim(), whole.dv);
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

ResultDistance distance(Pass pass, const WholeResults& whole, const WholeResults& other) {
  if (pass == Pass::backward) {
    return {.relative_rms =
                worse(worse(relative_rms(whole.dq, other.dq), relative_rms(whole.dk, other.dk)),
                      relative_rms(whole.dv, other.dv))};
  }
  ResultDistance result = {.relative_rms = relative_rms(whole.out, other.out)};
  for (std::size_t i = 0; i < whole.lse.size(); ++i) {
    result.lse_max = worse(result.lse_max, std::fabs(double{whole.lse[i]} - double{other.lse[i]}));
  }
  return result;
}

}  // namespace tilewright::cli
