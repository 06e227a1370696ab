// Classifies tiles of a block mask by evaluating mask_mod on each of their elements.
//
// Needs: kBlockQ, kBlockKv, tw_snippet.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;
using tilewright::abi::TileState;

// What is known of a tile's elements.
struct Kept {
  bool some;
  bool all;
};

using ColumnReads = tw_snippet::tw_LaneReads<kBlockKv>;

// How many of the elements [first, first + count) of a row are kept. Lanes are columns here.
TW_INLINE int count_kept(const tw_snippet::tw_State& state, const ColumnReads& columns, int b,
                         int h, int h_kv, int q_idx, int first_kv_idx, int count) {
  const tw_snippet::tw_Reads row = tw_snippet::tw_read_shared(state, b, h, h_kv, q_idx, 0);
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const tw_snippet::tw_Reads reads = columns.with_lane(row, i);
    kept += tw_snippet::tw_mask_mod(state, reads, b, h, h_kv, q_idx, first_kv_idx + i) ? 1 : 0;
  }
  return kept;
}

// states: [ceil(kv_len / kBlockKv)] of one row of tiles. A tile counts inside q_len x kv_len.
TW_INLINE void classify_row(const SnippetArguments& arguments, int b, int h, int q_block,
                            TileState* states) {
  const tw_snippet::tw_State state = tw_snippet::tw_make_state(arguments);
  const int h_kv = h / (arguments.num_q_heads / arguments.num_kv_heads);
  const int first_row = q_block * kBlockQ;
  const int rows_left = arguments.q_len - first_row;
  const int rows = rows_left < kBlockQ ? rows_left : kBlockQ;
  for (int first = 0; first < arguments.kv_len; first += kBlockKv) {
    const int columns_left = arguments.kv_len - first;
    const int columns = columns_left < kBlockKv ? columns_left : kBlockKv;
    const int first_kv_idx = first + arguments.kv_offset;
    ColumnReads column_reads;
    for (int i = 0; i < columns; ++i) {
      column_reads.read(i, state, b, h, h_kv, 0, first_kv_idx + i);
    }
    Kept kept = {false, true};
    for (int row = 0; row < rows && (kept.all || !kept.some); ++row) {
      const int q_idx = first_row + row + arguments.q_offset;
      const int count = count_kept(state, column_reads, b, h, h_kv, q_idx, first_kv_idx, columns);
      kept.some |= count != 0;
      kept.all &= count == columns;
    }
    *states++ = kept.all ? tilewright::abi::kTileFull
                : kept.some ? tilewright::abi::kTilePartial
                            : tilewright::abi::kTileEmpty;
  }
}

}  // namespace tw_kernel
