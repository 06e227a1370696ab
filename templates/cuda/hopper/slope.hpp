// A score_mod of the form `score + slope * (kv_idx - q_idx)` whose slope names neither index, ALiBi.
// An element's term is then the slope times a constant, and the slope times the distance of the
// thread's first column from its first row, which is alike for all of its elements of a tile. The
// first part is where the product of Q and K starts from, in units of q.k, so that it is computed
// before the product and not between it and the softmax; the other part is left to the softmax.
//
// Needs: kSlopeSign, kMasked, kHasMaskMod, row_of, row_offset, column_of, column_offset, Scene.

namespace tw_kernel {

// A mask that is asked about every element leaves no registers for what a thread could keep of it.
constexpr bool kKeepsSlope = kMasked || !kHasMaskMod;

struct Slope {
  float per_column = 0.0f;  // in units of q.k
  int distance = 0;         // see find_distance; not set unless kKeepsSlope
};

// Of the thread's column 0 from its row 0, in the tile that begins with column 0.
TW_INLINE int find_distance(const Scene& scene) {
  const int q_idx = scene.place->first_row + row_of(0) + scene.q_offset;
  return column_of(0) + scene.kv_offset - q_idx;
}

// score_mod's text is the slope alone. scale: of scores, > 0.
TW_INLINE Slope find_slope(const Scene& scene, float scale) {
  const float slope =
      tw_snippet::tw_score_mod(scene.state, *scene.head_reads, 0.0f, scene.b, scene.h, scene.h_kv,
                               tw_snippet::tw_RowIndex{}, tw_snippet::tw_ColumnIndex{});
  const float per_column = kSlopeSign * slope / scale;
  if (!kKeepsSlope) return {per_column, 0};
  // As if it differed between lanes: ptxas moves a number that a warp has in common before every product
  // with it, 20 instructions a tile.
  return {fmaf(static_cast<float>(lane()), 0.0f, per_column), find_distance(scene)};
}

// What issue_scores adds q.k to.
TW_INLINE void start_scores(const Slope& slope, float (&s)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      s[i][j] = slope.per_column * static_cast<float>(column_offset(j) - row_offset(i));
    }
  }
}

// What each score of the tile that begins with column `first` is too small by.
TW_INLINE float slope_shift(const Scene& scene, const Slope& slope, int first) {
  const int distance = kKeepsSlope ? slope.distance : find_distance(scene);
  return slope.per_column * static_cast<float>(distance + first);
}

}  // namespace tw_kernel
