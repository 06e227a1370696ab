#pragma once

#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// Who owns what in the backward pass on Hopper, and where everything lies in shared memory.
//
// A block owns kQTile columns of one kv head, and tiles of kKvTile rows of q pass by, as in
// cuda/backward/sweep.hpp. One warpgroup brings tiles and takes dQ away; two compute, each the products of
// 64 of the columns:
//
//   S^T = K Q^T       dP^T = V dO^T       dV += P^T dO       dK += dX^T Q       (the warpgroup's rows)
//   dQ = dX K                             (over all columns: of the tile before, whose dX of both is there)
//
// Where a head dimension is above 128, dK and dV of 128 columns do not fit into registers. A block then owns 64
// columns; each warpgroup computes S^T and dP^T of half of a tile's rows of q, and its share of the head
// dimension of dV, dK and dQ from the P and dX of both.
//
// Tiles are [panels][rows][128 bytes] (tile/panel.hpp); dX is [2 panels, one of each warpgroup][kKvTile][128 bytes],
// or one panel, and after it one of P.
// The copy engine brings zeros for columns past the head dimension, and drops them where it stores.

namespace tw_kernel {

constexpr int kConsumers = 2;
constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kOwnRows = 64;  // columns of the call that a warpgroup owns: rows of S^T
constexpr bool kIsWide = kQTile == kOwnRows;  // warpgroups share the head dimension
static_assert(kIsWide || kQTile == kConsumers * kOwnRows, "a block owns 128 columns");
static_assert(kKvTile == 64 || kKvTile == 128, "a tile has a panel of S^T or two");
static_assert(!kIsWide || kKvTile == 64, "P and dX have a panel each");
static_assert(kHeadWidth <= kKeyTileDim && kValueWidth <= kValueTileDim, "a row fits a tile");
constexpr bool kExactSoftmax = false;  // see softmax.hpp

// Registers of a thread. Products, their operands and the accumulators of dK and dV take all that a
// warpgroup can have.
constexpr int kProducerRegisters = 24;
constexpr int kConsumerRegisters = 240;
static_assert((kProducerRegisters + kConsumers * kConsumerRegisters) * kWarpgroup <= 65536);

// Named barriers: 0 is __syncthreads(). Both warpgroups are there, with P and dX where they share the head dimension; of
// each warpgroup: its part of dQ is there, was taken away.
constexpr int kGradientsBarrier = 1;
constexpr int kDqFullBarrier = 2;
constexpr int kDqEmptyBarrier = kDqFullBarrier + kConsumers;
constexpr int kOwnBarrier = kDqEmptyBarrier + kConsumers;

constexpr int kPanelColumns = 64;  // of 16 bits
constexpr int kKeyPanels = kKeyTileDim / kPanelColumns;
constexpr int kValuePanels = kValueTileDim / kPanelColumns;
constexpr int kOwnPanelBytes = kQTile * kPanelRowBytes;  // of K and V
constexpr int kTilePanelBytes = kKvTile * kPanelRowBytes;  // of Q, dO and dX
constexpr int kQBytes = kKeyPanels * kTilePanelBytes;
constexpr int kDoBytes = kValuePanels * kTilePanelBytes;
constexpr int kGradientBytes = 2 * kTilePanelBytes;
constexpr int kDqBytes = kKvTile * kHeadWidth * 4;
constexpr int kFactsBytes = kKvTile * 4;  // lse, or delta, of a tile

constexpr int kKOffset = 0;
constexpr int kVOffset = kKOffset + kKeyPanels * kOwnPanelBytes;
constexpr int kQOffset = kVOffset + kValuePanels * kOwnPanelBytes;
constexpr int kDoOffset = kQOffset + kStages * kQBytes;
constexpr int kGradientOffset = kDoOffset + kStages * kDoBytes;
constexpr int kGradientStages = 2;  // a warpgroup writes the next dX while the other reads the last
constexpr int kDqOffset = kGradientOffset + kGradientStages * kGradientBytes;
constexpr int kFactsOffset = kDqOffset + (kIsWide ? 0 : kDqBytes);
constexpr int kDiagonalsOffset = kFactsOffset + kStages * 2 * kFactsBytes;
// Terms of a read by the difference of indices, see diagonals.hpp.
constexpr int kDiagonalRows = 64;
constexpr int kDiagonalPlaces = 8 * 9 + 2 * 7;
constexpr int kDiagonalPitch = 92;  // 12 modulo 16, and 4 more places at least
static_assert(kDiagonalPitch % 16 == 12 && kDiagonalPlaces + 4 <= kDiagonalPitch);
constexpr int kWarpDiagonalBytes = 8 * kDiagonalPitch * 4;
static_assert(kDiagonalReads <= 1, "they have one place");
constexpr int kDiagonalBytes = kDiagonalReads * kConsumers * 4 * kWarpDiagonalBytes;
// A thread's sums over a head's tiles, which there are no registers for: two of each read.
constexpr int kOwnSumsOffset = kDiagonalsOffset + kDiagonalBytes;
constexpr int kOwnSumBytes = kConsumers * kWarpgroup * 4;
// Sums over a warp's columns, of each row of a tile: while some are read, those of the next tile are written.
constexpr int kRowSumsOffset = kOwnSumsOffset + kOwnSums * kRows * kOwnSumBytes;
constexpr int kRowSumsBytes = kConsumers * 4 * kKvTile * 4;
// Of each warp: values by the difference of indices.
constexpr bool kDifferencesLieInOut = false;
constexpr int kDifferencesOffset = kRowSumsOffset + kRowReads * kGradientStages * kRowSumsBytes;
constexpr int kControlOffset = kDifferencesOffset + kDifferenceBytes;

// Of a thread: see fragment.hpp. A warp owns 16 rows of S^T, so "row" is a column of the call here, and
// "column" a row of q.
constexpr int kScoreRows = kIsWide ? kKvTile / kConsumers : kKvTile;  // of q, of a warpgroup's S^T
constexpr int kColumns = kScoreRows / 4;
constexpr int kColumnGroups = kColumns / 4;  // of 16 columns, of which a thread has 4: see fact_place
constexpr int kKeySums = kHeadWidth / 4;  // of dK
constexpr int kValueSums = kValueWidth / 4;  // of dV

// Where warpgroups share the head dimension: columns of dK and dQ, and of dV, that each owns.
TW_INLINE constexpr int key_share(int part) { return part == 0 ? kFirstKeyShare : kHeadWidth - kFirstKeyShare; }
TW_INLINE constexpr int value_share(int part) {
  return part == 0 ? kFirstValueShare : kValueWidth - kFirstValueShare;
}

// A warpgroup's part of dQ: of a tile with one panel half of the rows, else a panel, or its share.
constexpr bool kSplitsDqRows = !kIsWide && kKeyTileDim == 64;
static_assert(!kSplitsDqRows || kKvTile == 128, "a product has 64 rows");
constexpr int kDqColumns = 16;  // of a thread's row of it: 64 columns, where it is no share
constexpr int kDqPairs = kHeadWidth / 8;  // of a thread's row, of all columns
// The first part's; the second has what is left, where it is a separate panel.
constexpr int kDqPartPairs =
    kIsWide ? key_share(0) / 8 : kDqPairs < kDqColumns / 2 ? kDqPairs : kDqColumns / 2;
constexpr int kDqPairBytes = kWarpgroup * 16;  // of two rows of each thread
constexpr int kDqPartBytes = kDqPartPairs * kDqPairBytes;
TW_INLINE constexpr int dq_pairs(int part) {
  return kSplitsDqRows || part == 0 ? kDqPartPairs : kDqPairs - kDqPartPairs;
}

// Which element of a tile's part of dQ a thread's j-th pair of columns is. Sums in memory lie in the order
// [part][j][thread of the warpgroup][row, row + 8][2 columns].
struct DqPlace {
  int row;
  int column;
};
TW_INLINE DqPlace dq_place(int part, int pair, int thread) {
  return {(kSplitsDqRows ? part * 64 : 0) + thread / 32 * 16 + thread % 32 / 4,
          (kSplitsDqRows ? 0 : part * kDqPartPairs * 8) + pair * 8 + thread % 4 * 2};
}

}  // namespace tw_kernel
