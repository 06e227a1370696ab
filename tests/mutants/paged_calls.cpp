#include "tests/mutants/paged_calls.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/mutants/packed_calls.hpp"
#include "tests/support/fenced_memory.hpp"
#include "verify/outputs.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright::mutants {
namespace {

// Snippets of paged_specs keep rows of the last sequence alone.
constexpr std::int64_t kLastSequence = 5, kPageSize = 130;

std::int32_t& entry_of_last_sequence(verify::PackedInputs& packed, std::int64_t entry) {
  Tensor& table = *packed.page_table;
  return static_cast<std::int32_t*>(table.data())[kLastSequence * table.shape().back() + entry];
}

// The last sequence fills the pool's last page; FencedPool puts a fence after it.
verify::PackedInputs paged_inputs(const Spec& spec) {
  const verify::PackedLengths lengths = {
      .num_q_heads = 4,
      .num_kv_heads = 2,
      .sequences = {{1, 83}, {5, 18}, {33, 150}, {0, 9}, {64, 0}, {40, 190}},
      .kv_offset = 0,
      .pages = {.page_size = kPageSize},
      .has_new_rows = spec.kv_new};
  const std::int64_t whole_pages = lengths.lens_in_pages().back() / kPageSize;
  for (std::uint64_t seed = 1;; ++seed) {
    verify::PackedInputs packed = random_packed_inputs(spec, lengths, seed);
    const std::int64_t last_page = lengths.total_kv() / kPageSize - 1;
    for (std::int64_t i = 0; i < whole_pages; ++i) {
      if (entry_of_last_sequence(packed, i) == last_page) return packed;
    }
  }
}

class FencedPool {
 public:
  explicit FencedPool(const TensorView& pool)
      : memory_(static_cast<std::size_t>(pool.bytes())), view_(pool) {
    std::memcpy(memory_.data(), pool.data, static_cast<std::size_t>(pool.bytes()));
    view_.data = memory_.data();
  }
  const TensorView& view() const { return view_; }

 private:
  test::FencedMemory memory_;
  TensorView view_;
};

std::string wrong_between_fences(const verify::Problem& problem, const Attention& attention,
                                 const Toolchain& kernels) {
  const FencedPool k(problem.k), v(problem.v);
  verify::Problem fenced = problem;
  fenced.k = k.view();
  fenced.v = v.view();
  return wrong_by_reference(fenced, attention, kernels);
}

void clear_page(Tensor& pool, std::int64_t page) {
  const auto bytes = static_cast<std::size_t>(pool.view().bytes() / pool.shape()[0]);
  std::memset(static_cast<char*>(pool.data()) + static_cast<std::size_t>(page) * bytes, 0, bytes);
}

// Without snippets, as a freed page's columns have other numbers (kv_token).
std::string wrong_with_freed_page(Spec spec, const Device& device, const Toolchain& kernels) {
  spec.mask_mod.clear();
  spec.score_mod.clear();
  spec.buffers.clear();
  const Attention attention(spec, {.device = device, .kernels = kernels});
  verify::PackedInputs packed = paged_inputs(spec);
  std::int32_t& entry = entry_of_last_sequence(packed, 0);
  const std::int32_t page = entry;
  entry = -1;
  const verify::AttentionValues freed = verify::run_call(attention, packed.problem());
  entry = page;
  clear_page(packed.inputs.k, page);
  clear_page(packed.inputs.v, page);
  const verify::AttentionValues zeros = verify::run_call(attention, packed.problem());
  for (std::size_t i = 0; i < zeros.out.data.size(); ++i) {
    // Rows past the last sequence are NaN in both.
    if (freed.out.data[i] == zeros.out.data[i] || std::isnan(zeros.out.data[i])) continue;
    return fmt::format("element {} of out is {} with a freed page, and {} with a page of zeros", i,
                       freed.out.data[i], zeros.out.data[i]);
  }
  return "";
}

}  // namespace

std::vector<Spec> paged_specs() {
  Spec pages = spec_that_names_tokens();
  pages.name = "paged";
  // Tiles before row 40 are proved to be empty, others follow from an evaluation.
  pages.mask_mod = "q_token >= 40 && (kv_token * 13 + q_idx) % 5 != h";
  pages.kv_layout = Layout::paged;
  pages.score_mod = "score + 0.1 * by_token[q_token] * (kv_idx % 7) + 0.01 * kv_token";
  pages.buffers = {{"by_token", {.dtype = DType::f32, .shape = {NamedDim::total_q}}}};
  Spec new_rows = pages;
  new_rows.name = "paged with new rows";
  new_rows.kv_new = true;
  new_rows.kv_dtype = DType::f8e4m3;
  new_rows.k_scale = "0.5f + 0.25f * float(kv_idx % 3)";
  new_rows.v_scale = "1.5f - 0.25f * float(kv_idx % 5)";
  Spec blocks = pages;
  blocks.name = "paged in blocks";
  blocks.kv_layout = Layout::paged_x;
  return {pages, new_rows, blocks};
}

std::string wrong_paged_call(const Attention& attention, const Toolchain& kernels) {
  try {
    const verify::PackedInputs packed = paged_inputs(attention.spec());
    const std::string wrong = wrong_between_fences(packed.problem(), attention, kernels);
    return wrong.empty() ? wrong_with_freed_page(attention.spec(), attention.device(), kernels)
                         : wrong;
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace tilewright::mutants
