#pragma once

#include "abi/cuda_mask.hpp"
#include "cuda/language.hpp"
#include "cuda/mask/evaluate.hpp"
#include "kernel/configuration.hpp"
#include "mask/tile_range.hpp"

// The states of one row of tiles, by one block of threads. The row is cut into chunks, and these
// into spans of 32 tiles: a thread proves a span; of a span that cannot be proved, a lane proves a
// tile; and a tile that cannot be proved is evaluated by a warp.

namespace tw_kernel {

using tilewright::abi::cuda::kMaskSpans;
using tilewright::abi::cuda::kMaskThreads;
using tilewright::abi::cuda::MaskArguments;
constexpr int kSpan = 32;
constexpr int kWarps = kMaskThreads / 32;
static_assert(kMaskSpans == kMaskThreads, "a thread has one span of a chunk");

// A bit for each tile of a span; a tile in neither is empty.
struct SpanStates {
  unsigned partial;
  unsigned full;
};

struct ChunkMemory {
  SpanStates spans[kMaskSpans];
  unsigned short open_spans[kMaskSpans];          // spans that were not proved, in order
  unsigned short open_tiles[kMaskSpans * kSpan];  // tiles of the chunk likewise, in any order
  int open_spans_of_warp[kWarps];
  int open_tile_count;
};

class Row {
 public:
  __forceinline__ Row(const MaskArguments& mask, const SnippetArguments& call, int row)
      : mask_(mask), call_(call) {
    const int head = row / mask.rows_of_head;
    row_of_head_ = row % mask.rows_of_head;
    place_.b = head / mask.heads;
    place_.h = head % mask.heads;
    place_.h_kv = place_.h / (call.num_q_heads / call.num_kv_heads);
  }

  // The states of the chunk's spans in memory.spans; returns the number of open ones.
  // saved: null, or the states of the open spans
  template <bool kProve>
  __forceinline__ int classify(ChunkMemory& memory, int chunk,
                               const unsigned long long* saved) const {
    const int open = prove_spans<kProve>(memory, chunk);
    if (open == 0) return 0;
    if (saved != nullptr) {
      if (threadIdx.x < open) {
        const unsigned long long states = saved[threadIdx.x];
        memory.spans[memory.open_spans[threadIdx.x]] = {static_cast<unsigned>(states),
                                                        static_cast<unsigned>(states >> 32)};
      }
    } else {
      prove_tiles<kProve>(memory, chunk, open);
      __syncthreads();  // open_tiles is complete
      evaluate_tiles(memory, chunk);
    }
    __syncthreads();  // spans are complete
    return open;
  }

 private:
  // Ends with all threads knowing open_spans.
  template <bool kProve>
  __forceinline__ int prove_spans(ChunkMemory& memory, int chunk) const {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int first = (chunk * kMaskSpans + static_cast<int>(threadIdx.x)) * kSpan;
    const int tiles = min(kSpan, mask_.columns - first);
    bool open = tiles > 0;
    SpanStates states = {0, 0};
    if constexpr (kProve) {
      if (tiles > 0) {
        const Proof proof = prove(mask_, call_, place_, range_of(first, tiles));
        open = proof == Proof::undecided;
        if (proof == Proof::full) states.full = ~0u >> (kSpan - tiles);
      }
    }
    memory.spans[threadIdx.x] = states;
    const unsigned open_lanes = __ballot_sync(~0u, open);
    if (lane == 0) memory.open_spans_of_warp[warp] = __popc(open_lanes);
    if (threadIdx.x == 0) memory.open_tile_count = 0;
    __syncthreads();  // open_spans_of_warp is complete
    int before = 0, count = 0;
#pragma unroll 1
    for (int i = 0; i < kWarps; ++i) {
      if (i < warp) before += memory.open_spans_of_warp[i];
      count += memory.open_spans_of_warp[i];
    }
    if (open) {
      memory.open_spans[before + __popc(open_lanes & ((1u << lane) - 1))] =
          static_cast<unsigned short>(threadIdx.x);
    }
    __syncthreads();  // open_spans is complete
    return count;
  }

  template <bool kProve>
  __forceinline__ void prove_tiles(ChunkMemory& memory, int chunk, int open_count) const {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int i = threadIdx.x / 32; i < open_count; i += kWarps) {
      const int span = memory.open_spans[i];
      const int tile = (chunk * kMaskSpans + span) * kSpan + lane;
      bool open = tile < mask_.columns;
      bool full = false;
      if constexpr (kProve) {
        if (open) {
          const Proof proof = prove(mask_, call_, place_, range_of(tile, 1));
          open = proof == Proof::undecided;
          full = proof == Proof::full;
        }
      }
      __syncwarp();
      const unsigned open_lanes = __ballot_sync(~0u, open);
      const unsigned full_lanes = __ballot_sync(~0u, full);
      int to = 0;
      if (lane == 0) {
        memory.spans[span] = {0, full_lanes};
        to = atomicAdd(&memory.open_tile_count, __popc(open_lanes));
      }
      to = __shfl_sync(~0u, to, 0);
      if (open) {
        memory.open_tiles[to + __popc(open_lanes & ((1u << lane) - 1))] =
            static_cast<unsigned short>(span * kSpan + lane);
      }
    }
  }

  __forceinline__ void evaluate_tiles(ChunkMemory& memory, int chunk) const {
    const int count = memory.open_tile_count;
#pragma unroll 1
    for (int i = threadIdx.x / 32; i < count; i += kWarps) {
      const int tile = memory.open_tiles[i];
      const Kept kept =
          evaluate_tile(call_, place_, range_of(chunk * kMaskSpans * kSpan + tile, 1));
      if (threadIdx.x % 32 != 0 || !kept.some) continue;
      SpanStates& span = memory.spans[tile / kSpan];
      atomicOr(kept.all ? &span.full : &span.partial, 1u << tile % kSpan);
    }
  }

  __forceinline__ TileRange range_of(int first_tile, int tiles) const {
    const bool down = mask_.transposed != 0;
    const Range along =
        part(first_tile, tiles, down ? kBlockQ : kBlockKv, down ? call_.q_len : call_.kv_len);
    const Range across =
        part(row_of_head_, 1, down ? kBlockKv : kBlockQ, down ? call_.kv_len : call_.q_len);
    const Range q = down ? along : across;
    const Range kv = down ? across : along;
    return {q.first + call_.q_offset, q.count, kv.first + call_.kv_offset, kv.count};
  }

  struct Range {
    int first;
    int count;
  };
  static __forceinline__ Range part(int first_tile, int tiles, int block, int length) {
    const int first = first_tile * block;
    const long long count = static_cast<long long>(tiles) * block;
    return {first, count < length - first ? static_cast<int>(count) : length - first};
  }

  const MaskArguments& mask_;
  const SnippetArguments& call_;
  RowPlace place_;
  int row_of_head_;
};

// Saves the states of a chunk's open spans, as far as there is room.
TW_INLINE void save_chunk(const MaskArguments& mask, const ChunkMemory& memory, long long place,
                          int open) {
  __shared__ long long saved_at;
  if (threadIdx.x == 0) {
    const long long at = open > 0 ? static_cast<long long>(atomicAdd(
                                        &mask.totals->saved, static_cast<unsigned long long>(open)))
                                  : 0;
    const bool has_room = at + open <= mask.saved_capacity;
    saved_at = has_room ? at : -1;
    mask.saved_begin[place] = has_room ? static_cast<int>(at) : -1;
  }
  __syncthreads();  // saved_at is there
  if (saved_at >= 0 && threadIdx.x < open) {
    const SpanStates states = memory.spans[memory.open_spans[threadIdx.x]];
    mask.saved[saved_at + threadIdx.x] =
        static_cast<unsigned long long>(states.full) << 32 | states.partial;
  }
}

}  // namespace tw_kernel
