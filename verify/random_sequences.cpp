#include "verify/random_sequences.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/float_environment.hpp"
#include "runtime/api/sequences.hpp"
#include "runtime/io/float16.hpp"
#include "verify/x_pools.hpp"

namespace tilewright::verify {
namespace {

Tensor numbers(const std::vector<std::int64_t>& values) {
  Tensor tensor = Tensor::zeros(DType::i32, {static_cast<std::int64_t>(values.size())});
  auto* const data = static_cast<std::int32_t*>(tensor.data());
  for (std::size_t i = 0; i < values.size(); ++i) data[i] = static_cast<std::int32_t>(values[i]);
  return tensor;
}

// Of a packed tensor, or of a pool over its pages.
void poison_rows(Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::span<const std::int64_t> shape = tensor.shape();
  const std::int64_t width = shape[shape.size() - 2] * shape[shape.size() - 1];
  for (std::int64_t i = first * width; i < (first + count) * width; ++i) {
    write_element(tensor.data(), tensor.dtype(), i, std::numeric_limits<double>::quiet_NaN());
  }
}

// Rows of the pools that no sequence has are NaN. Pools of paged_x hold the same numbers.
void take_pages(PackedInputs& packed, RandomPages pages, bool is_x) {
  for (Tensor* const pool : {&packed.inputs.k, &packed.inputs.v}) {
    for (std::size_t row = 0; row < pages.is_used.size(); ++row) {
      if (!pages.is_used[row]) poison_rows(*pool, static_cast<std::int64_t>(row), 1);
    }
  }
  if (is_x) {
    packed.inputs.k = x_pool(packed.inputs.k, true);
    packed.inputs.v = x_pool(packed.inputs.v, false);
  }
  packed.page_table = std::move(pages.page_table);
  packed.page_begin = std::move(pages.page_begin);
}

}  // namespace

std::int64_t PackedLengths::total_q() const {
  std::int64_t rows = kGap;
  for (const Sequence& sequence : sequences) rows += sequence.q_len;
  return rows;
}

std::vector<std::int64_t> PackedLengths::kv_lens() const {
  std::vector<std::int64_t> lens;
  for (const Sequence& sequence : sequences) lens.push_back(sequence.kv_len);
  return lens;
}

std::vector<std::int64_t> PackedLengths::lens_in_pages() const {
  std::vector<std::int64_t> lens = kv_lens();
  for (std::size_t b = 0; has_new_rows && b < lens.size(); ++b) {
    lens[b] = std::max<std::int64_t>(0, lens[b] - sequences[b].q_len);
  }
  return lens;
}

std::int64_t PackedLengths::total_kv() const {
  if (pages.page_size > 0) return pages_of_pool(lens_in_pages(), pages) * pages.page_size;
  std::int64_t rows = kGap;
  for (const Sequence& sequence : sequences) rows += sequence.kv_len + kGap;
  return rows;
}

Shape shape_of(const PackedLengths& lengths) {
  return {.batch = static_cast<std::int64_t>(lengths.sequences.size()),
          .num_q_heads = lengths.num_q_heads,
          .num_kv_heads = lengths.num_kv_heads,
          .q_len = lengths.total_q(),
          .kv_len = lengths.total_kv()};
}

Problem PackedInputs::problem() const {
  Problem problem = inputs.problem();
  problem.sequences = {.q_begin = q_begin};
  const bool has_ends = kv_begin && kv_begin->numel() > kv_len.numel();
  if (!has_ends) problem.sequences->kv_len = kv_len.view();
  if (kv_begin) problem.sequences->kv_begin = kv_begin->view();
  if (page_table) problem.sequences->page_table = page_table->view();
  if (page_begin) problem.sequences->page_begin = page_begin->view();
  if (kv_offset) problem.sequences->kv_offset = kv_offset->view();
  problem.page_size = page_size;
  return problem;
}

PackedInputs random_packed_inputs(const Spec& spec, const PackedLengths& lengths,
                                  std::uint64_t seed, const RandomOptions& given) {
  constexpr std::int64_t kGap = PackedLengths::kGap;
  const DefaultFloatEnvironment floats;
  RandomOptions options = given;
  if (lengths.pages.page_size > 0) options.page_size = lengths.pages.page_size;
  std::vector<std::int64_t> q_begin = {0}, kv_begin, kv_len;
  std::int64_t kv_row = kGap;
  for (const PackedLengths::Sequence& sequence : lengths.sequences) {
    q_begin.push_back(q_begin.back() + sequence.q_len);
    kv_begin.push_back(kv_row);
    kv_len.push_back(sequence.kv_len);
    kv_row += sequence.kv_len + kGap;
    options.longest_kv = std::max(options.longest_kv.value_or(0), sequence.kv_len);
  }
  PackedInputs packed{.inputs = random_inputs(spec, shape_of(lengths), seed, options),
                      .q_begin = numbers(q_begin),
                      .kv_begin = {},
                      .kv_len = numbers(kv_len),
                      .page_table = {},
                      .page_begin = {},
                      .page_size = lengths.pages.page_size,
                      .kv_offset = {}};
  poison_rows(packed.inputs.q, q_begin.back(), kGap);
  for (std::optional<Tensor>* fresh : {&packed.inputs.k_new, &packed.inputs.v_new}) {
    if (*fresh) poison_rows(**fresh, q_begin.back(), kGap);
  }
  if (packed.page_size > 0) {
    take_pages(packed, random_pages(lengths.lens_in_pages(), lengths.pages, seed),
               spec.is_paged_x());
  } else {
    packed.kv_begin = numbers(kv_begin);
    for (Tensor* const tensor : {&packed.inputs.k, &packed.inputs.v}) {
      poison_rows(*tensor, 0, kGap);
      for (std::size_t b = 0; b < kv_len.size(); ++b) {
        poison_rows(*tensor, kv_begin[b] + kv_len[b], kGap);
      }
    }
  }
  if (lengths.kv_offset != 0) {
    packed.kv_offset = numbers(std::vector<std::int64_t>(kv_len.size(), lengths.kv_offset));
  }
  return packed;
}

}  // namespace tilewright::verify
