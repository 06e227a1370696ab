// The matrix products on tensor cores, for 16-bit elements. A warp owns kRowTiles x 16 rows of q and
// all columns; K, V and Q are read from shared memory with ldmatrix, P goes from the scores' registers
// straight into the second product.
//
//   S[q][kv] = sum over d of Q[q][d] K[kv][d]        O[q][dv] += sum over kv of P[q][kv] V[kv][dv]
//
// Needs: kHeadDim, kValueDim, kQTile, kKvTile, kRowTiles, kWarps, kQInRegisters, QElement (= KvElement).

namespace tw_kernel {

constexpr int kThreads = kWarps * 32;
constexpr int kHeadPad = (kHeadDim + 15) / 16 * 16;  // padded with zeros to whole steps
constexpr int kValuePad = (kValueDim + 15) / 16 * 16;
static_assert(kQTile == kWarps * kRowTiles * 16, "a warp owns kRowTiles tiles of 16 rows");
static_assert(kKvTile % 16 == 0, "a kv tile is a whole number of steps");

// Of a thread: see mma.hpp.
constexpr int kRows = 2 * kRowTiles;
constexpr int kColumns = kKvTile / 4;
constexpr int kOutColumns = kValuePad / 4;

TW_INLINE int lane() { return threadIdx.x % 32; }
TW_INLINE int warp_row() { return threadIdx.x / 32 * (kRowTiles * 16); }
TW_INLINE int row_of(int i) { return warp_row() + i / 2 * 16 + i % 2 * 8 + lane() / 4; }
TW_INLINE int column_of(int j) { return j / 2 * 8 + lane() % 4 * 2 + j % 2; }
// Two neighbouring columns from an even j on.
TW_INLINE int out_column_of(int j) { return column_of(j); }

// Four neighbouring lanes share a row.
TW_INLINE float reduce_row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
TW_INLINE float reduce_row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

using QKTile = SharedTile<kHeadPad>;
using VTile = SharedTile<kValuePad>;
constexpr int kQBytes = kQTile * kHeadPad * 2;
constexpr int kKBytes = kKvTile * kHeadPad * 2;
constexpr int kVBytes = kKvTile * kValuePad * 2;
constexpr int kPBytes = 0;

// Where this lane's rows begin in a tile, for each kind of fragment.
TW_INLINE unsigned q_fragment(unsigned q_tile) {
  return q_tile + QKTile::offset(warp_row() + lane() % 16, lane() / 16);
}
TW_INLINE unsigned k_fragment(unsigned k_tile) {
  return k_tile + QKTile::offset(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
}
TW_INLINE unsigned v_fragment(unsigned v_tile) {
  return v_tile + VTile::offset(lane() % 16, lane() / 16);
}

constexpr int kHeadSteps = kHeadPad / 16;

// The fragments of Q, of all kv tiles: in registers where there is room, else read anew for each.
class QFragments {
 public:
  // Q has arrived where it is kept in registers.
  __forceinline__ explicit QFragments(unsigned q_tile) : rows_(q_fragment(q_tile)) {
    if (!kQInRegisters) return;
#pragma unroll
    for (int step = 0; step < kHeadSteps; ++step) load(step, kept_[step]);
  }

  __forceinline__ void read(int step, unsigned (&q)[kRowTiles][4]) const {
    if (!kQInRegisters) return load(step, q);
#pragma unroll
    for (int i = 0; i < kRowTiles * 4; ++i) q[i / 4][i % 4] = kept_[step][i / 4][i % 4];
  }

 private:
  __forceinline__ void load(int step, unsigned (&q)[kRowTiles][4]) const {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      load_matrices(QKTile::advance(rows_, step) + i * 16 * kHeadPad * 2, q[i]);
    }
  }

  unsigned rows_;
  unsigned kept_[kHeadSteps][kRowTiles][4];
};

TW_INLINE void score_tile(const QFragments& q_fragments, unsigned k_tile,
                          float (&s)[kRows][kColumns]) {
  const unsigned k_rows = k_fragment(k_tile);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] = 0.0f;
  }
#pragma unroll
  for (int step = 0; step < kHeadSteps; ++step) {
    unsigned q[kRowTiles][4];
    q_fragments.read(step, q);
#pragma unroll
    for (int n = 0; n < kKvTile / 16; ++n) {
      unsigned k[4];
      load_matrices(QKTile::advance(k_rows, step) + n * 16 * kHeadPad * 2, k);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        float(&upper)[kColumns] = s[2 * i];
        float(&lower)[kColumns] = s[2 * i + 1];
        multiply_add<QElement>(upper[4 * n], upper[4 * n + 1], lower[4 * n], lower[4 * n + 1], q[i],
                               k[0], k[1]);
        multiply_add<QElement>(upper[4 * n + 2], upper[4 * n + 3], lower[4 * n + 2],
                               lower[4 * n + 3], q[i], k[2], k[3]);
      }
    }
  }
}

TW_INLINE void value_tile(unsigned, unsigned v_tile, const float (&p)[kRows][kColumns],
                          float (&out)[kRows][kOutColumns]) {
  const unsigned v_rows = v_fragment(v_tile);
#pragma unroll
  for (int step = 0; step < kKvTile / 16; ++step) {
    unsigned a[kRowTiles][4];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const float(&upper)[kColumns] = p[2 * i];
      const float(&lower)[kColumns] = p[2 * i + 1];
      a[i][0] = pack<QElement>(upper[4 * step], upper[4 * step + 1]);
      a[i][1] = pack<QElement>(lower[4 * step], lower[4 * step + 1]);
      a[i][2] = pack<QElement>(upper[4 * step + 2], upper[4 * step + 3]);
      a[i][3] = pack<QElement>(lower[4 * step + 2], lower[4 * step + 3]);
    }
#pragma unroll
    for (int n = 0; n < kValuePad / 16; ++n) {
      unsigned v[4];
      load_matrices_transposed(VTile::advance(v_rows, n) + step * 16 * kValuePad * 2, v);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        float(&upper)[kOutColumns] = out[2 * i];
        float(&lower)[kOutColumns] = out[2 * i + 1];
        multiply_add<QElement>(upper[4 * n], upper[4 * n + 1], lower[4 * n], lower[4 * n + 1], a[i],
                               v[0], v[1]);
        multiply_add<QElement>(upper[4 * n + 2], upper[4 * n + 3], lower[4 * n + 2],
                               lower[4 * n + 3], a[i], v[2], v[3]);
      }
    }
  }
}

}  // namespace tw_kernel
