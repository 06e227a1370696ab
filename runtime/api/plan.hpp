#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "block_mask.hpp"
#include "sequences.hpp"
#include "stream.hpp"

namespace tilewright {

struct PlanState;

/// Where a plan is made.
struct PlanOptions {
  /// Memory of the plan, in any dtype: at least Attention::workspace_size bytes at a multiple of
  /// 256, on the device. It is the plan's until the last forward that uses it is done.
  TensorView workspace = {};
  Stream stream = nullptr;
  /// The bits of a row then depend on its own sequence, the spec, the target and the version alone,
  /// whatever other sequences the call has and whatever its bounds are. Without it a GPU cuts the
  /// columns of decoded sequences, and Hopper those of q tiles too, where the whole batch's work
  /// says; with it a call of few long sequences is slower, as one block of threads computes
  /// each head of a decoded sequence, and each q tile.
  bool batch_invariant = false;
  /// Into how many parts a GPU cuts the columns of each head of a decoded sequence, and of each q
  /// tile; 0: the sizes of the call say, and 1: none. More is a wish: a call takes at most as many
  /// parts as its workspace has room for, and as its sequences have columns for. Sequences of
  /// unequal lengths share the parts of all. CPUs and batch_invariant plans split nothing.
  std::int64_t splits = 0;
  /// Lists of tiles over positions, in place of what mask_mod decides; null: mask_mod does. Then
  /// rows of tiles of a sequence begin at multiples of block[0] in q_idx, and a row's list is the
  /// one of q_idx / block[0]. Rows with q_idx < 0 keep nothing. The plan keeps a copy, which shares
  /// the lists. They are for sequences up to their own lengths: rows at and after their q_len keep
  /// nothing, nor do tiles after their last column, and the plan's report names the sequence.
  /// Batch is 1, heads 1 or num_q_heads, offsets 0. Made by the block_mask of a dense Attention
  /// with the same mask_mod and block, or from lists with Attention::position_fingerprint. Lists on
  /// the host are copied to a GPU by the first plan there, which waits.
  const BlockMask* positions = nullptr;
  /// Counts entries of the page table that are neither a page nor -1 in the plan's report. Each
  /// build then reads the whole table; for tests and tools.
  bool count_absent = false;
  /// Of a spec with gradients: backward can use the plan too. It then also says which sequences
  /// each tile of rows of k has, for dk and dv.
  bool backward = false;
};

/// What was wrong with the contents of a plan's tensors when it was last built. Kernels clamp such
/// values, so that no content makes them touch other memory.
struct PlanReport {
  enum class Kind : std::uint8_t {
    q_begin,
    kv_begin,
    page_begin,
    kv_len,
    page_table,  ///< an entry that no page has, with PlanOptions::count_absent
    q_offset,
    kv_offset,
    position_rows,     ///< `value` is where the sequence's rows end, `limit` the rows of the lists
    position_columns,  ///< likewise
    unsorted,          ///< an element of a buffer that the spec promises to be sorted
    q_len,             ///< more rows of q than PackedShape::max_q_len; `place` is the sequence
  };

  struct Value {
    Kind kind;
    std::int64_t sequence;  ///< -1 if unsorted
    std::int64_t place;     ///< of the value in its tensor, row by row; of positions the sequence
    std::int64_t value;
    std::int64_t limit;        ///< that it exceeds; if unsorted the element before
    std::string element = {};  ///< if unsorted, as a snippet writes it: "doc[17]", "doc(0, 17)"
    /// Of a two-dimensional page_table, where `place` is a column.
    std::optional<std::int64_t> row = {};
  };

  /// Values that were clamped, sequences longer than their lists, and unsorted elements.
  std::int64_t count = 0;
  /// Of count: elements of buffers that the spec promises to be sorted and that are less than the
  /// one before. Such a plan may keep wrong tiles. Counted where mask_mod's proofs read the buffer.
  std::int64_t unsorted = 0;
  /// The first sequence's first, in the order of Kind (but kv_offset before q_offset, and q_len
  /// after q_begin); if there is none, the first unsorted element.
  std::optional<Value> first = {};
  /// Rows of q after the last sequence. They are allowed, and kernels leave them as they are.
  std::int64_t unplanned_rows = 0;

  /// "kv_len[2] is 5000, but there is room for 4096 (3 values were clamped)"; empty where count is
  /// 0.
  std::string text() const;
};

/// What the kernels of a step need of its sequences: clamped lengths, which tiles are visited, and
/// in which order. Made by Attention::plan; serves every layer whose calls have the same spec and
/// shape. Copies share the plan.
class Plan {
 public:
  const PackedShape& shape() const;

  /// Waits for the last build in its stream, and reads what it reported.
  /// @throws Error with code device
  PlanReport report() const;

  /// For the library itself.
  explicit Plan(std::shared_ptr<PlanState> state) : state_(std::move(state)) {}
  PlanState& state() const;

 private:
  std::shared_ptr<PlanState> state_;
};

}  // namespace tilewright
