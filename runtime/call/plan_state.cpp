#include "runtime/call/plan_state.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/counted.hpp"
#include "base/error.hpp"
#include "runtime/call/tensor_role.hpp"
#include "templates/abi/cuda_packed_backward.hpp"

namespace tilewright {
namespace {

const int* data_of(const std::optional<TensorView>& tensor) {
  return tensor ? static_cast<const int*>(tensor->data) : nullptr;
}

[[noreturn]] void refuse_tensor(std::string_view name, const TensorView& view,
                                const std::string& why, std::string_view wanted) {
  throw Error(ErrorCode::tensor, fmt::format("{} {}", name, why),
              fmt::format("given: {}; wanted: {}", view.describe(), wanted));
}

void require_tensor(std::string_view name, const TensorView& view, std::int64_t least,
                    std::int64_t greatest, std::string_view wanted, bool may_be_wide = false) {
  const auto refuse = [&](const std::string& why) {
    refuse_tensor(name, view, why,
                  fmt::format("{} {}", may_be_wide ? "i32 or i64" : "i32", wanted));
  };
  if (lacks_data(view)) refuse("has no data");
  if (view.dtype != DType::i32 && !(may_be_wide && view.dtype == DType::i64)) {
    refuse(fmt::format("is {}; it must be {}", to_string(view.dtype),
                       may_be_wide ? "i32 or i64" : "i32"));
  }
  if (view.rank != 1) refuse(fmt::format("has rank {}; it must have rank 1", view.rank));
  if (const std::string fault = view.fault(); !fault.empty()) refuse(fault);
  if (view.shape[0] < least || view.shape[0] > greatest) {
    refuse(fmt::format("has {}, which is not {}", counted(view.shape[0], "element"), wanted));
  }
  if (view.shape[0] > 1 && view.strides[0] != 1) {
    refuse(fmt::format("has stride {}; it must be contiguous", view.strides[0]));
  }
}

std::string_view name_of(PlanReport::Kind kind) {
  switch (kind) {
    case PlanReport::Kind::q_begin:
      return "q_begin";
    case PlanReport::Kind::kv_begin:
      return "kv_begin";
    case PlanReport::Kind::page_begin:
      return "page_begin";
    case PlanReport::Kind::kv_len:
      return "kv_len";
    case PlanReport::Kind::page_table:
      return "page_table";
    case PlanReport::Kind::q_offset:
      return "q_offset";
    case PlanReport::Kind::kv_offset:
      return "kv_offset";
    case PlanReport::Kind::position_rows:
    case PlanReport::Kind::position_columns:
    case PlanReport::Kind::unsorted:
    case PlanReport::Kind::q_len:
      break;
  }
  return {};
}

std::string describe_positions(const PlanReport::Value& found) {
  const bool of_rows = found.kind == PlanReport::Kind::position_rows;
  return fmt::format("sequence {} has {} to position {}, but the positions' lists have {} {}",
                     found.sequence, of_rows ? "rows up" : "columns up", found.value - 1,
                     found.limit, of_rows ? "rows" : "columns");
}

std::string describe_place(const PlanReport::Value& found) {
  return found.row ? fmt::format("({}, {})", *found.row, found.place)
                   : fmt::format("[{}]", found.place);
}

std::string describe(const PlanReport::Value& found) {
  const std::string value =
      fmt::format("{}{} is {}", name_of(found.kind), describe_place(found), found.value);
  switch (found.kind) {
    case PlanReport::Kind::q_begin:
    case PlanReport::Kind::kv_begin:
      if (found.value < 0) return value;
      if (found.value < found.limit) return fmt::format("{} after {}", value, found.limit);
      return fmt::format("{}, but {} has {} rows", value,
                         found.kind == PlanReport::Kind::q_begin ? "q" : "k", found.limit);
    case PlanReport::Kind::page_begin:
      if (found.value < 0) return value;
      if (found.value < found.limit) return fmt::format("{} after {}", value, found.limit);
      return fmt::format("{}, but page_table has {} entries", value, found.limit);
    case PlanReport::Kind::page_table:
      return fmt::format("{}, but the pool has {} pages", value, found.limit);
    case PlanReport::Kind::kv_len:
      return found.value < 0 ? value
                             : fmt::format("{}, but there is room for {}", value, found.limit);
    case PlanReport::Kind::q_offset:
    case PlanReport::Kind::kv_offset:
      return fmt::format("{}, which leaves the range of a 32-bit index", value);
    case PlanReport::Kind::position_rows:
    case PlanReport::Kind::position_columns:
      return describe_positions(found);
    case PlanReport::Kind::unsorted:
      return fmt::format("{} is {} after {}, but the spec promises that it is sorted",
                         found.element, found.value, found.limit);
    case PlanReport::Kind::q_len:
      return fmt::format("sequence {} has {} rows of q, but max_q_len is {}", found.sequence,
                         found.value, found.limit);
  }
  return value;
}

void require_packed_rows(const Sequences& sequences, std::int64_t batch) {
  if (!sequences.kv_begin) {
    throw Error(ErrorCode::tensor, "kv_layout is \"packed\", and the sequences have no kv_begin",
                "give an i32 tensor [batch + 1]: rows kv_begin[b] .. kv_begin[b + 1] of k and v");
  }
  if (sequences.page_table || sequences.page_begin) {
    throw Error(ErrorCode::tensor,
                fmt::format("{} was given, and kv_layout is \"packed\"",
                            sequences.page_table ? "page_table" : "page_begin"),
                R"(leave it out, or write "kv_layout": "paged" in the spec)");
  }
  const std::int64_t least = sequences.kv_len ? batch : batch + 1;
  require_tensor("kv_begin", *sequences.kv_begin, least, batch + 1,
                 fmt::format("[{}] (batch + 1), or [{}] with kv_len", batch + 1, batch));
}

// [batch, columns], or anything of rank 1 or 2 with page_begin.
void require_page_table(const TensorView& table, std::int64_t batch, bool has_begins) {
  const std::string wanted = has_begins ? "i32 [entries]"
                                        : fmt::format(
                                              "i32 [{}, columns] (batch, columns), or "
                                              "[entries] with page_begin",
                                              batch);
  const auto refuse = [&](const std::string& why) {
    refuse_tensor("page_table", table, why, wanted);
  };
  if (table.dtype != DType::i32) {
    refuse(fmt::format("is {}; it must be i32", to_string(table.dtype)));
  }
  if (!has_begins && table.rank == 1) refuse("has rank 1, and the sequences have no page_begin");
  if (table.rank != 2 && !(has_begins && table.rank == 1)) {
    refuse(fmt::format("has rank {}; it must have rank {}", table.rank, has_begins ? "1" : "2"));
  }
  if (const std::string fault = table.fault(); !fault.empty()) refuse(fault);
  if (!has_begins && table.shape[0] != batch) {
    refuse(fmt::format("has {}, but batch is {}", counted(table.shape[0], "row"), batch));
  }
  const bool has_rows = !has_begins && table.strides[0] >= table.shape[1] &&
                        (table.shape[1] <= 1 || table.strides[1] == 1);
  if (!has_rows && !table.is_contiguous()) {
    refuse(has_begins ? "is not contiguous" : "has rows that are not contiguous, or overlap");
  }
}

// Where the host sees that no sequence has the columns that the shape says.
void require_room(const TensorView& table, const PackedShape& shape, bool has_new_rows) {
  const std::int64_t rows = shape.max_q_len > 0 ? shape.max_q_len : shape.total_q;
  const std::int64_t in_pages = shape.max_kv_len - (has_new_rows ? rows : 0);
  const std::int64_t columns = table.shape[1];
  if (in_pages <= 0 || columns >= ceil_div(in_pages, shape.page_size)) return;
  throw Error(ErrorCode::tensor,
              fmt::format("page_table has {} of {}, room for {}, but max_kv_len is {}",
                          counted(columns, "column"), counted(shape.page_size, "row"),
                          columns * shape.page_size, shape.max_kv_len),
              "give a table with more columns, or a smaller max_kv_len");
}

void require_pages(const Sequences& sequences, const PackedShape& shape, bool has_new_rows) {
  if (sequences.kv_begin) {
    throw Error(ErrorCode::tensor, "kv_begin was given, and kv_layout is \"paged\"",
                "leave it out: page_table says where a sequence's columns are");
  }
  if (!sequences.kv_len) {
    throw Error(ErrorCode::tensor, "kv_layout is \"paged\", and the sequences have no kv_len",
                "give an i32 tensor [batch]: the columns of each sequence");
  }
  const std::int64_t batch = shape.batch, pages = shape.pages();
  if (sequences.page_table) {
    require_page_table(*sequences.page_table, batch, sequences.page_begin.has_value());
    if (!sequences.page_begin) require_room(*sequences.page_table, shape, has_new_rows);
  } else if (sequences.page_begin) {
    throw Error(ErrorCode::tensor, "page_begin was given, and there is no page_table",
                "give both, or neither: then page b is sequence b's");
  } else if (pages < batch) {
    throw Error(ErrorCode::tensor,
                fmt::format("the sequences have no page_table, and the pool has {} pages for {} "
                            "sequences",
                            pages, batch),
                "without a page_table page b is sequence b's");
  }
  if (!sequences.page_begin) return;
  require_tensor("page_begin", *sequences.page_begin, batch, batch + 1,
                 fmt::format("[{}] or [{}] (batch, batch + 1)", batch, batch + 1), true);
}

}  // namespace

abi::SequenceTensors PlanState::tensors() const {
  return {.q_begin = static_cast<const int*>(sequences.q_begin.data),
          .kv_begin = data_of(sequences.kv_begin),
          .kv_len = data_of(sequences.kv_len),
          .q_offset = data_of(sequences.q_offset),
          .kv_offset = data_of(sequences.kv_offset),
          .page_table = data_of(sequences.page_table),
          .page_begin = sequences.page_begin ? sequences.page_begin->data : nullptr};
}

abi::PageBounds PlanState::page_bounds() const {
  if (shape.page_size == 0) return {};
  abi::PageBounds bounds = {.table_entries = 0,
                            .table_stride = 0,
                            .table_columns = 1,
                            .ends_at_next = 0,
                            .page_begin_bytes = 0,
                            .page_size = static_cast<int>(shape.page_size),
                            .pages = static_cast<int>(shape.pages()),
                            .has_new_rows = has_new_rows ? 1 : 0,
                            .counts_absent = counts_absent ? 1 : 0};
  if (!sequences.page_table) return bounds;
  bounds.table_entries = sequences.page_table->numel();
  if (!sequences.page_begin) {
    bounds.table_stride = sequences.page_table->strides[0];
    bounds.table_columns = static_cast<int>(sequences.page_table->shape[1]);
    return bounds;
  }
  bounds.page_begin_bytes = static_cast<int>(size_of(sequences.page_begin->dtype));
  bounds.ends_at_next = sequences.page_begin->shape[0] > shape.batch ? 1 : 0;
  return bounds;
}

abi::SequencePages PlanState::pages() const {
  if (shape.page_size == 0) return {};
  return {.table = data_of(sequences.page_table),
          .first_page = 0,
          .pages = static_cast<int>(shape.pages()),
          .page_size = abi::make_divisor(static_cast<int>(shape.page_size)),
          .box_shift = 0};
}

int PlanState::split_parts() const {
  if (batch_invariant) return 1;
  return static_cast<int>(parts_for_splits(splits, geometry.split_parts));
}

int PlanState::decode_blocks() const {
  if (keeps_items_whole()) return geometry.decode_blocks;
  const std::int64_t items = shape.batch * shape.num_kv_heads;
  return static_cast<int>(blocks_for_splits(splits, items, geometry.decode_blocks));
}

abi::PlanBounds PlanState::bounds() const {
  return {
      .total_q = static_cast<int>(shape.total_q),
      .total_kv = static_cast<int>(shape.total_kv),
      .max_q_len = static_cast<int>(std::min(shape.max_q_len, shape.total_q)),
      .max_kv_len = shape.total_kv > 0 || has_new_rows ? static_cast<int>(shape.max_kv_len) : 0,
      .side = static_cast<int>(geometry.block[0]),
      .position_rows = positions ? static_cast<int>(positions->fingerprint().shape.q_len) : 0,
      .position_columns = positions ? static_cast<int>(positions->fingerprint().shape.kv_len) : 0,
      .decode_q_len = geometry.decode_q_len,
      .pages = page_bounds()};
}

PackedShape with_bounds(PackedShape shape, bool has_new_rows) {
  constexpr std::int64_t kMost = 1 << 30;
  if (shape.max_q_len == 0) shape.max_q_len = shape.total_q;
  if (shape.max_kv_len == 0) {
    shape.max_kv_len =
        has_new_rows ? std::min(shape.total_kv + shape.total_q, kMost) : shape.total_kv;
  }
  return shape;
}

std::int64_t PlanGeometry::count_planned_columns(const PackedShape& shape) const {
  if (backward.columns == 0) return 0;
  return abi::cuda::planned_columns(shape.total_kv, shape.batch,
                                    static_cast<int>(backward.columns));
}

std::int64_t PlanGeometry::count_planned_rows(const PackedShape& shape) const {
  if (backward.rows == 0) return 0;
  return abi::cuda::planned_row_tiles(shape.total_q, shape.batch, static_cast<int>(backward.rows));
}

PlanGeometry plan_geometry(const PackedShape& shape, const TileSource& source) {
  const auto side_of = [&](int i) { return static_cast<int>(source.block[i]); };
  const std::int64_t heads = source.has_mask && source.per_head ? shape.num_q_heads : 1;
  const std::int64_t rows =
      abi::tile_map_rows(shape.total_q, shape.batch, side_of(0), source.in_positions);
  const std::int64_t spans =
      source.has_mask ? abi::spans_of_columns(with_bounds(shape).max_kv_len, side_of(1)) : 0;
  if (heads * rows > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::tensor,
                fmt::format("the plan has {} rows of tiles; it may have {}", heads * rows,
                            std::numeric_limits<std::int32_t>::max()),
                "split the batch, or choose a greater block in the spec");
  }
  const int blocks = source.decode.blocks;
  const SplitLaunch& split = source.split;
  const QTiles q_tiles =
      split.q_tile == 0 ? QTiles() : packed_q_tiles(split, shape, side_of(0), rows);
  const std::int64_t parts = split_parts(split, q_tiles, with_bounds(shape).max_kv_len);
  const std::int64_t counters = parts == 1 ? 0 : q_tiles.room * split.warpgroups();
  PlanGeometry geometry = {
      .block = source.block,
      .heads = static_cast<int>(heads),
      .rows = static_cast<int>(rows),
      .spans_of_row = static_cast<int>(spans),
      .layout = abi::plan_layout(shape.batch, heads, rows, spans, blocks, counters)};
  geometry.bytes = geometry.layout.bytes;
  geometry.column_side = static_cast<int>(source.column_side);
  geometry.backward = source.backward;
  if (parts == 1) {
    geometry.resident_heads = static_cast<int>(resident_heads(source.resident, with_bounds(shape)));
  }
  const auto add_rest = [&] {
    geometry.column_sequences = geometry.bytes;
    const std::int64_t bytes =
        geometry.column_tiles(shape) * std::int64_t{sizeof(abi::ColumnSequences)};
    geometry.bytes += abi::plan_aligned(bytes);
    if (parts > 1) {
      geometry.split_parts = static_cast<int>(parts);
      geometry.split_partial = geometry.bytes;
      geometry.bytes += abi::plan_aligned(split.partial_bytes(q_tiles.room, parts));
    }
    if (geometry.backward.columns == 0) return geometry;
    const auto add = [&](std::int64_t more) {
      const std::int64_t begin = geometry.bytes;
      geometry.bytes += abi::plan_aligned(more);
      return begin;
    };
    geometry.planned_columns = add(geometry.count_planned_columns(shape) *
                                   std::int64_t{sizeof(abi::cuda::PlannedColumns)});
    geometry.planned_rows =
        add(geometry.count_planned_rows(shape) * std::int64_t{sizeof(abi::cuda::PlannedRowTile)});
    geometry.shares_rows = add(sizeof(int));
    return geometry;
  };
  if (blocks == 0) return add_rest();
  geometry.decode_blocks = blocks;
  geometry.decode_lists = heads == 1 ? 1 : static_cast<int>(shape.num_kv_heads);
  geometry.decode_q_len =
      static_cast<int>(abi::most_decoded_rows(shape.num_q_heads, shape.num_kv_heads));
  geometry.decode = abi::decode_layout(geometry.layout, shape.batch, geometry.decode_lists, blocks,
                                       source.decode.value_dim);
  geometry.bytes = geometry.decode.bytes;
  return add_rest();
}

void require_sequences(const Sequences& sequences, const PackedShape& shape, bool has_new_rows) {
  const std::int64_t batch = shape.batch;
  require_tensor("q_begin", sequences.q_begin, batch + 1, batch + 1,
                 fmt::format("[{}] (batch + 1)", batch + 1));
  shape.page_size > 0 ? require_pages(sequences, shape, has_new_rows)
                      : require_packed_rows(sequences, batch);
  const std::string per_sequence = fmt::format("[{}] (batch)", batch);
  if (sequences.kv_len) require_tensor("kv_len", *sequences.kv_len, batch, batch, per_sequence);
  if (sequences.q_offset) {
    require_tensor("q_offset", *sequences.q_offset, batch, batch, per_sequence);
  }
  if (sequences.kv_offset) {
    require_tensor("kv_offset", *sequences.kv_offset, batch, batch, per_sequence);
  }
}

const PackedShape& Plan::shape() const {
  return state().shape;
}

PlanState& Plan::state() const {
  if (state_) return *state_;
  throw Error(ErrorCode::usage, "this Plan was moved from", "use the one that it was moved to");
}

PlanReport Plan::report() const {
  const PlanState& state = this->state();
  PlanReport report;
  if (state.shape.batch == 0) {
    report.unplanned_rows = state.shape.total_q;
    return report;
  }
  abi::PlanHeader header;
  state.read(&header, 0, sizeof header);
  report.unsorted = static_cast<std::int64_t>(header.unsorted.count);
  report.count = static_cast<std::int64_t>(header.faults) + report.unsorted;
  report.unplanned_rows = state.shape.total_q - header.end_of_q;
  if (report.count == 0) return report;
  if (header.faults == 0) {
    report.first = state.promised.value_of(header.unsorted);
    return report;
  }
  abi::PlannedSequence sequence;
  state.read(&sequence,
             static_cast<std::size_t>(state.geometry.layout.sequences) +
                 static_cast<std::size_t>(header.first_faulty) * sizeof sequence,
             sizeof sequence);
  const abi::PlanFault& fault = sequence.fault;
  report.first = {.kind = static_cast<PlanReport::Kind>(fault.kind - 1),
                  .sequence = header.first_faulty,
                  .place = fault.place,
                  .value = fault.value,
                  .limit = fault.limit};
  if (report.first->kind == PlanReport::Kind::page_table) {
    report.first->place += sequence.page_begin;
    if (!state.sequences.page_begin) {
      report.first->place = fault.place;
      report.first->row = header.first_faulty;
    }
  }
  return report;
}

std::string PlanReport::text() const {
  if (!first) return {};
  const std::int64_t clamped = count - unsorted;
  std::string text = describe(*first);
  if (clamped > 1) text += fmt::format(" ({} values were clamped)", clamped);
  if (unsorted > 1) text += fmt::format(" ({} elements are less than the one before)", unsorted);
  if (unsorted == 1 && clamped > 0) text += " (1 element is less than the one before)";
  return text;
}

}  // namespace tilewright
