#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "cpu/mask/evaluate.hpp"
#include "kernel/configuration.hpp"
#include "mask/tile_range.hpp"
#include "snippet/snippets.hpp"

// One row of tiles as runs of tiles in the same state. Spans of 8^k tiles are proved at once; one
// that cannot be is cut into eighths, down to single tiles, which are evaluated.

namespace tw_kernel {

class RowLister {
 public:
  TW_MEMBER RowLister(const SnippetArguments& arguments, const RowPlace& place, int q_block,
                      unsigned* runs)
      : arguments_(arguments),
        place_(place),
        first_row_(q_block * kBlockQ),
        kv_blocks_((arguments.kv_len - 1) / kBlockKv + 1),
        exact_(tw_snippet::tw_make_state(arguments)),
        runs_(runs) {}

  // prove: from TileRange to Proof
  template <typename Prove>
  TW_MEMBER void list(const Prove& prove) {
    int span = 1;
    while (span < kv_blocks_) span *= kFan;
    int first = 0;
    while (first < kv_blocks_) {
      const int count = span < kv_blocks_ - first ? span : kv_blocks_ - first;
      const TileRange range = range_of(first, count);
      const Proof proof = prove(range);
      if (proof == Proof::undecided && span > 1) {
        span /= kFan;
        continue;
      }
      first += count;
      append(first, proof == Proof::full    ? tilewright::abi::kTileFull
                    : proof == Proof::empty ? tilewright::abi::kTileEmpty
                                            : evaluate(range));
      // Back to the greatest span that begins here.
      while (span < kv_blocks_ && first % (span * static_cast<long long>(kFan)) == 0) span *= kFan;
    }
  }

  // Each tile by evaluation.
  TW_MEMBER void evaluate_all() {
    for (int tile = 0; tile < kv_blocks_; ++tile) append(tile + 1, evaluate(range_of(tile, 1)));
  }

  TW_MEMBER int count() const { return count_; }
  TW_MEMBER long long evaluated() const { return evaluated_; }

 private:
  static constexpr int kFan = 8;

  TW_MEMBER TileRange range_of(int first_tile, int tiles) const {
    const int first_column = first_tile * kBlockKv;
    const int rows_left = arguments_.q_len - first_row_;
    const long long columns = static_cast<long long>(tiles) * kBlockKv;
    const int columns_left = arguments_.kv_len - first_column;
    return {first_row_ + arguments_.q_offset, rows_left < kBlockQ ? rows_left : kBlockQ,
            first_column + arguments_.kv_offset,
            columns < columns_left ? static_cast<int>(columns) : columns_left};
  }

  TW_MEMBER TileState evaluate(const TileRange& tile) {
    ++evaluated_;
    return evaluate_tile(exact_, place_, tile);
  }

  TW_MEMBER void append(int end, TileState state) {
    if (count_ > 0 && (runs_[count_ - 1] & 3u) == static_cast<unsigned>(state)) --count_;
    runs_[count_++] = static_cast<unsigned>(end) << 2 | static_cast<unsigned>(state);
  }

  const SnippetArguments& arguments_;
  RowPlace place_;
  int first_row_;
  int kv_blocks_;
  tw_snippet::tw_State exact_;
  unsigned* runs_;
  int count_ = 0;
  long long evaluated_ = 0;
};

}  // namespace tw_kernel
