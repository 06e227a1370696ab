// Classifies tiles: a warp evaluates mask_mod over the elements of one tile inside q_len x kv_len,
// until it has met one that is kept and one that is dropped. A block of threads handles the 16
// tiles that share a word of states.
//
// Needs: kBlockQ, kBlockKv, tw_snippet.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;
using tilewright::abi::cuda::kMaskThreads;
using tilewright::abi::cuda::kMaskTilesPerBlock;
using tilewright::abi::cuda::kTileEmpty;
using tilewright::abi::cuda::kTileFull;
using tilewright::abi::cuda::kTilePartial;
using tilewright::abi::cuda::MaskArguments;

struct MaskTile {
  tw_snippet::tw_State state;
  int b;
  int h;
  int h_kv;
  int first_q_idx;
  int first_kv_idx;
  int rows;
  int columns;
};

TW_INLINE bool keeps(const MaskTile& tile, int row, int column) {
  return tw_snippet::tw_mask_mod(tile.state, {}, tile.b, tile.h, tile.h_kv, tile.first_q_idx + row,
                                 tile.first_kv_idx + column);
}

// What a warp has met so far, the same in all its lanes.
struct Met {
  bool kept = false;
  bool dropped = false;
  __forceinline__ void add(bool keep, bool counts) {
    kept = kept || __any_sync(~0u, counts && keep);
    dropped = dropped || __any_sync(~0u, counts && !keep);
  }
  __forceinline__ bool both() const { return kept && dropped; }
};

// The four corners and 28 more elements all over the tile: where a mask changes along a line or at
// a boundary between documents, they prove most partial tiles partial.
TW_INLINE void try_few(const MaskTile& tile, int lane, Met& met) {
  const bool corner = lane < 4;
  const int row = corner ? lane / 2 * 31 : lane;
  const int column = corner ? lane % 2 * 31 : lane * 11 % 32;
  met.add(keeps(tile, row * (tile.rows - 1) / 31, column * (tile.columns - 1) / 31), true);
}

TW_INLINE void try_all(const MaskTile& tile, int lane, Met& met) {
#pragma unroll 1
  for (int row = 0; row < tile.rows && !met.both(); ++row) {
#pragma unroll 4
    for (int first = 0; first < kBlockKv; first += 32) {
      const int column = first + lane;
      met.add(keeps(tile, row, min(column, tile.columns - 1)), column < tile.columns);
    }
  }
}

TW_INLINE unsigned classify(const MaskTile& tile, int lane) {
  Met met;
  try_few(tile, lane, met);
  if (!met.both()) try_all(tile, lane, met);
  return met.both() ? kTilePartial : met.kept ? kTileFull : kTileEmpty;
}

// Grid: one block of threads for each word of states.
TW_INLINE void count_tiles(const MaskArguments& mask, const SnippetArguments& call) {
  __shared__ unsigned state_of_tile[kMaskTilesPerBlock];
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const long long row = blockIdx.x / mask.state_words;
  const int word = static_cast<int>(blockIdx.x - row * mask.state_words);

  MaskTile tile = {tw_snippet::tw_make_state(call)};
  const int head = static_cast<int>(row / mask.q_blocks);
  const int first_row = static_cast<int>(row % mask.q_blocks) * kBlockQ;
  tile.b = head / mask.heads;
  tile.h = head % mask.heads;
  tile.h_kv = tile.h / (call.num_q_heads / call.num_kv_heads);
  tile.first_q_idx = first_row + call.q_offset;
  tile.rows = min(kBlockQ, call.q_len - first_row);
  for (int i = warp; i < kMaskTilesPerBlock; i += kMaskThreads / 32) {
    const int block = word * kMaskTilesPerBlock + i;
    const int first_column = block * kBlockKv;
    tile.first_kv_idx = first_column + call.kv_offset;
    tile.columns = min(kBlockKv, call.kv_len - first_column);
    const unsigned state = block < mask.kv_blocks ? classify(tile, lane) : kTileEmpty;
    if (lane == 0) state_of_tile[i] = state;
  }
  __syncthreads();  // the states of all 16 tiles are there

  if (threadIdx.x != 0) return;
  unsigned states = 0;
  unsigned long long count = 0;
  for (int i = 0; i < kMaskTilesPerBlock; ++i) {
    states |= state_of_tile[i] << 2 * i;
    if (state_of_tile[i] == kTilePartial) count += 1;
    if (state_of_tile[i] == kTileFull) count += 1ull << 32;
  }
  mask.states[row * mask.state_words + word] = states;
  if (count != 0) atomicAdd(mask.counts + row, count);
}

}  // namespace tw_kernel
