// The snippets over a thread's scores of one tile.
//
// Needs: kRows, kColumns, row_of, row_offset, column_of, column_offset, kHasScoreMod, kHasMaskMod,
// tw_snippet.

namespace tw_kernel {

// What the snippets see of a call and a q tile.
struct Scene {
  tw_snippet::tw_State state;
  int b;
  int h;
  int h_kv;
  const Place* place;  // in shared memory
  int last_row;        // of the call
  int q_offset;
  int kv_offset;
  int kv_len;
};

TW_INLINE Scene make_scene(const SnippetArguments& call, const Task& task) {
  const Place& place = task.place;
  return {tw_snippet::tw_make_state(call), place.b,       place.h,        place.h_kv, &place,
          call.q_len - 1,                  call.q_offset, call.kv_offset, call.kv_len};
}

// q_idx of a thread's rows. Rows behind the last one are computed as if they were it, and not
// stored. Found again for every tile, see thread_number.
struct RowIndices {
  int q_idx[kRows];
};

TW_INLINE RowIndices find_row_indices(const Scene& scene) {
  RowIndices rows;
  const int row = scene.place->first_row + row_of(0);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    rows.q_idx[i] = min(row + row_offset(i), scene.last_row) + scene.q_offset;
  }
  return rows;
}

// A column behind kv_len is seen as the last one, so that no snippet reads behind its buffers.
TW_INLINE int kv_idx_of(const Scene& scene, int column) {
  return min(column, scene.kv_len - 1) + scene.kv_offset;
}

TW_INLINE void modify_scores(const Scene& scene, int first, float scale,
                             float (&s)[kRows][kColumns]) {
  const RowIndices rows = find_row_indices(scene);
  const int column = first + column_of(0);
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const int kv_idx = kv_idx_of(scene, column + column_offset(j));
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      s[i][j] = tw_snippet::tw_score_mod(scene.state, {}, s[i][j] * scale, scene.b, scene.h,
                                         scene.h_kv, rows.q_idx[i], kv_idx);
    }
  }
}

// Which elements of a tile take part: bit j of word i is for column j of row i. It needs no scores,
// so it is found while K is on its way. The loop over columns stays rolled: unrolled it would cost
// most of the compile time, and registers that the matrix products need.
struct Kept {
  unsigned word[kRows];
};
static_assert(kColumns <= 32, "a word of Kept holds a row");

TW_INLINE Kept evaluate_mask(const Scene& scene, int first) {
  const RowIndices rows = find_row_indices(scene);
  const int column = first + column_of(0);
  Kept kept = {};
#pragma unroll {{ mask_unroll }}
  for (int j = 0; j < kColumns; ++j) {
    const int kv_idx = kv_idx_of(scene, column + column_offset(j));
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool keep = tw_snippet::tw_mask_mod(scene.state, {}, scene.b, scene.h, scene.h_kv,
                                                rows.q_idx[i], kv_idx);
      kept.word[i] |= static_cast<unsigned>(keep) << j;
    }
  }
  return kept;
}

// Drops the columns behind kv_len.
TW_INLINE void bound_columns(const Scene& scene, int first, Kept& kept) {
  const int column = first + column_of(0);
  unsigned inside = 0;
#pragma unroll 1
  for (int j = 0; j < kColumns; ++j) {
    inside |= static_cast<unsigned>(column + column_offset(j) < scene.kv_len) << j;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) kept.word[i] &= inside;
}

TW_INLINE Kept find_kept(const Scene& scene, const KvTile& tile) {
  Kept kept;
  if (kHasMaskMod && tile.partial()) {
    kept = evaluate_mask(scene, tile.first());
  } else {
#pragma unroll
    for (int i = 0; i < kRows; ++i) kept.word[i] = ~0u;
  }
  if (tile.first() + kKvTile > scene.kv_len) bound_columns(scene, tile.first(), kept);
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
