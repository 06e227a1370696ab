#include "runtime/cpu/packed_backward.hpp"

#include <algorithm>
#include <utility>

#include "base/ceil_div.hpp"
#include "runtime/cpu/gradient_sums.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/cpu/thread_memory.hpp"

namespace tilewright::cpu {

PackedBackwardKernel::PackedBackwardKernel(std::shared_ptr<const LoadedKernel> kernel)
    : kernel_(std::move(kernel)),
      rows_(kernel_->entry<Rows>("tilewright_backward_rows")),
      begin_columns_(kernel_->entry<TileOfColumns>("tilewright_backward_begin_columns")),
      add_columns_(kernel_->entry<AddColumns>("tilewright_backward_add_columns")),
      store_columns_(kernel_->entry<TileOfColumns>("tilewright_backward_store_columns")),
      q_tile_(*kernel_->entry<const int>("tilewright_q_tile")),
      kv_tile_(*kernel_->entry<const int>("tilewright_kv_tile")),
      scratch_bytes_(*kernel_->entry<const long long>("tilewright_scratch_bytes")) {}

// One call.
class PackedBackwardKernel::Run {
 public:
  Run(const PackedBackwardKernel& kernel, const Spec& spec, const BackwardCall& call,
      const PlanState& plan, const BindingArguments& bindings)
      : kernel_(kernel), spec_(spec), call_(call), plan_(plan), view_(plan) {
    const ForwardCall& forward = call.forward;
    packed_.snippet = packed_arguments(bindings, plan);
    packed_.q = tensor_argument(forward.q);
    packed_.k = tensor_argument(forward.k);
    packed_.v = tensor_argument(forward.v);
    packed_.out = tensor_argument(forward.out);
    packed_.dout = tensor_argument(call.dout);
    packed_.lse = forward.lse;
    packed_.dlse = call.dlse;
    packed_.dq = tensor_argument(call.dq);
    packed_.dk = tensor_argument(call.dk);
    packed_.dv = tensor_argument(call.dv);
    packed_.scale = static_cast<float>(forward.scale);
    packed_.lse_head_stride = forward.shape.q_len;
  }

  void columns(Executor& threads) const {
    const std::int64_t tiles = plan_.geometry.column_tiles(plan_.shape);
    threads.parallel_for(tiles * plan_.shape.num_kv_heads, [&](std::int64_t item, int) {
      columns_of_tile(item % tiles, static_cast<int>(item / tiles));
    });
  }

  void rows(Executor& threads) const {
    const GradientSums sums(call_.gradients);
    const PlanGeometry& geometry = plan_.geometry;
    const std::int64_t heads_per_list = plan_.shape.num_q_heads / geometry.heads;
    const std::int64_t tiles_per_block = ceil_div(geometry.block[0], kernel_.q_tile_);
    const std::int64_t items_per_row = heads_per_list * tiles_per_block;
    const std::int64_t rows = plan_.shape.batch > 0 ? view_.header->rows : 0;
    sums.collect(
        geometry.heads * rows * items_per_row, threads, [&](std::int64_t item, double* own) {
          const std::int64_t list = item / items_per_row / rows;
          const abi::PlannedRow& row =
              view_.work[list * geometry.rows + item / items_per_row % rows];
          const std::int64_t q_tile = item % tiles_per_block;
          abi::PackedBackwardArguments arguments = of_rows(row);
          arguments.gradients = sums.arguments();
          if (q_tile * kernel_.q_tile_ >= arguments.rows) return;
          const std::int64_t h = list * heads_per_list + item % items_per_row / tiles_per_block;
          kernel_.rows_(&arguments, row.sequence, static_cast<int>(h), static_cast<int>(q_tile),
                        own, scratch());
        });
  }

 private:
  void* scratch() const {
    return thread_memory(ThreadMemory::tile_scratch, kernel_.scratch_bytes_);
  }

  abi::PackedBackwardArguments of_rows(const abi::PlannedRow& row) const {
    const abi::PlannedSequence& sequence = view_.sequences[row.sequence];
    const abi::RowsOfTiles rows = view_.rows_of(plan_.geometry, row);
    abi::PackedBackwardArguments arguments =
        of_sequence_rows(row.sequence, std::int64_t{sequence.q_begin} + rows.begin);
    arguments.snippet.q_offset += rows.begin;
    arguments.rows = rows.end - rows.begin;
    arguments.k = from_row(packed_.k, spec_.key_value_dtype(), sequence.kv_begin);
    arguments.v = from_row(packed_.v, spec_.key_value_dtype(), sequence.kv_begin);
    arguments.map = {.spans = view_.spans_of(plan_.geometry, 0, row),
                     .head_stride = map_head_stride(plan_.geometry)};
    return arguments;
  }

  // With rows of q from one of its rows on.
  abi::PackedBackwardArguments of_sequence_rows(int b, std::int64_t first) const {
    abi::PackedBackwardArguments arguments = packed_;
    arguments.snippet = of_sequence(packed_.snippet, view_.sequences[b], b);
    arguments.q = from_row(packed_.q, spec_.dtype, first);
    arguments.dq = from_row(packed_.dq, spec_.dtype, first);
    arguments.out = from_row(packed_.out, spec_.output_dtype(), first);
    arguments.dout = from_row(packed_.dout, spec_.output_dtype(), first);
    arguments.lse = packed_.lse + first;
    if (packed_.dlse != nullptr) arguments.dlse = packed_.dlse + first;
    return arguments;
  }

  void columns_of_tile(std::int64_t tile, int h_kv) const {
    const std::int64_t side = kernel_.kv_tile_;
    const auto first_row = static_cast<int>(tile * side);
    const auto count = static_cast<int>(std::min(side, plan_.shape.total_kv - tile * side));
    void* const memory = scratch();
    kernel_.begin_columns_(&packed_, h_kv, first_row, count, memory);
    const abi::ColumnSequences found =
        plan_.shape.batch > 0 ? view_.columns[tile] : abi::ColumnSequences{0, 0};
    for (int b = found.first; b < found.end; ++b) {
      if (!abi::has_rows_of_tile(view_.sequences[b], tile, static_cast<int>(side))) continue;
      add_sequence(b, first_row, count, h_kv, memory);
    }
    kernel_.store_columns_(&packed_, h_kv, first_row, count, memory);
  }

  // Those of the tile's rows that a sequence has, kv block by kv block.
  void add_sequence(int b, int first_row, int count, int h_kv, void* memory) const {
    const abi::PlannedSequence& sequence = view_.sequences[b];
    const PlanGeometry& geometry = plan_.geometry;
    const auto block = static_cast<int>(geometry.block[1]);
    const abi::PackedBackwardArguments arguments = of_sequence_rows(b, sequence.q_begin);
    abi::ColumnsOfTile columns = {};
    columns.first_column = first_row - sequence.kv_begin;
    columns.head_stride = map_head_stride(geometry);
    columns.row_stride = geometry.spans_of_row;
    columns.lead = sequence.lead;
    columns.q_blocks =
        abi::count_q_blocks(sequence.q_len, sequence.lead, static_cast<int>(geometry.block[0]));
    const int end = std::min(columns.first_column + count, sequence.kv_len);
    for (int column = std::max(columns.first_column, 0); column < end;) {
      const int kv_block = column / block;
      const int next = geometry.spans_of_row == 0 ? end : std::min(end, (kv_block + 1) * block);
      columns.begin = column - columns.first_column;
      columns.end = next - columns.first_column;
      columns.spans = view_.spans + std::int64_t{sequence.tile_row} * geometry.spans_of_row +
                      kv_block / abi::kTilesOfSpan;
      columns.bit = kv_block % abi::kTilesOfSpan;
      kernel_.add_columns_(&arguments, &columns, b, h_kv, memory);
      column = next;
    }
  }

  const PackedBackwardKernel& kernel_;
  const Spec& spec_;
  const BackwardCall& call_;
  const PlanState& plan_;
  PlanView view_;
  abi::PackedBackwardArguments packed_ = {};
};

void PackedBackwardKernel::run(const Spec& spec, const BackwardCall& call, const PlanState& plan,
                               const BindingArguments& bindings, Executor& threads) const {
  const Run run(*this, spec, call, plan, bindings);
  if (call.dk.data != nullptr || call.dv.data != nullptr) run.columns(threads);
  if (call.dq.data != nullptr || !call.gradients.empty()) run.rows(threads);
}

}  // namespace tilewright::cpu
