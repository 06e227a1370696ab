#include "runtime/cpu/plan.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "base/ceil_div.hpp"
#include "runtime/call/forward_call.hpp"
#include "runtime/cpu/position_lists.hpp"
#include "runtime/cpu/thread_memory.hpp"

namespace tilewright::cpu {
namespace {

void plan_sequences(const PlanState& plan, const PlanView& view) {
  const abi::SequenceTensors tensors = plan.tensors();
  const abi::PlanBounds bounds = plan.bounds();
  const auto batch = static_cast<int>(plan.shape.batch);
  *view.header = {};
  view.header->first_faulty = batch;
  for (int b = 0; b < batch; ++b) {
    abi::FaultCounter faults;
    view.sequences[b] = abi::plan_sequence(tensors, bounds, b, faults);
    const abi::PlannedSequence& sequence = view.sequences[b];
    view.header->end_of_q = std::max(view.header->end_of_q, sequence.q_begin + sequence.q_len);
    view.header->faults += static_cast<unsigned long long>(faults.count);
    if (faults.count > 0) view.header->first_faulty = std::min(view.header->first_faulty, b);
  }
}

// Rows of tiles that have rows of q, sequence by sequence. Where sequences lie about their rows,
// those that the map has no room for are left out.
int list_rows(const PlanState& plan, const PlanView& view) {
  const auto side = static_cast<int>(plan.geometry.block[0]);
  int count = 0;
  for (int b = 0; b < static_cast<int>(plan.shape.batch); ++b) {
    const int blocks = abi::count_q_blocks(view.sequences[b].q_len, view.sequences[b].lead, side);
    for (int i = 0; i < blocks && count < plan.geometry.rows; ++i) view.work[count++] = {b, i};
  }
  return count;
}

// Which sequences each tile of rows of k has.
void find_column_sequences(const PlanState& plan, const PlanView& view) {
  const auto batch = static_cast<int>(plan.shape.batch);
  const int side = plan.geometry.column_side;
  std::fill_n(view.columns, plan.geometry.column_tiles(plan.shape), abi::ColumnSequences{batch, 0});
  for (int b = 0; b < batch; ++b) {
    const abi::PlannedSequence& sequence = view.sequences[b];
    for (std::int64_t tile = sequence.kv_begin / side; abi::has_rows_of_tile(sequence, tile, side);
         ++tile) {
      abi::ColumnSequences& found = view.columns[tile];
      found = {std::min(found.first, b), b + 1};
    }
  }
}

// Has mask_mod decide the tiles of one row of one list.
class RowDecider {
 public:
  RowDecider(const PlanState& plan, const PlanView& view, const MaskKernel& mask,
             const BindingArguments& bindings, Executor& threads)
      : plan_(plan),
        view_(view),
        mask_(mask),
        block_(plan.geometry.block),
        call_(packed_arguments(bindings, plan)),
        tables_(mask.fill_tables(block_, call_, threads)) {}

  // Returns the tiles that were evaluated.
  long long decide(int head, const abi::PlannedRow& row) const {
    const abi::PlannedSequence& sequence = view_.sequences[row.sequence];
    abi::TileSpan* const spans = view_.spans_of(plan_.geometry, head, row);
    std::fill_n(spans, plan_.geometry.spans_of_row, abi::TileSpan{});
    if (sequence.kv_len == 0) return 0;
    const std::int64_t kv_blocks = ceil_div(sequence.kv_len, block_[1]);
    auto* const runs = static_cast<unsigned*>(
        thread_memory(ThreadMemory::mask_runs, kv_blocks * std::int64_t{sizeof(unsigned)}));
    long long evaluated = 0;
    const int count = mask_.decide_row(of_sequence(call_, sequence, row.sequence), tables_,
                                       row.sequence, head, row.q_block, runs, &evaluated);
    int begin = 0;
    for (int i = 0; i < count; ++i) {
      const auto end = static_cast<int>(runs[i] >> 2);
      const unsigned state = runs[i] & 3u;
      if (state != abi::kTileEmpty) set_tiles(spans, begin, end, state == abi::kTilePartial);
      begin = end;
    }
    return evaluated;
  }

 private:
  const PlanState& plan_;
  const PlanView& view_;
  const MaskKernel& mask_;
  std::array<std::int64_t, 2> block_;
  abi::SnippetArguments call_;
  FilledTables tables_;
};

// Calls decide(head, row) for each row of each list, side by side.
template <typename Decide>
void for_each_row(const PlanState& plan, const PlanView& view, Executor& threads,
                  const Decide& decide) {
  const int rows = view.header->rows;
  threads.parallel_for(std::int64_t{plan.geometry.heads} * rows, [&](std::int64_t item, int) {
    decide(static_cast<int>(item / rows), view.work[item % rows]);
  });
}

// The cost of a row of tiles: the tiles that it visits, or its columns if the spec has no mask_mod.
std::int64_t cost_of_row(const PlanGeometry& geometry, const PlanView& view, int head,
                         const abi::PlannedRow& row) {
  if (geometry.spans_of_row == 0) return view.sequences[row.sequence].kv_len;
  const abi::TileSpan* const spans = view.spans_of(geometry, head, row);
  std::int64_t tiles = 0;
  for (int i = 0; i < geometry.spans_of_row; ++i) tiles += std::popcount(spans[i].kept);
  return tiles;
}

}  // namespace

PlanView::PlanView(const PlanState& plan)
    : header(reinterpret_cast<abi::PlanHeader*>(plan.memory)),
      sequences(
          reinterpret_cast<abi::PlannedSequence*>(plan.memory + plan.geometry.layout.sequences)),
      spans(reinterpret_cast<abi::TileSpan*>(plan.memory + plan.geometry.layout.spans)),
      work(reinterpret_cast<abi::PlannedRow*>(plan.memory + plan.geometry.layout.work)),
      columns(
          reinterpret_cast<abi::ColumnSequences*>(plan.memory + plan.geometry.column_sequences)) {}

abi::TileSpan* PlanView::spans_of(const PlanGeometry& geometry, int head,
                                  const abi::PlannedRow& row) const {
  const std::int64_t index =
      std::int64_t{head} * geometry.rows + sequences[row.sequence].tile_row + row.q_block;
  return spans + index * geometry.spans_of_row;
}

abi::RowsOfTiles PlanView::rows_of(const PlanGeometry& geometry, const abi::PlannedRow& row) const {
  const abi::PlannedSequence& sequence = sequences[row.sequence];
  return abi::rows_of_tiles(sequence.q_len, sequence.lead, row.q_block,
                            static_cast<int>(geometry.block[0]));
}

void set_tiles(abi::TileSpan* spans, int begin, int end, bool partial) {
  for (int tile = begin; tile < end; ++tile) {
    abi::TileSpan& span = spans[tile / abi::kTilesOfSpan];
    const unsigned bit = 1u << tile % abi::kTilesOfSpan;
    span.kept |= bit;
    if (partial) span.partial |= bit;
  }
}

abi::SnippetArguments packed_arguments(const BindingArguments& bindings, const PlanState& plan) {
  abi::SnippetArguments arguments = snippet_arguments(bindings, shape_of_totals(plan.shape));
  arguments.pages = plan.pages();
  return arguments;
}

abi::SnippetArguments of_sequence(abi::SnippetArguments call, const abi::PlannedSequence& sequence,
                                  int b) {
  call.q_len = sequence.q_len;
  call.kv_len = sequence.kv_len;
  call.q_offset = sequence.q_offset;
  call.kv_offset = sequence.kv_offset;
  call.q_token_offset = abi::q_token_offset(sequence);
  call.kv_token_offset = abi::kv_token_offset(sequence);
  call.pages = abi::pages_of_sequence(call.pages, sequence.page_begin, b);
  return call;
}

std::int64_t build_plan(const PlanState& plan, const MaskKernel* mask,
                        const BindingArguments& bindings, Executor& threads) {
  const PlanView view(plan);
  plan_sequences(plan, view);
  if (plan.serves_backward) find_column_sequences(plan, view);
  const int rows = view.header->rows = view.header->all_rows = list_rows(plan, view);
  std::fill(std::begin(view.header->group_begin) + 1, std::end(view.header->group_begin), rows);
  if (mask != nullptr && mask->proves() && !plan.positions) {
    view.header->unsorted = plan.promised.find();
  }
  const PlanGeometry& geometry = plan.geometry;
  std::atomic<std::int64_t> evaluated = 0;
  if (plan.positions) {
    const PositionLists lists(plan, view);
    for_each_row(plan, view, threads,
                 [&](int head, const abi::PlannedRow& row) { lists.copy(head, row); });
  } else if (mask != nullptr && rows > 0) {
    const RowDecider decider(plan, view, *mask, bindings, threads);
    for_each_row(plan, view, threads, [&](int head, const abi::PlannedRow& row) {
      evaluated += decider.decide(head, row);
    });
  }
  // The last list first: all others are copies of the first, as long as that is not sorted.
  for (int head = geometry.heads - 1; head >= 0; --head) {
    abi::PlannedRow* const list = view.work + std::int64_t{head} * geometry.rows;
    if (head > 0) std::copy_n(view.work, rows, list);
    const auto cost = [&](const abi::PlannedRow& row) {
      return cost_of_row(geometry, view, head, row);
    };
    std::stable_sort(list, list + rows, [&](const abi::PlannedRow& a, const abi::PlannedRow& b) {
      return cost(a) > cost(b);
    });
  }
  return evaluated;
}

}  // namespace tilewright::cpu
