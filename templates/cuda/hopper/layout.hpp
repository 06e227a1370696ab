#pragma once

#include "cuda/float16.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// Who owns which rows, and where everything lies in shared memory.
//
// A block has one warpgroup that brings tiles and kConsumers that compute; each of those owns 64
// rows of the q tile. After them it may have one that prepares tiles. Q lies in shared memory
// warpgroup by warpgroup, each [panels][64 rows][128 bytes], so that a warpgroup may put its rows of
// the output over its rows of Q. A tile of K or V is [panels][kKvTile rows][128 bytes], or
// [kKvTile / 8][panels][8 rows][128 bytes] where a box brings several panels; columns past the head
// dimension are 0.
//
// Where kPreparesV, tiles of V come to separate places, as their elements lie in memory, and warps make
// operands of them; where kPreparesK, tiles of K too.

namespace tw_kernel {

constexpr int kConsumers = kQTile / 64;
constexpr int kThreads = (1 + kConsumers + kPreparingGroups) * kWarpgroup;
static_assert(kQTile % 64 == 0, "a warpgroup owns 64 rows of q");
static_assert(kKvTile % 16 == 0 && kKvTile <= 256, "a product takes up to 256 columns");
// Named barriers: 0 is __syncthreads(), 1 to kConsumers are turns, then each warpgroup has its own.
constexpr int kOwnBarrier = 1 + kConsumers;
constexpr bool kExactSoftmax = false;  // see softmax.hpp
constexpr int kWeightDigits = kDigits<WeightElement>;  // significant bits of a weight where it meets V
static_assert(!kHasFixedMax || kWeightDigits == kDigits<QElement>,
              "weights relative to a bound may all be too small for f16");
// Of 8 bits they are multiplied by 2^7, so that small ones are numbers of e4m3.
constexpr int kWeightExponent = sizeof(QElement) == 1 ? 7 : 0;

// Registers of a thread. At launch all threads have alike, a multiple of 8. More than these together would be waited
// for for ever.
constexpr bool kProducersWiden = kPreparesK && kPreparingGroups == 0;  // warps of the producer's warpgroup
// Accumulators and weights of three warpgroups, for which most of those threads' registers are needed.
constexpr bool kIsTight = 3 * kKvTile / 4 + (kValueDim + 15) / 16 * 8 > 124;
constexpr int kProducerRegisters = kConsumers == 1   ? 56
                                   : kConsumers == 2 ? (kWidensPages || kProducersWiden ? 56 : 40)
                                   : (kProducersWiden || kKeepsKv) && !kIsTight ? 56 : 32;
constexpr int kPreparerRegisters = 56;
constexpr int kConsumerRegisters = kConsumers == 1   ? 240
                                   : kConsumers == 2 ? (kProducersWiden         ? 224
                                                        : kPreparingGroups == 0 ? 232
                                                        : kWidensPages          ? 200 : 208)
                                   : (kProducersWiden || kKeepsKv) && !kIsTight ? 152 : 160;
constexpr int kRegistersAtLaunch = 65536 / kThreads / 8 * 8;
static_assert(kProducerRegisters + kPreparingGroups * kPreparerRegisters + kConsumers * kConsumerRegisters <=
              (1 + kConsumers + kPreparingGroups) * kRegistersAtLaunch);

// Of elements of so many bytes.
constexpr int panel_columns(int bytes) { return kPanelRowBytes / bytes; }
constexpr int panels(int columns, int bytes) {
  return (columns + panel_columns(bytes) - 1) / panel_columns(bytes);
}
constexpr int kQBytes = sizeof(QElement);    // of an element
constexpr int kKvBytes = sizeof(KvElement);  // likewise
constexpr int kHeadPanels = panels(kHeadDim, kQBytes);
constexpr int kValuePad = (kValueDim + 15) / 16 * 16;
constexpr int kOutPanels = panels(kValueDim, 2);
// Of tiles of K and V as the copy engine brings them.
constexpr int kBroughtKPanels = panels(kHeadDim, kKvBytes);
constexpr int kBroughtVPanels = panels(kValueDim, kKvBytes);

constexpr int kBoxBytes = 64 * kPanelRowBytes;  // 64 rows of a panel
constexpr int kQGroupPanels =
    kStoresBoxes && kOutOverQ && kOutPanels > kHeadPanels ? kOutPanels : kHeadPanels;
constexpr int kQGroupBytes = kQGroupPanels * kBoxBytes;
constexpr int kOutGroupBytes = kStoresBoxes && !kOutOverQ ? kOutPanels * kBoxBytes : 0;
constexpr int kPanelBytes = kKvTile * kPanelRowBytes;
// From a panel to the next, and from 8 rows to the next 8, of a tile whose boxes have so many panels.
constexpr int panel_distance(int box_panels) { return box_panels == 1 ? kPanelBytes : kRowGroupBytes; }
constexpr int group_distance(int box_panels) { return box_panels * kRowGroupBytes; }
// Panels that lie next to each other in tiles as products take them.
constexpr int kKTilePanels = kPreparesK ? 1 : kKBoxPanels;
constexpr int kVTilePanels = kPreparesV ? 1 : kVBoxPanels;
constexpr int kKBytes = kHeadPanels * kPanelBytes;
// Of 8 bits V lies transposed, a row of 128 bytes for each of its columns.
constexpr bool kTurnsV = kQBytes == 1;
static_assert(!kTurnsV || kKvTile <= kPanelRowBytes, "a column of V is a row of a panel");
constexpr int kVBytes =
    kTurnsV ? kValuePad * kPanelRowBytes : panels(kValueDim, kQBytes) * kPanelBytes;
constexpr int kBroughtKBytes = kPreparesK ? kBroughtKPanels * kPanelBytes : 0;
constexpr int kBroughtVBytes = kPreparesV ? kBroughtVPanels * kPanelBytes : 0;

constexpr int kQOffset = 0;
constexpr int kKOffset = kQOffset + kQStages * kConsumers * kQGroupBytes;
constexpr int kVOffset = kKOffset + kStages * kKBytes;
constexpr int kOutOffset = kVOffset + kStages * kVBytes;
constexpr int kBroughtKOffset = kOutOffset + kConsumers * kOutGroupBytes;
constexpr int kBroughtVOffset = kBroughtKOffset + kBroughtStages * kBroughtKBytes;
// A warp's values by the difference of indices lie in the place of its first panel of out, if it has one.
constexpr bool kDifferencesLieInOut = kDifferenceBytes == 0;
constexpr int kDifferencesOffset = kBroughtVOffset + kBroughtStages * kBroughtVBytes;
constexpr int kControlOffset = kDifferencesOffset + kDifferenceBytes;

// Of a thread: see fragment.hpp.
constexpr int kColumns = kKvTile / 4;
constexpr int kOutColumns = kValuePad / 4;
constexpr int kWeightWords = kColumns * kQBytes / 2;  // of P, registers

TW_INLINE int out_column_of(int j) {
  return column_of(j);
}

}  // namespace tw_kernel
