// The snippets over a thread's scores of one tile.
//
// Needs: kRows, kColumns, row_of, column_of, kHasScoreMod, kHasMaskMod, tw_snippet.

namespace tw_kernel {

// What the snippets see of a thread's rows. Rows behind the last one are computed as if they were it,
// and not stored.
struct Rows {
  tw_snippet::tw_State state;
  int b;
  int h;
  int h_kv;
  int q_idx[kRows];
  int kv_offset;
  int kv_len;
};

TW_INLINE Rows make_rows(const SnippetArguments& call, const Place& place) {
  Rows rows = {tw_snippet::tw_make_state(call), place.b, place.h, place.h_kv, {}, call.kv_offset,
               call.kv_len};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    rows.q_idx[i] = min(place.first_row + row_of(i), call.q_len - 1) + call.q_offset;
  }
  return rows;
}

// A column behind kv_len is seen as the last one, so that no snippet reads behind its buffers.
TW_INLINE int kv_idx_of(const Rows& rows, int column) {
  return min(column, rows.kv_len - 1) + rows.kv_offset;
}

TW_INLINE void modify_scores(const Rows& rows, int first, float scale,
                             float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const int kv_idx = kv_idx_of(rows, first + column_of(j));
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      s[i][j] = tw_snippet::tw_score_mod(rows.state, s[i][j] * scale, rows.b, rows.h, rows.h_kv,
                                         rows.q_idx[i], kv_idx);
    }
  }
}

// Which elements of a tile take part: bit j of word i is for column j of row i. It needs no scores, so
// it is found while K is on its way. The loop over columns stays rolled: unrolled it would cost most of
// the compile time, and registers that the matrix products need.
struct Kept {
  unsigned word[kRows];
};
static_assert(kColumns <= 32, "a word of Kept holds a row");

TW_INLINE Kept evaluate_mask(const Rows& rows, int first) {
  Kept kept = {};
#pragma unroll {{ mask_unroll }}
  for (int j = 0; j < kColumns; ++j) {
    const int kv_idx = kv_idx_of(rows, first + column_of(j));
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool keep = tw_snippet::tw_mask_mod(rows.state, rows.b, rows.h, rows.h_kv,
                                                rows.q_idx[i], kv_idx);
      kept.word[i] |= static_cast<unsigned>(keep) << j;
    }
  }
  return kept;
}

// Drops the columns behind kv_len.
TW_INLINE void bound_columns(const Rows& rows, int first, Kept& kept) {
  unsigned inside = 0;
#pragma unroll 1
  for (int j = 0; j < kColumns; ++j) {
    inside |= static_cast<unsigned>(first + column_of(j) < rows.kv_len) << j;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) kept.word[i] &= inside;
}

TW_INLINE Kept find_kept(const Rows& rows, const KvTile& tile) {
  Kept kept;
  if (kHasMaskMod && tile.partial) {
    kept = evaluate_mask(rows, tile.first);
  } else {
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept.word[i] = ~0u;
  }
  if (tile.first + kKvTile > rows.kv_len) bound_columns(rows, tile.first, kept);
  return kept;
}

TW_INLINE void drop_scores(const Kept& kept, float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      s[i][j] = (kept.word[i] >> j & 1u) != 0 ? s[i][j] : -kInfinity;
    }
  }
}

}  // namespace tw_kernel
