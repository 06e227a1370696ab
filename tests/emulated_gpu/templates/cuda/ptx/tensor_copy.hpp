#pragma once

#include "abi/cuda_tensor_maps.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/tile/panel.hpp"

// In place of templates/cuda/ptx/tensor_copy.hpp, which says how a box lies in shared memory.

namespace tw_kernel {

using tilewright::abi::cuda::TensorMap;

TW_INLINE void prefetch_map(const TensorMap&) {}

// Where a box begins: column, row, and what the other dimensions have.
struct BoxBegin {
  std::int64_t index[5];
};

// Calls move(in shared memory, in global memory or null) for every element of a box.
template <typename Move>
TW_INLINE void for_each_chunk(const emulated::TensorMap& map, unsigned address,
                              const BoxBegin& begin, Move&& move) {
  for (unsigned r = 0; r < map.box_rows(); ++r) {
    BoxBegin row = begin;
    unsigned rest = r;
    for (unsigned d = 1; d < map.rank; rest /= map.box[d++]) row.index[d] += rest % map.box[d];
    for (unsigned chunk = 0; chunk < 8; ++chunk) {
      unsigned char* const shared =
          emulated::at_shared(address + r * 128 + (chunk ^ (address / 128 + r) % 8) * 16);
      const unsigned count = 16 / map.element_bytes;
      for (unsigned i = 0; i < count; ++i) {
        BoxBegin element = row;
        element.index[0] += chunk * count + i;
        move(shared + map.element_bytes * i, map.at(element.index));
      }
    }
  }
}

TW_INLINE emulated::TensorMap box_map(const TensorMap& map, unsigned rank, unsigned address) {
  if (address % 128 != 0) emulated_core->fail("a box does not begin at a multiple of 128 bytes");
  emulated::TensorMap known;
  std::memcpy(&known, &map, sizeof known);
  if (!known.is_made() || known.rank != rank ||
      known.box[0] * known.element_bytes != kPanelRowBytes)
    emulated_core->fail("no map of such boxes");
  return known;
}

TW_INLINE void bring_box(unsigned to, const emulated::TensorMap& map, unsigned barrier,
                         const BoxBegin& begin) {
  if (emulated::thread().block->has_unpublished_barriers) {
    emulated_core->fail("the copy engine is given a barrier that was not published");
  }
  emulated::thread().block->in_flight.push_back([=] {
    for_each_chunk(map, to, begin, [&](unsigned char* shared, const void* global) {
      if (global) std::memcpy(shared, global, map.element_bytes);
      if (!global) std::memset(shared, 0, map.element_bytes);
    });
    complete_bytes(barrier, map.box_rows() * kPanelRowBytes);
  });
}

TW_INLINE void load_box(unsigned to, const TensorMap& map, unsigned barrier, int column, int row,
                        int h, int b) {
  bring_box(to, box_map(map, 4, to), barrier, BoxBegin{.index = {column, row, h, b}});
}
TW_INLINE void load_box(unsigned to, const TensorMap& map, unsigned barrier, int column, int row,
                        int h, int begin, int turn) {
  bring_box(to, box_map(map, 5, to), barrier, BoxBegin{.index = {column, row, h, begin, turn}});
}

TW_INLINE void send_box(const emulated::TensorMap& map, unsigned from, const BoxBegin& begin) {
  if (!emulated::is_fenced(from, map.box_rows() * kPanelRowBytes)) {
    emulated_core->fail("the copy engine reads what was written and not fenced");
  }
  emulated::Thread& thread = emulated::thread();
  thread.stores.push_back([=, &thread] {
    for_each_chunk(map, from, begin, [&](unsigned char* shared, void* global) {
      if (global) std::memcpy(global, shared, map.element_bytes);
    });
    --thread.stores_in_flight;
  });
}

TW_INLINE void store_box(const TensorMap& map, unsigned from, int column, int row, int h, int b) {
  send_box(box_map(map, 4, from), from, BoxBegin{.index = {column, row, h, b}});
}
TW_INLINE void store_box(const TensorMap& map, unsigned from, int column, int row, int h, int begin,
                         int turn) {
  send_box(box_map(map, 5, from), from, BoxBegin{.index = {column, row, h, begin, turn}});
}

TW_INLINE void commit_stores() {
  emulated::Thread& thread = emulated::thread();
  for (emulated::Action& store : thread.stores) {
    ++thread.stores_in_flight;
    thread.block->in_flight.push_back(std::move(store));
  }
  thread.stores.clear();
}
TW_INLINE void wait_until_stores_read() {
  const emulated::Thread& thread = emulated::thread();
  emulated::wait_until("its stores", [&] { return thread.stores_in_flight == 0; });
}

TW_INLINE void fence_for_copies() {
  emulated::fence_copies();
}

}  // namespace tw_kernel
