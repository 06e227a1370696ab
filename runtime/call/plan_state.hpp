#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "../../templates/abi/column_sequences.hpp"
#include "../../templates/abi/decode.hpp"
#include "../../templates/abi/plan.hpp"
#include "../api/block_mask.hpp"
#include "../api/plan.hpp"
#include "promised_order.hpp"
#include "resident_items.hpp"
#include "split_parts.hpp"

namespace tilewright {

/// The decode kernel of a spec on a device.
struct DecodeLaunch {
  int blocks = 0;              ///< of threads; 0: the spec has no decode kernel
  std::int64_t value_dim = 0;  ///< of the rows of a partial result
};

/// Tiles of a backward kernel that takes them from the plan; zeros where no kernel of a spec does.
struct BackwardTileSides {
  std::int64_t columns = 0;  ///< that a block of threads owns
  std::int64_t rows = 0;     ///< of q, of a tile
};

/// How the tiles of a spec's packed calls are laid out in a plan.
struct PlanGeometry {
  /// Sides of a tile. Without mask_mod there are no tiles, and block[0] is a row of the plan.
  std::array<std::int64_t, 2> block = {};
  int heads = 1;         ///< lists of the mask
  int rows = 0;          ///< of tiles of a head
  int spans_of_row = 0;  ///< 0 without mask_mod
  abi::PlanLayout layout = {};
  int decode_blocks = 0;  ///< DecodeLaunch::blocks: room for so many parts of decoded sequences
  int decode_lists = 0;   ///< abi::DecodeWork::lists
  int decode_q_len = 0;   ///< abi::PlanBounds::decode_q_len
  abi::DecodeLayout decode = {};
  int split_parts = 1;                ///< abi::SplitWork::parts of prefill, by the call's sizes
  std::int64_t split_partial = 0;     ///< where abi::SplitWork::partial begins, in bytes
  int resident_heads = 0;             ///< of an item of the kernel that keeps k and v; 0: not it
  int column_side = 0;                ///< rows of k of a tile of gradients; 0: the spec has none
  std::int64_t column_sequences = 0;  ///< where abi::ColumnSequences[column_tiles] begin, in bytes
  BackwardTileSides backward = {};
  std::int64_t planned_columns = 0;  ///< where abi::cuda::PlannedColumns begin, in bytes
  std::int64_t planned_rows = 0;     ///< likewise abi::cuda::PlannedRowTile
  std::int64_t shares_rows = 0;      ///< an int: whether sequences share rows of k
  std::int64_t bytes = 0;            ///< of all of the plan

  std::int64_t column_tiles(const PackedShape& shape) const {
    return column_side == 0 ? 0 : abi::column_tiles(shape.total_kv, column_side);
  }
  std::int64_t count_planned_columns(const PackedShape& shape) const;
  std::int64_t count_planned_rows(const PackedShape& shape) const;
};

/// What a Plan stands for.
struct PlanState {
  /// Of the Attention that made it. It lives as long as the plan, so no later Attention has it.
  std::shared_ptr<const int> identity = {};
  PackedShape shape;  ///< with its bounds filled in
  Sequences sequences;
  std::byte* memory = nullptr;  ///< the workspace
  PlanGeometry geometry;
  std::optional<BlockMask> positions = {};  ///< PlanOptions::positions
  PromisedOrder promised;                   ///< what the proofs of mask_mod rely on
  std::vector<double> mask_scalars;         ///< that mask_mod reads, as of the last build
  bool has_new_rows = false;                ///< Spec::kv_new
  bool counts_absent = false;               ///< PlanOptions::count_absent
  bool batch_invariant = false;             ///< PlanOptions::batch_invariant
  std::int64_t splits = 0;                  ///< PlanOptions::splits
  bool serves_backward = false;             ///< PlanOptions::backward
  bool was_built = false;
  /// Tiles that the last build evaluated element by element; none where the device does not count.
  std::optional<std::int64_t> tiles_evaluated = {};
  /// Copies bytes of the workspace to the host, after the last build.
  std::function<void(void* to, std::size_t offset, std::size_t bytes)> read;

  /// abi::SplitWork::parts of prefill. Parts depend on the call's sizes, and a row's bits on parts.
  int split_parts() const;
  /// Whether no sequence is left for prefill, whatever the device's lengths are. Where rows of
  /// tiles begin at positions, a sequence may have rows of two.
  bool decodes_all() const {
    return geometry.decode_blocks > 0 && !positions && shape.max_q_len <= geometry.decode_q_len &&
           shape.max_q_len <= geometry.block[0];
  }
  /// abi::DecodeWork::blocks.
  int decode_blocks() const;
  /// abi::DecodeWork::keeps_items_whole.
  bool keeps_items_whole() const { return batch_invariant || splits == 1; }
  /// PlanGeometry::resident_heads likewise.
  int resident_heads() const { return batch_invariant ? 0 : geometry.resident_heads; }

  abi::SequenceTensors tensors() const;
  abi::PlanBounds bounds() const;
  abi::PageBounds page_bounds() const;
  /// The pages of all sequences, as the snippets' arguments have them.
  abi::SequencePages pages() const;
};

/// The shape with max_q_len and max_kv_len filled in.
/// @param has_new_rows Spec::kv_new
PackedShape with_bounds(PackedShape shape, bool has_new_rows = false);

/// What decides which tiles a plan keeps.
struct TileSource {
  std::array<std::int64_t, 2> block = {};  ///< as PlanGeometry has it
  bool has_mask = false;
  bool per_head = false;      ///< mask_mod or lists of positions tell heads apart
  bool in_positions = false;  ///< rows of tiles begin at multiples of block[0] in q_idx
  DecodeLaunch decode = {};
  SplitLaunch split = {};
  ResidentLaunch resident = {};
  std::int64_t column_side = 0;  ///< as PlanGeometry has it
  BackwardTileSides backward = {};
};

PlanGeometry plan_geometry(const PackedShape& shape, const TileSource& source);

/// Checks the tensors of a plan.
/// @param shape as the caller gave it
/// @param has_new_rows Spec::kv_new
/// @throws Error with code tensor, usage
void require_sequences(const Sequences& sequences, const PackedShape& shape, bool has_new_rows);

}  // namespace tilewright
