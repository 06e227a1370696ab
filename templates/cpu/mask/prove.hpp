#pragma once

#include "abi/cpu.hpp"
#include "abi/extrema.hpp"
#include "cpu/element.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"
#include "kernel/undecided.hpp"
#include "mask/prove_range.hpp"
#include "mask/tile_range.hpp"
#include "snippet/proved.hpp"

// Classifies tiles by the interval interpretation, many at a time.

namespace tw_kernel {


TW_NOINLINE Proof prove(const tw_proved::tw_State& state, const RowPlace& place,
                        const TileRange& range) {
  tw_proved::tw_met_undecided = false;
  const Proof proof = prove_range(state, place, range);
  return tw_proved::tw_met_undecided ? Proof::undecided : proof;
}

template <typename Number>
struct Extrema {
  Number least;
  Number greatest;

  TW_MEMBER void add(Extrema other) {
    least = other.least < least ? other.least : least;
    greatest = greatest < other.greatest ? other.greatest : greatest;
  }
};

// One row of a buffer's table. data: [extent] of the last dimension
template <typename Number, typename Element>
TW_INLINE void make_extrema(const Element* data, long long stride, long long extent,
                            Extrema<Number>* entries) {
  using namespace tilewright::abi;
  constexpr int kRun = extrema_run(kBlockQ, kBlockKv);
  long long count = extrema_runs(extent, kRun);
  for (long long run = 0; run < count; ++run) {
    const Number first = to_number(data[run * kRun * stride]);
    Extrema<Number> all = {first, first};
    const long long end = (run + 1) * kRun < extent ? (run + 1) * kRun : extent;
    for (long long i = run * kRun + 1; i < end; ++i) {
      const Number value = to_number(data[i * stride]);
      all.add({value, value});
    }
    entries[run] = all;
  }
  for (int level = 1; level < kExtremaLevels; ++level) {
    const Extrema<Number>* from = entries;
    const long long below = count;
    entries += count;
    count = extrema_runs(count, kExtremaFan);
    for (long long i = 0; i < count; ++i) {
      entries[i] = from[i * kExtremaFan];
      for (long long j = i * kExtremaFan + 1; j < (i + 1) * kExtremaFan && j < below; ++j) {
        entries[i].add(from[j]);
      }
    }
  }
}

// row: over the leading dimensions, of which the last changes fastest
template <typename Element, typename Number, int kRank>
TW_INLINE void make_table_row(const tilewright::abi::BufferArgument& buffer, void* table,
                              long long row) {
  constexpr int kRun = tilewright::abi::extrema_run(kBlockQ, kBlockKv);
  const long long extent = buffer.size[kRank - 1];
  long long offset = 0;
  long long rest = row;
  for (int dim = kRank - 2; dim >= 0; --dim) {
    offset += rest % buffer.size[dim] * buffer.stride[dim];
    rest /= buffer.size[dim];
  }
  make_extrema<Number>(
      static_cast<const Element*>(buffer.data) + offset, buffer.stride[kRank - 1], extent,
      static_cast<Extrema<Number>*>(table) + row * tilewright::abi::extrema_per_row(extent, kRun));
}

}  // namespace tw_kernel
