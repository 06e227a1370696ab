#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/products.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/convert_e4m3.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"
#include "kernel/scales.hpp"
#include "kernel/slope.hpp"
#include "kernel/store_out.hpp"
#include "kernel/tiles.hpp"
#include "snippet/snippets.hpp"

// A warpgroup that computes 64 rows of each q tile: an online softmax over the kv tiles, in which
// the scores of a tile are multiplied while the values of the tile before are.

namespace tw_kernel {

// Lets one warpgroup after the other issue its products, so that the others' softmax runs
// meanwhile.
struct WarpgroupOrder {
  static __forceinline__ void start(int consumer) {
    if (kOrderedIssue && consumer == 0) arrive_named<2 * kWarpgroup>(1);
  }
  static __forceinline__ void wait_for_mine(int consumer) {
    if (kOrderedIssue) sync_named<2 * kWarpgroup>(1 + consumer);
  }
  static __forceinline__ void signal_next(int consumer) {
    if (kOrderedIssue) arrive_named<2 * kWarpgroup>(1 + (consumer + 1) % kConsumers);
  }
};

// A register of P, from a row's column j on.
template <typename Element>
TW_INLINE unsigned pack_word(const float (&s)[kColumns], int j) {
  if constexpr (sizeof(Element) == 1) return pack_e4m3(s[j], s[j + 1], s[j + 2], s[j + 3]);
  else return pack<Element>(s[j], s[j + 1]);
}

// P as the first operand of the second product: a score's accumulators are where that operand's
// elements must be, so nothing moves between lanes. Of 8 bits a lane's four neighbouring rows of V are those of its
// columns 0, 1, 8 and 9 of 16: V is turned to that order (turned_values.hpp).
TW_INLINE void pack_weights(const float (&s)[kRows][kColumns], unsigned (&p)[kWeightWords]) {
  constexpr int kOfWord = 4 / kQBytes;
#pragma unroll
  for (int j = 0; j < kColumns / kOfWord; ++j) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) p[2 * j + i] = pack_word<QElement>(s[i], kOfWord * j);
  }
}

// Tile: of Tiles.
template <typename Tile>
class Consumer {
 public:
  __forceinline__ Consumer(const ForwardArguments& arguments, const TensorMaps& maps,
                           const SnippetArguments& call, const Shared& shared, int number)
      : arguments_(arguments),
        maps_(maps),
        call_(call),
        shared_(shared),
        number_(number),
        q_(make_descriptor(shared.q(0, number), 0)),
        k_(make_descriptor(shared.k(0), 0, group_distance(kKTilePanels))),
        v_(make_descriptor(shared.v(0), panel_distance(kVTilePanels), group_distance(kVTilePanels))) {}

  __forceinline__ void run() {
    WarpgroupOrder::start(number_);
#pragma unroll 1
    while (compute()) q_place_.advance();
    if (kStoresBoxes) wait_until_stores_read();
  }

 private:
  // Tiles in which elements are dropped share the loop of all others, which saves a quarter of the compile
  // time for 1 % of the speed at most (decision 37). They have a separate loop where indices need
  // bounds there, and under a mask of narrow heads on tiles of 192 rows, where one loop costs 2 %.
  static constexpr bool kIsShort = kHeadDim <= 64 && kConsumers == 3 && kMasked && !kHasScoreMod;
  static constexpr bool kOneLoop = !kIsShort && !kBoundsIndices;

  // Whether score_mod's reads have bounds in tiles that need care, and in all of a q tile's where one may be
  // outside of its buffer. Under a mask, where tiles that need care are many, each tile is looked at.
  static constexpr bool kLoadsWithBounds = kHasLinearLoads && !kMasked && !kHasMaskMod;

  // Whether a warpgroup leaves out a q tile's first kv tiles while its 64 rows keep nothing of them: of
  // 192 rows under a causal mask the upper ones keep nothing of half a tile on average. The mask is
  // asked before the products then (decision 30).
  static constexpr bool kLeavesOut = kIsShort && kHasMaskMod && !kSpansTwoBlocks;

  // Without a block mask a mask_mod is asked about every element.
  static constexpr bool kAllMasked = kHasMaskMod && !kMasked;

  // The next q tile. False where there is none left.
  __forceinline__ bool compute() {
    Control& control = *shared_.control;
    const int q_stage = q_place_.q().stage();
    wait(shared_address(&control.q_full[q_stage]), q_place_.q().parity(), "Q, stage", q_stage);
    const WorkItem& work = control.work[q_place_.work()];
    if (work.kv_tiles == 0) return false;
    const bool has_rows = work.q_tile.first_row + number_ * 64 < work.q_tile.q_len(call_);
    if (!has_rows) {
      skip_tile(work.kv_tiles, control.q_empty[q_stage]);
      return true;
    }
    const tw_snippet::tw_Loads head_loads = load_for_head(call_, work.q_tile);
    const SnippetInputs inputs = snippet_inputs(call_, work.q_tile, head_loads);
    scales_ = find_scales(arguments_, inputs);
    if (kHasSlope) slope_ = find_slope(inputs, scale(), to_log2());
    if (kHasLinearLoads) loads_in_bounds_ = all_load_in_bounds(inputs);

    Softmax softmax = start_softmax();
    float out[kRows][kOutColumns] = {};
    const unsigned long long q = q_ + q_stage * (kConsumers * kQGroupBytes >> 4);
    unsigned long long& q_empty = control.q_empty[q_stage];
    RowEnds ends;
    if constexpr (kSpansTwoBlocks) {
      ends = visit_runs(inputs, q, q_empty, softmax, out);
    } else {
      ends = visit_all(inputs, q, work, q_empty, softmax, out);
    }
    store_out(arguments_, maps_, call_, shared_, work.q_tile, q_stage, number_, ends, out);
    if (kOutOverQ && kStoresBoxes) release(q_empty);
    return true;
  }

  // All kv tiles of the q tile, those that need care first.
  __forceinline__ RowEnds visit_all(const SnippetInputs& inputs, unsigned long long q, const WorkItem& work,
                                    unsigned long long& q_empty, Softmax& softmax,
                                    float (&out)[kRows][kOutColumns]) {
    const int kv_tiles = work.kv_tiles;
    const int masked_tiles = work.masked_tiles;
    unsigned p[kWeightWords];  // not set: zeros that live up to the first tile make ptxas spill
    KvPlace before;
    int i = 0;
    int left_out = 0;  // the first tiles; never all, as the last product needs one
    if (!kOneLoop) {
#pragma unroll 1
      for (; i < masked_tiles; ++i) {
        const bool may_leave_out = i == left_out && i + 1 < kv_tiles;
        if (!visit<!kBoundsIndices>(inputs, q, true, may_leave_out, i > left_out, before, softmax,
                                    out, p)) {
          ++left_out;
        }
      }
    }
#pragma unroll 1
    for (; i < kv_tiles; ++i) {
      const bool masked = kOneLoop && (kAllMasked || i < masked_tiles);
      visit<true>(inputs, q, masked, false, i > left_out, before, softmax, out, p);
    }
    if (!kOutOverQ || !kStoresBoxes) release(q_empty);
    return finish(inputs, before, softmax, out, p);
  }

  // Runs of kv tiles of which this warpgroup's rows have something. Between them, where no product is
  // under way, tiles are given back that only the others compute with.
  __forceinline__ RowEnds visit_runs(const SnippetInputs& inputs, unsigned long long q,
                                     unsigned long long& q_empty, Softmax& softmax,
                                     float (&out)[kRows][kOutColumns]) {
    mask_row_ = (inputs.q_tile->row_in_block(inputs.q_tile->first_row) + number_ * 64) / kBlockQ;
    is_last_ = false;
    RowEnds ends = end(inputs, softmax);
#pragma unroll 1
    while (find_run()) {
      unsigned p[kWeightWords];
      KvPlace before;
      bool has_before = false;
#pragma unroll 1
      do {
        visit<!kBoundsIndices>(inputs, q, true, false, has_before, before, softmax, out, p);
        has_before = true;
      } while (next_is(TileState::partial) || (kOneLoop && next_is(TileState::full)));
#pragma unroll 1
      while (!kOneLoop && next_is(TileState::full)) {
        visit<!kBoundsIndices>(inputs, q, false, false, true, before, softmax, out, p);
      }
      ends = finish(inputs, before, softmax, out, p);
    }
    if (!kOutOverQ || !kStoresBoxes) release(q_empty);
    return ends;
  }

  __forceinline__ bool next_is(TileState state) const {
    return next_ == static_cast<unsigned>(state);
  }

  // Whether there is another run, which begins with the tile at hand.
  __forceinline__ bool find_run() {
#pragma unroll 1
    while (!is_last_) {
      wait_for_k();
      const Tile tile = shared_.control->kv_tile[place_.stage];
      if (tile.state(mask_row_) != TileState::absent) return true;
      is_last_ = tile.is_last();
      pass_by_tile();
    }
    return false;
  }

  // The values of the last tile that was visited.
  __forceinline__ RowEnds finish(const SnippetInputs& inputs, const KvPlace& before, const Softmax& softmax,
                                 float (&out)[kRows][kOutColumns], unsigned (&p)[kWeightWords]) {
    wait_for_v(before);
    issue_values(out, p, v_ + before.stage * (kVBytes >> 4));
    const RowEnds ends = end(inputs, softmax);
    wait_for_values(out, p);
    release(shared_.control->v_empty[before.stage]);
    return ends;
  }

  // A score that is infinite as score_mod's text has it may be finite in the kernel's units. At the end
  // its row becomes what the text's is: NaN, or empty where the greatest is -infinity.
  __forceinline__ RowEnds end(const SnippetInputs& inputs, Softmax softmax) const {
    GreatestScores greatest = greatest_scores(softmax, to_log2());
    if (kHasSlope) greatest = unclamp_slope(inputs, slope_, scale(), softmax, greatest);
    if (kHasSlope || (kScalesResultsUp && !kHasFixedMax)) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (fabsf(greatest.value[i]) < kInfinity || fabsf(softmax.max[i]) == kInfinity) continue;
        softmax.sum[i] = greatest.value[i] < 0.0f ? 0.0f : greatest.value[i] - greatest.value[i];
      }
    }
    return end_rows(arguments_, call_, *inputs.q_tile, softmax, greatest);
  }

  // For a warpgroup none of whose rows exists: gives back what the others compute with.
  __forceinline__ void skip_tile(int kv_tiles, unsigned long long& q_empty) {
    bool is_last = false;
#pragma unroll 1
    for (int i = 0; !is_last; ++i) {
      wait_for_k();  // then it is known which tile it is
      is_last = Tiles::is_last(shared_.control->kv_tile[place_.stage], i, kv_tiles);
      pass_by_tile();
    }
    release(q_empty);
  }

  // A tile whose K is there, and with nothing to multiply by V of the tile before: as the places of V
  // are filled in turn, it would never be given back for that of this tile.
  __forceinline__ void pass_by_tile() {
    Control& control = *shared_.control;
    WarpgroupOrder::wait_for_mine(number_);
    WarpgroupOrder::signal_next(number_);
    release(control.k_empty[place_.stage]);
    wait_for_v(place_);
    release(control.v_empty[place_.stage]);
    place_.advance();
  }

  // kInside: no index needs bounds. q: the q tile's descriptor. masked: elements may be dropped, and rows
  // or columns may not exist; where kSpansTwoBlocks the tile says whether that is so. has_before: p holds the
  // weights of the tile before.
  // before: where V of the tile before is. It becomes this tile's place.
  // Returns false where it left the tile out, which it may not where has_before.
  template <bool kInside>
  __forceinline__ bool visit(const SnippetInputs& inputs, unsigned long long q, bool masked,
                             bool may_leave_out, bool has_before, KvPlace& before,
                             Softmax& softmax, float (&out)[kRows][kOutColumns],
                             unsigned (&p)[kWeightWords]) {
    Control& control = *shared_.control;
    const float to_log2 = this->to_log2();
    const int stage = place_.stage;
    wait_for_k();
    Kept kept;
    if (kLeavesOut && masked) {
      kept = find_kept(inputs, as_kv_tile(control.kv_tile[stage], mask_row_));
      const bool keeps = (kept.word[0] | kept.word[1]) != 0;
      if (may_leave_out && !any_of_warpgroup(kOwnBarrier + number_, keeps)) {
        pass_by_tile();
        return false;
      }
    }
    float s[kRows][kColumns];
    if (kHasSlope) start_scores(slope_, s);
    WarpgroupOrder::wait_for_mine(number_);
    issue_scores(s, q, k_ + stage * (kKBytes >> 4));
    if (has_before) {
      wait_for_v(before);
      issue_values(out, p, v_ + before.stage * (kVBytes >> 4));
    } else {
      issue_nothing();
    }
    WarpgroupOrder::signal_next(number_);

    const Tile visited = control.kv_tile[stage];
    if constexpr (kSpansTwoBlocks) {
      next_ = static_cast<unsigned>(visited.state_in_next(mask_row_));
      asm volatile("" : "+r"(next_));  // found here, where the scores are waited for
      is_last_ = visited.is_last();
      masked = masked && (visited.state(mask_row_) == TileState::partial ||
                            visited.first() + kKvTile > inputs.q_tile->kv_len(call_));
    }
    const KvTile tile = as_kv_tile(visited, mask_row_);
    if (kHasMaskMod && masked && !kLeavesOut) kept = find_kept(inputs, tile);
    const bool loads_in_bounds =
        kLoadsWithBounds ? !masked && loads_in_bounds_
                       : kHasLinearLoads && tile_loads_in_bounds(inputs, tile.first());
    wait_for_scores(s);
    release(control.k_empty[stage]);
    scale_scores(inputs, scales_, tile.first(), s);
    float shift = 0.0f;
    if (kHasSlope) {
      shift = slope_shift(inputs, slope_, tile.first());
    } else if (kHasScoreMod) {
      const float scale = this->scale();
      if (loads_in_bounds) {
        modify_scores<kInside, true>(inputs, tile.first(), scale, s);
      } else {
        modify_scores<kInside>(inputs, tile.first(), scale, s);
      }
    } else if (scales_scores() && scale() != 1.0f) {  // what the exponent cannot take
      multiply_scores(scale(), s);
    }
    if (masked && !kHasFixedMax) drop(inputs, tile, kept, -kInfinity, s);
    float greatest[kRows];
    float alpha[kRows];
    const bool raises = exceeds_max(s, shift, softmax, to_log2, greatest);
    if (raises) raise_max(greatest, softmax, to_log2, alpha);
    float reference[kRows];
    find_references(softmax, shift, reference);
    if (raises) subtract_coarse(to_log2, reference, s);
    const float sum_before[kRows] = {softmax.sum[0], softmax.sum[1]};
    exponentiate(s, reference, softmax, to_log2);

    wait_for_values(out, p);
    if (has_before) release(control.v_empty[before.stage]);
    if (masked && kHasFixedMax) {
      // Here, as no maximum needs to know: score_mod and the exponentials stay one piece to be scheduled.
      drop(inputs, tile, kept, 0.0f, s);
      sum_weights(s, sum_before, softmax);
    }
    pack_weights(s, p);
    if (raises) rescale(alpha, out);
    before = place_;
    place_.advance();
    return true;
  }

  // Drops the elements of a tile that needs care. instead: what they become.
  static __forceinline__ void drop(const SnippetInputs& inputs, const KvTile& tile, const Kept& kept,
                                   float instead, float (&s)[kRows][kColumns]) {
    if (kHasMaskMod) {
      tw_kernel::drop(kept, instead, s);
    } else {
      drop_columns(inputs, tile.first(), instead, s);
    }
  }

  // The exponent of 2 that one unit of a score stands for: of q.k, where score_mod adds a slope.
  __forceinline__ float to_log2() const {
    const float of_result = scaling_of(arguments_, scales_).to_log2 * kResultFactor;
    return kHasSlope ? scale() * of_result : of_result;
  }
  __forceinline__ float scale() const {
    return scaling_of(arguments_, scales_).factor * kScoreFactor;
  }

  // Whether score_mod's reads stay inside its buffers at this warpgroup's rows: in a tile, and in all
  // tiles, or those that need no care. Else columns that do not exist and the tile of an empty row
  // (after the last) are among them.
  __forceinline__ bool all_load_in_bounds(const SnippetInputs& inputs) const {
    const long long kv_len = inputs.kv_len;
    return columns_load_in_bounds(inputs, 0, kLoadsWithBounds ? kv_len - 1 : kv_len + 2 * kKvTile);
  }
  __forceinline__ bool tile_loads_in_bounds(const SnippetInputs& inputs, int first) const {
    return loads_in_bounds_ || columns_load_in_bounds(inputs, first, first + kKvTile - 1);
  }
  // In 64 bits: rows and columns that do not exist may lie beyond 2^31.
  __forceinline__ bool columns_load_in_bounds(const SnippetInputs& inputs, long long first_column,
                                           long long last_column) const {
    const long long row =
        static_cast<long long>(inputs.q_tile->first_row) + number_ * 64 + inputs.q_offset;
    return tw_snippet::tw_loads_in_bounds(inputs.state, inputs.b, inputs.h, inputs.h_kv, row, row + 63,
                                       first_column + inputs.kv_offset,
                                       last_column + inputs.kv_offset);
  }

  __forceinline__ void wait_for_k() {
    wait(shared_address(&shared_.control->k_full[place_.stage]), place_.parity, "K, stage",
         place_.stage);
  }
  __forceinline__ void wait_for_v(const KvPlace& place) {
    wait(shared_address(&shared_.control->v_full[place.stage]), place.parity, "V, stage",
         place.stage);
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  const int number_;
  const unsigned long long q_;  // of the first stage, like the next two
  const unsigned long long k_;
  const unsigned long long v_;
  QPlace q_place_;
  Slope slope_;                // of the q tile
  Scales scales_;              // likewise
  bool loads_in_bounds_ = false;  // see all_load_in_bounds
  KvPlace place_;  // of the current tile, in the ring of K and in that of V
  // Where kSpansTwoBlocks:
  int mask_row_;   // of the q tile's two, in which this warpgroup's rows lie
  unsigned next_;  // a TileState: what it has of the next kv tile
  bool is_last_;   // whether there is no next one
};

}  // namespace tw_kernel
