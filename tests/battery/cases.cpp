#include "tests/battery/cases.hpp"

#include <limits>
#include <utility>

#include "runtime/call/staged_call.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::battery {
namespace {

Shape shape_of(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t q_len,
               std::int64_t kv_len) {
  return {.batch = batch,
          .num_q_heads = q_heads,
          .num_kv_heads = kv_heads,
          .q_len = q_len,
          .kv_len = kv_len};
}

Shape shape_of(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t q_len,
               std::int64_t kv_len, std::int64_t q_offset, std::int64_t kv_offset) {
  Shape shape = shape_of(batch, q_heads, kv_heads, q_len, kv_len);
  shape.q_offset = q_offset;
  shape.kv_offset = kv_offset;
  return shape;
}

std::vector<Case> short_cases() {
  const verify::RandomOptions broadcast{.broadcast_kv = true, .broadcast_buffers = true};
  return {
      {.name = "one by one", .shape = shape_of(1, 1, 1, 1, 1)},
      {.name = "odd lengths", .shape = shape_of(2, 3, 1, 127, 127)},
      {.name = "more keys", .shape = shape_of(1, 6, 2, 65, 257)},
      {.name = "more queries", .shape = shape_of(1, 2, 2, 255, 63)},
      {.name = "many keys", .shape = shape_of(1, 3, 3, 9, 1023)},
      {.name = "many queries", .shape = shape_of(1, 1, 1, 1023, 33)},
      {.name = "broadcast", .shape = shape_of(3, 4, 2, 33, 129), .random = broadcast},
      {.name = "one query at the end",
       .shape = shape_of(2, 8, 1, 1, 255, 254, 0),
       .has_offsets = true},
      {.name = "negative offset",
       .shape = shape_of(1, 2, 1, 100, 130, -37, 11),
       .has_offsets = true},
      {.name = "padded rows, unaligned",
       .shape = shape_of(2, 4, 2, 50, 140),
       .placement = {.row_padding = 3, .offset = 1}},
      {.name = "one kv head for all",
       .shape = shape_of(1, 4, 4, 40, 70),
       .placement = {.row_padding = 8},
       .one_kv_head_for_all = true},
      {.name = "NaN in one k row",
       .shape = shape_of(2, 3, 3, 130, 150),
       .nan_in_one_k_row = true,
       .masked_only = true},
      {.name = "NaN in skipped tiles",
       .shape = shape_of(1, 4, 2, 130, 400),
       .nan_in_skipped_tiles = true,
       .masked_only = true},
      {.name = "scale 0", .shape = shape_of(1, 1, 1, 20, 40), .scale = 0.0},
      {.name = "scale -0.7", .shape = shape_of(1, 2, 1, 70, 50), .scale = -0.7},
  };
}

std::vector<Case> long_cases() {
  return {
      {.name = "square 1023", .shape = shape_of(1, 2, 1, 1023, 1023)},
      {.name = "one query, many keys", .shape = shape_of(4, 16, 2, 1, 2049)},
      {.name = "many queries, one key", .shape = shape_of(1, 2, 2, 2049, 1)},
      {.name = "multiples of the block", .shape = shape_of(2, 4, 4, 256, 512)},
      {.name = "one more than a block", .shape = shape_of(1, 8, 1, 129, 257)},
      {.name = "large scores", .shape = shape_of(1, 2, 1, 200, 300), .random = {.q_factor = 30}},
      {.name = "continued sequence",
       .shape = shape_of(2, 6, 3, 77, 600, 523, 0),
       .has_offsets = true},
      {.name = "keys from the middle",
       .shape = shape_of(1, 2, 2, 300, 200, 0, 150),
       .has_offsets = true},
      {.name = "far offsets",
       .shape = shape_of(1, 1, 1, 64, 64, 1000000, 1000000),
       .has_offsets = true},
      {.name = "padded rows, aligned",
       .shape = shape_of(2, 4, 1, 150, 150),
       .placement = {.row_padding = 16}},
      {.name = "NaN in one k row, one head",
       .shape = shape_of(1, 1, 1, 513, 513),
       .nan_in_one_k_row = true,
       .masked_only = true},
      {.name = "NaN in skipped tiles, long",
       .shape = shape_of(2, 2, 2, 300, 1000),
       .nan_in_skipped_tiles = true,
       .masked_only = true},
  };
}

// q, k, v or a buffer's rows as NaN.
void fill_row_with_nan(const TensorView& tensor, Layout layout, std::int64_t b, std::int64_t h,
                       std::int64_t row) {
  const std::size_t head_dimension = layout == Layout::bhsd ? 1 : 2;
  const std::size_t row_dimension = layout == Layout::bhsd ? 2 : 1;
  const std::int64_t start = b * tensor.strides[0] + h * tensor.strides[head_dimension] +
                             row * tensor.strides[row_dimension];
  for (std::int64_t i = 0; i < tensor.shape[3]; ++i) {
    write_element(tensor.data, tensor.dtype, start + i, std::numeric_limits<double>::quiet_NaN());
  }
}

void plant_nan_in_one_k_row(const Spec& spec, const verify::Problem& problem) {
  const Shape& shape = problem.shape;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.num_kv_heads; ++h) {
      fill_row_with_nan(problem.k, spec.key_value_layout(), b, h, shape.kv_len * 2 / 3);
    }
  }
}

// Whether any query of the group of a kv head visits a kv block.
bool is_visited(const BlockMask& mask, const Shape& shape, std::int64_t b, std::int64_t h_kv,
                std::size_t kv_block) {
  const std::int64_t group = shape.num_q_heads / shape.num_kv_heads;
  for (std::int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
    for (std::int64_t q_block = 0; q_block < mask.q_blocks(); ++q_block) {
      const auto tiles = mask.row(mask.batch() == 1 ? 0 : b, mask.heads() == 1 ? 0 : h, q_block);
      if (tiles[kv_block] != BlockMask::Tile::empty) return true;
    }
  }
  return false;
}

void plant_nan_in_skipped_tiles(const Spec& spec, const verify::Problem& problem,
                                const Attention& attention) {
  const Shape& shape = problem.shape;
  const StagedCall staged(attention.device(), problem.snippet);
  const BlockMask mask = attention.block_mask(shape, attention.bind(staged.inputs()));
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.num_kv_heads; ++h) {
      for (std::int64_t row = 0; row < shape.kv_len; ++row) {
        const auto kv_block = static_cast<std::size_t>(row / spec.block[1]);
        if (is_visited(mask, shape, b, h, kv_block)) continue;
        fill_row_with_nan(problem.k, spec.key_value_layout(), b, h, row);
        fill_row_with_nan(problem.v, spec.key_value_layout(), b, h, row);
      }
    }
  }
}

}  // namespace

std::string Case::describe() const {
  return name + ": " + shape.describe();
}

std::vector<Case> all_cases(bool full) {
  std::vector<Case> cases = short_cases();
  if (full) {
    for (Case& call : long_cases()) cases.push_back(std::move(call));
  }
  return cases;
}

CaseInputs::CaseInputs(const Spec& spec, const Case& call, const Attention& attention,
                       std::uint64_t seed) {
  const verify::Inputs inputs = verify::random_inputs(spec, call.shape, seed, call.random);
  problem_.shape = call.shape;
  problem_.scale = call.scale;
  problem_.snippet.scalars = inputs.scalars;
  problem_.q = keep(verify::GuardedTensor::copy_of(inputs.q, call.placement));
  problem_.k = keep(verify::GuardedTensor::copy_of(inputs.k, call.placement));
  problem_.v = keep(verify::GuardedTensor::copy_of(inputs.v, call.placement));
  for (const auto& [name, tensor] : inputs.buffers) {
    problem_.snippet.buffers.emplace(name,
                                     keep(verify::GuardedTensor::copy_of(tensor, call.placement)));
  }
  if (call.one_kv_head_for_all) {
    const std::size_t head_dimension = spec.key_value_layout() == Layout::bhsd ? 1 : 2;
    problem_.k.strides[head_dimension] = problem_.v.strides[head_dimension] = 0;
  }
  if (call.nan_in_one_k_row) plant_nan_in_one_k_row(spec, problem_);
  if (call.nan_in_skipped_tiles) plant_nan_in_skipped_tiles(spec, problem_, attention);
}

TensorView CaseInputs::keep(verify::GuardedTensor tensor) {
  tensors_.push_back(std::move(tensor));
  return tensors_.back().view();
}

}  // namespace tilewright::battery
