#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/ptx/bulk_copy.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/boxes.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"
#include "kernel/sequence.hpp"

// The warp that brings tiles: the block's K and V with the first ones.

namespace tw_kernel {

// Which tensor of HopperBackwardArguments::broadcast.
enum Loaded : int { kLoadedQ, kLoadedDo, kLoadedK, kLoadedV };

class Loader {
 public:
  __forceinline__ Loader(const HopperBackwardArguments& arguments, const BackwardMaps& maps,
                         const SnippetArguments& call, const Shared& shared, const OwnColumns& own)
      : arguments_(arguments), maps_(maps), call_(call), shared_(shared), own_(own) {}

  // All lanes of the warp.
  __forceinline__ void run() {
    Control& control = *shared_.control;
    unsigned parity = 0;
    if (lane() == 0) load_own();
#pragma unroll 1
    while (true) {
      wait(shared_address(&control.plan_full), parity, "a plan", 0);
      parity ^= 1;
      const PassingTile tile = control.plan[place_.plan];
      const float* const facts =
          arguments_.facts +
          number_of_tile(arguments_, call_, own_, tile.h, max(tile.rows.first(), 0)) * (2 * kKvTile);
      const Lse lse(facts, tile.rows.exists());
      const unsigned q_full = shared_address(&control.q_full[place_.stage]);
      wait(shared_address(&control.q_empty[place_.stage]), place_.parity ^ 1, "an empty place for Q, stage",
           place_.stage);
      __syncwarp();  // all lanes have read the plan
      if (lane() == 0) arrive(shared_address(&control.plan_asked));
      if (!tile.rows.exists()) {
        if (lane() == 0) {
          arrive(q_full);
          arrive(shared_address(&control.do_full[place_.stage]));  // a block without tiles waits for its V
        }
        break;
      }
      if (lane() == 0) load_q(tile, facts, q_full);
      load_dout(tile, lse.some_infinite());
      place_.advance();
    }
  }

 private:
  // A dimension that is broadcast has extent 1 in its map.
  __forceinline__ int index_in(Loaded tensor, tilewright::abi::cuda::Broadcast dimension, int index) const {
    const unsigned bit = dimension << tensor * tilewright::abi::cuda::kBroadcastBits;
    return (arguments_.broadcast & bit) != 0 ? 0 : index;
  }

  // Rows of one head, of all panels.
  template <int kRowCount, int kPanels>
  __forceinline__ void load(unsigned to, const TensorMap& map, Loaded tensor, unsigned full, BoxRow row,
                            int h) const {
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      load_rows(to + panel * kRowCount * kPanelRowBytes, map, full, panel * kPanelColumns, row,
                index_in(tensor, tilewright::abi::cuda::kOneHead, h),
                index_in(tensor, tilewright::abi::cuda::kOneBatch, own_.b));
    }
  }

  // Of a tile of q, and of the block's columns.
  __forceinline__ BoxRow q_row(const PassingTile& tile) const {
    const PlacedSequence sequence = own_.sequence();
    return box_row(sequence.q_begin(), sequence.q_len(call_), tile.rows.first());
  }
  __forceinline__ BoxRow kv_row() const {
    const PlacedSequence sequence = own_.sequence();
    return box_row(sequence.kv_begin(), sequence.kv_len(call_), own_.first);
  }

  // The block's K and V: they do not wait for a plan. K is counted with the first Q, V with the first dO.
  __forceinline__ void load_own() const {
    const unsigned q_full = shared_address(&shared_.control->q_full[0]);
    const unsigned do_full = shared_address(&shared_.control->do_full[0]);
    expect_bytes(q_full, kKeyPanels * kOwnPanelBytes);
    load<kQTile, kKeyPanels>(shared_.k(), maps_.k, kLoadedK, q_full, kv_row(), own_.h_kv);
    prefetch_map(maps_.q);
    prefetch_map(maps_.dout);
    expect_bytes(do_full, kValuePanels * kOwnPanelBytes);
    load<kQTile, kValuePanels>(shared_.v(), maps_.v, kLoadedV, do_full, kv_row(), own_.h_kv);
    prefetch_map(maps_.dk);
    prefetch_map(maps_.dv);
  }

  __forceinline__ void load_q(const PassingTile& tile, const float* facts, unsigned full) const {
    arrive_and_expect(full, kQBytes + 2 * kFactsBytes);
    load<kKvTile, kKeyPanels>(shared_.q(place_.stage), maps_.q, kLoadedQ, full, q_row(tile), tile.h);
    load_bytes(shared_.lse(place_.stage), facts, 2 * kFactsBytes, full);
  }

  // dO of a row with nothing kept counts as 0, whatever it holds: in a sum over rows, 0 * NaN would be NaN.
  __forceinline__ void load_dout(const PassingTile& tile, bool some_dead) const {
    Control& control = *shared_.control;
    const unsigned full = shared_address(&control.do_full[place_.stage]);
    const unsigned landed = some_dead ? shared_address(&control.do_landed) : full;
    wait(shared_address(&control.do_empty[place_.stage]), place_.parity ^ 1,
         "an empty place for dO, stage", place_.stage);
    if (lane() == 0) {
      arrive_and_expect(landed, kDoBytes);
      load<kKvTile, kValuePanels>(shared_.dout(place_.stage), maps_.dout, kLoadedDo, landed, q_row(tile), tile.h);
    }
    if (!some_dead) return;
    wait(landed, landed_parity_, "dO with rows to be cleared", 0);
    landed_parity_ ^= 1;
    wait(shared_address(&control.q_full[place_.stage]), place_.parity, "facts, stage", place_.stage);
    clear_dead_rows();
    fence_for_copies();
    __syncwarp();
    if (lane() == 0) arrive(full);
  }

  // lse of a tile's rows, from global memory while there is time. A row with nothing kept has +inf (prepare).
  class Lse {
   public:
    __forceinline__ Lse(const float* facts, bool exists) {
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) of_lane_[i] = exists ? __ldg(facts + i * 32 + lane()) : 0.0f;
    }
    __forceinline__ bool some_infinite() const {
      bool infinite = false;
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) infinite = infinite || of_lane_[i] == kInfinity;
      return __any_sync(~0u, infinite) != 0;
    }

   private:
    static constexpr int kOfLane = kKvTile / 32;
    float of_lane_[kOfLane];
  };

  __forceinline__ void clear_dead_rows() const {
    constexpr int kChunks = kPanelRowBytes / 16;
    const unsigned lse = shared_.lse(place_.stage), dout = shared_.dout(place_.stage);
#pragma unroll 1
    for (int id = static_cast<int>(lane()); id < kKvTile * kChunks; id += 32) {
      const int row = id / kChunks;
      if (load_shared(lse + tilewright::abi::cuda::fact_place(row) * 4) != kInfinity) continue;
#pragma unroll
      for (int panel = 0; panel < kValuePanels; ++panel) {
        store_shared_16(dout + panel * kTilePanelBytes + row * kPanelRowBytes + id % kChunks * 16, 0, 0, 0, 0);
      }
    }
  }

  const HopperBackwardArguments& arguments_;
  const BackwardMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  const OwnColumns own_;
  TilePlace place_;
  mutable unsigned landed_parity_ = 0;
};

}  // namespace tw_kernel
