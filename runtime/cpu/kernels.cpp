#include "runtime/cpu/kernels.hpp"

#include <cstddef>
#include <utility>

#include "base/ceil_div.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/cpu/thread_memory.hpp"

namespace tilewright::cpu {
namespace {

abi::ForwardArguments forward_arguments(const ForwardCall& call,
                                        const abi::SnippetArguments& snippet) {
  return {.snippet = snippet,
          .q = tensor_argument(call.q),
          .k = tensor_argument(call.k),
          .v = tensor_argument(call.v),
          .k_new = tensor_argument(call.k_new),
          .v_new = tensor_argument(call.v_new),
          .out = tensor_argument(call.out),
          .lse = call.lse,
          .lse_head_stride = call.shape.q_len,
          .scale = static_cast<float>(call.scale),
          .mask = {},
          .map = {},
          .rows = 0,
          .max_scores = call.max_scores,
          .weights = call.weights};
}

// The calls of a packed call's rows of tiles.
class CallsOfRows {
 public:
  CallsOfRows(const Spec& spec, const ForwardCall& call, const PlanState& plan,
              const BindingArguments& bindings)
      : spec_(spec),
        plan_(plan),
        view_(plan),
        packed_(forward_arguments(call, packed_arguments(bindings, plan))) {}

  abi::ForwardArguments of(const abi::PlannedRow& row) const {
    const abi::PlannedSequence& sequence = view_.sequences[row.sequence];
    const PlanGeometry& geometry = plan_.geometry;
    const abi::RowsOfTiles rows = view_.rows_of(geometry, row);
    const std::int64_t first = std::int64_t{sequence.q_begin} + rows.begin;
    abi::ForwardArguments arguments = packed_;
    arguments.snippet = of_sequence(packed_.snippet, sequence, row.sequence);
    arguments.snippet.q_offset += rows.begin;
    arguments.rows = rows.end - rows.begin;
    arguments.q = from_row(packed_.q, spec_.dtype, first);
    arguments.k = from_row(packed_.k, spec_.key_value_dtype(), sequence.kv_begin);
    arguments.v = from_row(packed_.v, spec_.key_value_dtype(), sequence.kv_begin);
    if (spec_.kv_new) {
      const std::int64_t first_new = std::int64_t{sequence.q_begin} + sequence.q_len -
                                     sequence.kv_len +
                                     abi::context_of(sequence.q_len, sequence.kv_len);
      arguments.k_new = from_row(packed_.k_new, spec_.dtype, first_new);
      arguments.v_new = from_row(packed_.v_new, spec_.dtype, first_new);
    }
    arguments.out = from_row(packed_.out, spec_.output_dtype(), first);
    if (packed_.lse != nullptr) arguments.lse = packed_.lse + first;
    if (packed_.max_scores != nullptr) arguments.max_scores = packed_.max_scores + first;
    arguments.map = {.spans = view_.spans_of(geometry, 0, row),
                     .head_stride = map_head_stride(geometry)};
    return arguments;
  }

 private:
  const Spec& spec_;
  const PlanState& plan_;
  PlanView view_;
  abi::ForwardArguments packed_;
};

}  // namespace

ForwardKernel::ForwardKernel(std::shared_ptr<const LoadedKernel> kernel, const char* entry)
    : kernel_(std::move(kernel)),
      entry_(kernel_->entry<Entry>(entry)),
      q_tile_(*kernel_->entry<const int>("tilewright_q_tile")),
      scratch_bytes_(*kernel_->entry<const long long>("tilewright_scratch_bytes")) {}

void ForwardKernel::run_tile(const abi::ForwardArguments& arguments, std::int64_t b, std::int64_t h,
                             std::int64_t q_tile) const {
  entry_(&arguments, static_cast<int>(b), static_cast<int>(h), static_cast<int>(q_tile),
         thread_memory(ThreadMemory::tile_scratch, scratch_bytes_));
}

void ForwardKernel::run(const ForwardCall& call, const BindingArguments& bindings,
                        Executor& threads) const {
  const abi::ForwardArguments arguments =
      forward_arguments(call, snippet_arguments(bindings, call.shape));
  const std::int64_t heads = call.shape.num_q_heads;
  const std::int64_t tiles = ceil_div(call.shape.q_len, q_tile_);
  threads.parallel_for(call.shape.batch * heads * tiles, [&](std::int64_t item, int) {
    const std::int64_t head = item / tiles;
    run_tile(arguments, head / heads, head % heads, item % tiles);
  });
}

void ForwardKernel::run(const Spec& spec, const ForwardCall& call, const PlanState& plan,
                        const BindingArguments& bindings, Executor& threads) const {
  const CallsOfRows calls(spec, call, plan, bindings);
  const PlanView view(plan);
  const PlanGeometry& geometry = plan.geometry;
  const std::int64_t heads_per_list = call.shape.num_q_heads / geometry.heads;
  const std::int64_t tiles_per_block = spec.block[0] / q_tile_;
  const std::int64_t items_per_row = heads_per_list * tiles_per_block;
  const std::int64_t rows = view.header->rows;
  threads.parallel_for(geometry.heads * rows * items_per_row, [&](std::int64_t item, int) {
    const std::int64_t list = item / items_per_row / rows;
    const abi::PlannedRow& row = view.work[list * geometry.rows + item / items_per_row % rows];
    const std::int64_t q_tile = item % tiles_per_block;
    const abi::ForwardArguments arguments = calls.of(row);
    if (q_tile * q_tile_ >= arguments.rows) return;
    const std::int64_t h = list * heads_per_list + item % items_per_row / tiles_per_block;
    run_tile(arguments, row.sequence, h, q_tile);
  });
}

void ForwardKernel::run(const ForwardCall& call, const BlockMask& mask,
                        const BindingArguments& bindings, Executor& threads) const {
  abi::ForwardArguments arguments =
      forward_arguments(call, snippet_arguments(bindings, call.shape));
  const std::shared_ptr<const HostTileLists> lists = mask.on_host();
  arguments.mask = lists_argument(mask, lists->lists, mask.q_blocks());
  // A row of a mask that is shared by heads or batches serves several rows of the call.
  const std::int64_t heads_per_list = call.shape.num_q_heads / mask.heads();
  const std::int64_t batches_per_list = call.shape.batch / mask.batch();
  const std::int64_t tiles_per_block = mask.block()[0] / q_tile_;
  const std::int64_t items_per_row = heads_per_list * batches_per_list * tiles_per_block;
  threads.parallel_for(mask.rows() * items_per_row, [&](std::int64_t item, int) {
    const std::int64_t row = lists->q_tile_order[static_cast<size_t>(item / items_per_row)];
    const std::int64_t copy = item % items_per_row / tiles_per_block;
    const std::int64_t list = row / mask.q_blocks();
    const std::int64_t q_tile = row % mask.q_blocks() * tiles_per_block + item % tiles_per_block;
    if (q_tile * q_tile_ >= call.shape.q_len)
      return;  // the last block's tiles may lie beyond q_len
    const std::int64_t b = list / mask.heads() + copy / heads_per_list;
    const std::int64_t h = list % mask.heads() + copy % heads_per_list;
    run_tile(arguments, b, h, q_tile);
  });
}

}  // namespace tilewright::cpu
