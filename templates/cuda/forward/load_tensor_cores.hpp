// Rows of Q, K and V from global to shared memory, for tensor cores.
//
// Needs: kThreads, kAligned, SharedTile.

namespace tw_kernel {

// 8 elements one by one; zeros where there are none.
template <typename Element>
TW_INLINE void copy_elements(unsigned to, const Element* from, bool present) {
  unsigned pair[4] = {};
  if (present) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pair[i] = from[2 * i].bits | static_cast<unsigned>(from[2 * i + 1].bits) << 16;
    }
  }
  store_shared_16(to, pair[0], pair[1], pair[2], pair[3]);
}

// rows: [.][stride], of which the first `count` (of kRowCount) exist; the others, and columns from kDim
// to kPad, become zeros.
template <int kRowCount, int kDim, int kPad, typename Element>
TW_INLINE void load_tile(unsigned tile, const Element* rows, long long stride, int count) {
  using Tile = SharedTile<kPad>;
  constexpr int kTotal = kRowCount * Tile::kChunks;
  constexpr bool kWholeRows = kThreads % Tile::kChunks == 0;  // a thread stays in its column
  constexpr int kRowStep = kThreads / Tile::kChunks;
  const int thread = threadIdx.x;
  int row = thread / Tile::kChunks;
  const int chunk = thread % Tile::kChunks;
  const Element* from = rows + row * stride + chunk * 8;
  const long long step = kRowStep * stride;
#pragma unroll
  for (int i = 0; i < (kTotal + kThreads - 1) / kThreads; ++i) {
    const int id = i * kThreads + thread;
    const int to_row = kWholeRows ? row : id / Tile::kChunks;
    const int to_chunk = kWholeRows ? chunk : id % Tile::kChunks;
    if (!kWholeRows) from = rows + to_row * stride + to_chunk * 8;
    if (kTotal % kThreads == 0 || id < kTotal) {
      const bool present = to_row < count && (kDim == kPad || to_chunk < kDim / 8);
      const unsigned to = tile + Tile::offset(to_row, to_chunk);
      if (kAligned) {
        copy_async_16(to, from, present);
      } else {
        copy_elements(to, from, present);
      }
    }
    row += kRowStep;
    from += step;
  }
}

TW_INLINE void load_q(unsigned tile, const QElement* rows, long long stride, int count) {
  load_tile<kQTile, kHeadDim, kHeadPad>(tile, rows, stride, count);
}
TW_INLINE void load_k(unsigned tile, const KvElement* rows, long long stride, int count) {
  load_tile<kKvTile, kHeadDim, kHeadPad>(tile, rows, stride, count);
}
TW_INLINE void load_v(unsigned tile, const KvElement* rows, long long stride, int count) {
  load_tile<kKvTile, kValueDim, kValuePad>(tile, rows, stride, count);
}

}  // namespace tw_kernel
