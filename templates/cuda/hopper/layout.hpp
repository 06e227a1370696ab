#pragma once

#include "cuda/language.hpp"
#include "cuda/tile/fragment.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// Who owns which rows, and where everything lies in shared memory.
//
// A block has one warpgroup that brings tiles and kConsumers that compute; each of those owns 64
// rows of the q tile. Q lies in shared memory warpgroup by warpgroup, each [panels][64 rows][128
// bytes], so that a warpgroup may put its rows of the output over its rows of Q. A tile of K or V
// is [panels][kKvTile rows][128 bytes]; columns behind the head dimension are 0.

namespace tw_kernel {

constexpr int kWarpgroup = 128;  // threads
constexpr int kConsumers = kQTile / 64;
constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
static_assert(kQTile % 64 == 0, "a warpgroup owns 64 rows of q");
static_assert(kKvTile % 16 == 0 && kKvTile <= 256, "a product takes up to 256 columns");
// Named barriers: 0 is __syncthreads(), 1 to kConsumers are turns, then each warpgroup has its own.
constexpr int kOwnBarrier = 1 + kConsumers;
constexpr bool kExactSoftmax = false;  // see softmax.hpp

// Registers of a thread. At launch all threads have alike. More than a multiprocessor has would wait for
// ever.
constexpr int kProducerRegisters = kConsumers == 1 ? 56 : kConsumers == 2 ? 40 : 32;
constexpr int kConsumerRegisters = kConsumers == 1 ? 240 : kConsumers == 2 ? 232 : 160;
static_assert((kProducerRegisters + kConsumers * kConsumerRegisters) * kWarpgroup <= 65536);

constexpr int panels(int columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}
constexpr int kHeadPanels = panels(kHeadDim);
constexpr int kValuePanels = panels(kValueDim);
constexpr int kValuePad = (kValueDim + 15) / 16 * 16;

constexpr int kBoxBytes = 64 * kPanelRowBytes;  // 64 rows of a panel
constexpr int kQGroupPanels =
    kStoresBoxes && kOutOverQ && kValuePanels > kHeadPanels ? kValuePanels : kHeadPanels;
constexpr int kQGroupBytes = kQGroupPanels * kBoxBytes;
constexpr int kOutGroupBytes = kStoresBoxes && !kOutOverQ ? kValuePanels * kBoxBytes : 0;
constexpr int kPanelBytes = kKvTile * kPanelRowBytes;
constexpr int kKBytes = kHeadPanels * kPanelBytes;
constexpr int kVBytes = kValuePanels * kPanelBytes;

constexpr int kQOffset = 0;
constexpr int kKOffset = kQOffset + kQStages * kConsumers * kQGroupBytes;
constexpr int kVOffset = kKOffset + kStages * kKBytes;
constexpr int kOutOffset = kVOffset + kStages * kVBytes;
constexpr int kControlOffset = kOutOffset + kConsumers * kOutGroupBytes;

// Of a thread: see fragment.hpp. A warp owns 16 rows.
constexpr int kRows = 2;
constexpr int kColumns = kKvTile / 4;
constexpr int kOutColumns = kValuePad / 4;

TW_INLINE unsigned lane() {
  return threadIdx.x % 32;
}
// Among the threads that compute.
TW_INLINE unsigned consumer_thread() {
  return threadIdx.x - kWarpgroup;
}
TW_INLINE constexpr int row_offset(int i) {
  return i * 8;
}
TW_INLINE int row_of(int i) {
  const unsigned thread = consumer_thread();
  return static_cast<int>(thread / 32 * 16 + thread % 32 / 4) + row_offset(i);
}
TW_INLINE int column_of(int j) {
  return static_cast<int>(lane() % 4 * 2) + column_offset(j);
}
TW_INLINE int out_column_of(int j) {
  return column_of(j);
}

}  // namespace tw_kernel
