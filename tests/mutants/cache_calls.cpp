#include "tests/mutants/cache_calls.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "runtime/call/staged_plan.hpp"
#include "runtime/io/float16.hpp"
#include "tests/mutants/staged_tensors.hpp"
#include "tests/support/fenced_memory.hpp"
#include "verify/random.hpp"
#include "verify/random_sequences.hpp"
#include "verify/sequences.hpp"
#include "verify/x_pools.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::int64_t kHeads = 2, kPages = 3, kPageSize = 5, kWidth = 24;
constexpr std::array<float, kHeads> kScales = {0.003f, 0.125f};

using Floats = std::vector<float>;

Floats random_floats(std::int64_t count, const char* name) {
  verify::Random random(1, name);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

TensorView view(const Floats& values, std::initializer_list<std::int64_t> shape) {
  return TensorView::contiguous(values.data(), DType::f32, shape);
}

// Of a tensor that a call writes.
TensorView written_view(Floats& values, std::initializer_list<std::int64_t> shape) {
  return TensorView::contiguous(values.data(), DType::f32, shape);
}

// What a stored number is of x: the nearest one, after a division where k and v have scales.
double stored(const Spec& spec, float x, std::int64_t head, bool is_k) {
  const DType dtype = spec.key_value_dtype();
  double kept = 0;
  const bool has_scale = !spec.k_scale.empty();
  const float scale = !has_scale ? 1.0f : is_k ? kScales[static_cast<std::size_t>(head)] : 0.5f;
  write_element(&kept, dtype, 0, double{x / scale});
  return read_element(&kept, dtype, 0);
}

Bindings scales_of(const Attention& attention, StagedTensors& staged) {
  if (attention.spec().buffers.empty()) return {};
  const TensorView scales = TensorView::contiguous(kScales.data(), DType::f32, {kHeads});
  return attention.bind({.buffers = {{"scales", staged.read(scales)}}});
}

// [pages, page_size, heads, width], each element of which no row's number is.
Tensor untouched_pool(const Spec& spec) {
  Tensor pool = Tensor::zeros(spec.key_value_dtype(), {kPages, kPageSize, kHeads, kWidth});
  std::memset(pool.data(), 0x2b, static_cast<std::size_t>(pool.view().bytes()));
  return pool;
}

std::string difference(const char* what, const TensorView& found, const Tensor& wanted) {
  for (std::int64_t i = 0; i < wanted.numel(); ++i) {
    const double got = read_element(found.data, found.dtype, i);
    const double right = read_element(wanted.data(), wanted.dtype(), i);
    if (got != right) return fmt::format("{}: element {} is {}, not {}", what, i, got, right);
  }
  return "";
}

std::string wrong_append(const Attention& attention) {
  const Spec& spec = attention.spec();
  constexpr std::array<std::int32_t, 7> kSlots = {14, 0, -1, 6, 15, 9, 4};
  const auto rows = static_cast<std::int64_t>(kSlots.size());
  const Floats fresh_k = random_floats(rows * kHeads * kWidth, "k");
  const Floats fresh_v = random_floats(rows * kHeads * kWidth, "v");
  Tensor wanted_k = untouched_pool(spec), wanted_v = untouched_pool(spec);
  Tensor k = untouched_pool(spec), v = untouched_pool(spec);
  for (std::int64_t i = 0; i < rows * kHeads * kWidth; ++i) {
    const std::int64_t slot = kSlots[static_cast<std::size_t>(i / (kHeads * kWidth))];
    if (slot < 0 || slot >= kPages * kPageSize) continue;
    const std::int64_t at = slot * kHeads * kWidth + i % (kHeads * kWidth);
    const std::int64_t head = i / kWidth % kHeads;
    const auto x = static_cast<std::size_t>(i);
    write_element(wanted_k.data(), k.dtype(), at, stored(spec, fresh_k[x], head, true));
    write_element(wanted_v.data(), v.dtype(), at, stored(spec, fresh_v[x], head, false));
  }
  if (spec.is_paged_x()) {
    for (Tensor* const pool : {&k, &wanted_k}) *pool = verify::x_pool(*pool, true);
    for (Tensor* const pool : {&v, &wanted_v}) *pool = verify::x_pool(*pool, false);
  }
  const TensorView slots = TensorView::contiguous(kSlots.data(), DType::i32, {rows});
  StagedTensors staged(attention.device());
  attention.append({.k_new = staged.read(view(fresh_k, {rows, kHeads, kWidth})),
                    .v_new = staged.read(view(fresh_v, {rows, kHeads, kWidth})),
                    .slots = staged.read(slots)},
                   staged.written(k), staged.written(v), nullptr, scales_of(attention, staged));
  staged.copy_back();
  const std::string wrong = difference("k after append", k, wanted_k);
  return wrong.empty() ? difference("v after append", v, wanted_v) : wrong;
}

std::string wrong_quantise(const Attention& attention) {
  const Spec& spec = attention.spec();
  if (!attention.spec().kv_dtype || spec.is_paged_x()) return "";
  const std::int64_t count = kPages * kPageSize * kHeads * kWidth;
  const Floats from = random_floats(count, "from");
  for (const bool is_k : {true, false}) {
    const test::FencedMemory memory(static_cast<std::size_t>(count));
    const TensorView to =
        TensorView::contiguous(memory.data(), *spec.kv_dtype, {kPages, kPageSize, kHeads, kWidth});
    Tensor wanted = untouched_pool(spec);
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = from[static_cast<std::size_t>(i)];
      write_element(wanted.data(), wanted.dtype(), i, stored(spec, x, i / kWidth % kHeads, is_k));
    }
    StagedTensors staged(attention.device());
    attention.quantise(staged.read(view(from, {kPages, kPageSize, kHeads, kWidth})),
                       staged.written(to), nullptr, is_k ? Operand::k : Operand::v,
                       scales_of(attention, staged));
    staged.copy_back();
    std::string wrong = difference(is_k ? "quantised k" : "quantised v", to, wanted);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

// Three parts; of row 1 one part is empty, of row 2 all are.
std::string wrong_merge(const Attention& attention) {
  constexpr std::int64_t kRows = 9;
  constexpr float kEmpty = -std::numeric_limits<float>::infinity();
  const std::int64_t lines = kRows * kHeads;
  std::array<Floats, 3> outs, lses;
  std::vector<Part> parts;
  StagedTensors staged(attention.device());
  for (std::size_t i = 0; i < outs.size(); ++i) {
    outs[i] = random_floats(lines * kWidth, i == 0 ? "a" : i == 1 ? "b" : "c");
    lses[i] = random_floats(lines, i == 0 ? "d" : i == 1 ? "e" : "f");
    lses[i][1] = i == 1 ? kEmpty : 3 * lses[i][1];
    lses[i][2] = kEmpty;
    parts.push_back({staged.read(view(outs[i], {kRows, kHeads, kWidth})),
                     staged.read(view(lses[i], {kHeads, kRows}))});
  }
  Floats out(outs[0].size(), 77.0f), lse(lses[0].size(), 77.0f);
  attention.merge(parts, staged.written(written_view(out, {kRows, kHeads, kWidth})),
                  staged.written(written_view(lse, {kHeads, kRows})));
  staged.copy_back();
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t head = line / kRows, row = line % kRows;
    const auto at = static_cast<std::size_t>(line);
    double sum = 0;
    for (const Floats& part : lses) sum += std::exp(double{part[at]});
    const double wanted_lse = sum == 0 ? double{kEmpty} : std::log(sum);
    if (lse[at] != static_cast<float>(wanted_lse) && !(std::fabs(lse[at] - wanted_lse) < 1e-6)) {
      return fmt::format("merged lse {} is {}, not {}", line, lse[at], wanted_lse);
    }
    for (std::int64_t d = 0; d < kWidth; ++d) {
      const auto element = static_cast<std::size_t>((row * kHeads + head) * kWidth + d);
      double wanted = 0;
      for (std::size_t i = 0; i < outs.size() && sum > 0; ++i) {
        wanted += std::exp(double{lses[i][at]}) / sum * double{outs[i][element]};
      }
      // Four products and sums of numbers below 8, in float32.
      if (std::fabs(double{out[element]} - wanted) < 4e-6) continue;
      return fmt::format("merged element {} is {}, not {}", element, out[element], wanted);
    }
  }
  return "";
}

}  // namespace

std::vector<Spec> cache_specs() {
  Spec pages = {.name = "pool of pages",
                .dtype = DType::f32,
                .head_dim = kWidth,
                .layout = Layout::packed,
                .kv_layout = Layout::paged,
                .outputs = {.lse = true}};
  Spec scaled = pages;
  scaled.name = "pool of one byte";
  scaled.kv_dtype = DType::f8e4m3;
  scaled.k_scale = "scales[h_kv]";
  scaled.v_scale = "0.5f";
  scaled.buffers = {{"scales", {.dtype = DType::f32, .shape = {NamedDim::num_kv_heads}}}};
  Spec blocks = pages;
  blocks.name = "pool of blocks";
  blocks.kv_layout = Layout::paged_x;
  return {pages, scaled, blocks};
}

Spec spec_with_scales_of_sequences() {
  Spec spec = {.name = "scales of sequences",
               .dtype = DType::f32,
               .head_dim = kWidth,
               .layout = Layout::packed,
               .kv_layout = Layout::paged,
               .kv_dtype = DType::f8e4m3,
               .outputs = {.lse = true}};
  spec.k_scale = "0.25f * float(1 + kv_idx % 3) + 0.5f * float(kv_len) + 16.0f * float(q_len)";
  spec.v_scale = spec.k_scale;
  return spec;
}

std::string wrong_quantise_by_plan(const Attention& attention, const Toolchain&) {
  const verify::PackedLengths lengths = {.num_q_heads = kHeads,
                                         .num_kv_heads = kHeads,
                                         .sequences = {{2, 13}, {0, 3}, {1, 7}},
                                         .kv_offset = 0,
                                         .pages = {.page_size = kPageSize}};
  verify::PackedInputs packed = random_packed_inputs(attention.spec(), lengths, 1);
  auto* const table = static_cast<std::int32_t*>(packed.page_table->data());
  const std::int64_t columns = packed.page_table->shape().back();
  table[1] = -1;  // a freed page of the first sequence
  const verify::Problem problem = packed.problem();
  const StagedPlan plan(attention, verify::packed_shape(problem), *problem.sequences, {});
  const std::int64_t pages = problem.k.shape[0], row_elements = kHeads * kWidth;
  Floats from = random_floats(pages * kPageSize * row_elements, "from");
  for (float& x : from) x *= 50;
  const test::FencedMemory memory(from.size());
  const TensorView to =
      TensorView::contiguous(memory.data(), DType::f8e4m3, {pages, kPageSize, kHeads, kWidth});
  Tensor wanted = Tensor::zeros(DType::f8e4m3, {pages, kPageSize, kHeads, kWidth});
  std::memset(wanted.data(), 0x2b, from.size());
  std::memcpy(memory.data(), wanted.data(), from.size());
  for (std::size_t b = 0; b < lengths.sequences.size(); ++b) {
    const auto [q_len, kv_len] = lengths.sequences[b];
    for (std::int64_t column = 0; column < kv_len; ++column) {
      const std::int64_t page = table[static_cast<std::int64_t>(b) * columns + column / kPageSize];
      if (page < 0) continue;
      const float scale = 0.25f * static_cast<float>(1 + column % 3) +
                          0.5f * static_cast<float>(kv_len) + 16.0f * static_cast<float>(q_len);
      const std::int64_t first = (page * kPageSize + column % kPageSize) * row_elements;
      for (std::int64_t i = first; i < first + row_elements; ++i) {
        const float x = from[static_cast<std::size_t>(i)];
        write_element(wanted.data(), DType::f8e4m3, i, double{x / scale});
      }
    }
  }
  StagedTensors staged(attention.device());
  attention.quantise(staged.read(view(from, {pages, kPageSize, kHeads, kWidth})),
                     staged.written(to), &plan.plan(), Operand::k);
  staged.copy_back();
  return difference("k quantised by a plan", to, wanted);
}

std::string wrong_cache_calls(const Attention& attention, const Toolchain&) {
  std::string wrong = wrong_append(attention);
  if (wrong.empty()) wrong = wrong_merge(attention);
  return wrong.empty() ? wrong_quantise(attention) : wrong;
}

}  // namespace tilewright::mutants
