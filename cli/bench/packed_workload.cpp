#include "cli/bench/packed_workload.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "verify/x_pools.hpp"

namespace tilewright::cli {
namespace {

using verify::PackedLengths;

Tensor i32_tensor(const std::vector<std::int64_t>& values) {
  Tensor tensor = Tensor::zeros(DType::i32, {static_cast<std::int64_t>(values.size())});
  std::transform(values.begin(), values.end(), static_cast<std::int32_t*>(tensor.data()),
                 [](std::int64_t value) { return static_cast<std::int32_t>(value); });
  return tensor;
}

Shape totals_of(const PackedLengths& lengths) {
  Shape shape{.batch = static_cast<std::int64_t>(lengths.sequences.size()),
              .num_q_heads = lengths.num_q_heads,
              .num_kv_heads = lengths.num_kv_heads,
              .q_len = 0,
              .kv_len = 0};
  for (const PackedLengths::Sequence& sequence : lengths.sequences) {
    shape.q_len += sequence.q_len;
    shape.kv_len += sequence.kv_len;
  }
  if (lengths.pages.page_size > 0) shape.kv_len = lengths.total_kv();
  return shape;
}

}  // namespace

Spec as_packed(Spec spec) {
  spec.layout = Layout::packed;
  spec.kv_layout = Layout::packed;
  return spec;
}

Spec as_paged(Spec spec) {
  spec.layout = Layout::packed;
  spec.kv_layout = Layout::paged;
  return spec;
}

Workload packed_workload(const Spec& spec, const PackedLengths& lengths) {
  const Shape shape = totals_of(lengths);
  tilewright::validate(PackedShape{.batch = shape.batch,
                                   .num_q_heads = shape.num_q_heads,
                                   .num_kv_heads = shape.num_kv_heads,
                                   .total_q = shape.q_len,
                                   .total_kv = shape.kv_len,
                                   .page_size = lengths.pages.page_size});
  if (shape.q_len == 0) {
    throw Error(ErrorCode::usage, "the sequences have no rows of q, so there is nothing to measure",
                "give one of them a Q of 1 or more");
  }
  return {spec, shape, lengths};
}

verify::PackedInputs adjacent_sequences(const Spec& spec, const PackedLengths& lengths,
                                        std::uint64_t seed) {
  std::vector<std::int64_t> q_begin = {0}, kv_begin, kv_len;
  std::int64_t kv_row = 0, longest = 0;
  for (const PackedLengths::Sequence& sequence : lengths.sequences) {
    q_begin.push_back(q_begin.back() + sequence.q_len);
    kv_begin.push_back(kv_row);
    kv_len.push_back(sequence.kv_len);
    kv_row += sequence.kv_len;
    longest = std::max(longest, sequence.kv_len);
  }
  const std::int64_t page_size = lengths.pages.page_size;
  verify::PackedInputs packed{
      .inputs = verify::random_inputs(
          spec, totals_of(lengths), seed,
          {.page_size = std::max<std::int64_t>(page_size, 1), .longest_kv = longest}),
      .q_begin = i32_tensor(q_begin),
      .kv_begin = {},
      .kv_len = i32_tensor(kv_len),
      .page_table = {},
      .page_begin = {},
      .page_size = page_size,
      .kv_offset = {}};
  if (spec.is_paged_x()) {
    packed.inputs.k = verify::x_pool(packed.inputs.k, true);
    packed.inputs.v = verify::x_pool(packed.inputs.v, false);
  }
  if (page_size > 0) {
    verify::RandomPages pages = verify::random_pages(lengths.lens_in_pages(), lengths.pages, seed);
    packed.page_table = std::move(pages.page_table);
    packed.page_begin = std::move(pages.page_begin);
  } else {
    kv_begin.push_back(kv_row);  // as training has them: no sequences share rows
    packed.kv_begin = i32_tensor(kv_begin);
  }
  if (lengths.kv_offset != 0) {
    packed.kv_offset = i32_tensor(std::vector<std::int64_t>(kv_len.size(), lengths.kv_offset));
  }
  return packed;
}

double pairs_of(const PackedLengths& lengths) {
  double pairs = 0;
  for (const PackedLengths::Sequence& sequence : lengths.sequences) {
    pairs += static_cast<double>(sequence.q_len) * static_cast<double>(sequence.kv_len);
  }
  return pairs;
}

}  // namespace tilewright::cli
