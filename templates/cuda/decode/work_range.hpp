#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/decode.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/ptx/thread.hpp"
#include "kernel/configuration.hpp"
#include "kernel/decode_items.hpp"

// Which units of which items a block of threads has. Every warp finds them for itself, all lanes together.

namespace tw_kernel {

class WorkRange {
 public:
  __forceinline__ WorkRange(const ForwardArguments& arguments, const SnippetArguments& call)
      : work_(work_of(arguments)), items_(arguments, call) {
    const Probes probes(items_, 0, items_.entries());
    cuts_ = tilewright::abi::cut_units(probes.end(), work_.blocks);
    const int block = min(static_cast<int>(blockIdx.x), cuts_.blocks);
    next_ = cuts_.begin_of(block);
    end_ = cuts_.begin_of(min(block + 1, cuts_.blocks));
    if (next_ == end_) return;
    find_entry(next_, probes);
    if (work_.keeps_items_whole == 0) return;
    const Segment segment = segment_at(next_);
    if (segment.first > 0) next_ = segment.begin + segment.units;
  }

  // The next units; false where there are none.
  __forceinline__ bool take(Segment& segment) {
    if (next_ >= end_) return false;
    if (next_ >= entry_end_) find_entry(next_, Probes(items_, 0, items_.entries()));
    segment = segment_at(next_);
    segment.count = segment.units - segment.first;
    if (work_.keeps_items_whole == 0) segment.count = min(segment.count, end_ - next_);
    next_ += segment.count;
    return true;
  }

  __forceinline__ const tilewright::abi::UnitCuts& cuts() const { return cuts_; }

 private:
  // Units before 31 entries of a range, and before its end: a lane has one.
  class Probes {
   public:
    __forceinline__ Probes(const Items& items, int first, int count)
        : first_(first), step_((count + 30) / 31), count_(count) {
      at_ = min(static_cast<int>(thread_number<32>()) * step_, count);
      value_ = items.units_before(first + (thread_number<32>() == 31 ? count : at_));
    }
    __forceinline__ int end() const { return __shfl_sync(~0u, value_, 31); }
    // The last probe that has not more units before it.
    __forceinline__ int find(int unit) const {
      const bool begins = at_ < count_ && thread_number<32>() < 31 && value_ <= unit;
      return 31 - __clz(static_cast<int>(__ballot_sync(~0u, begins)));
    }
    __forceinline__ int first(int probe) const { return first_ + probe * step_; }
    __forceinline__ int count(int probe) const { return min(step_, count_ - probe * step_); }
    __forceinline__ int before(int probe) const { return __shfl_sync(~0u, value_, probe); }
    __forceinline__ int after(int probe) const {
      return (probe + 1) * step_ < count_ ? before(probe + 1) : end();
    }

   private:
    int first_, step_, count_;
    int at_;     // of this lane, from the first one on
    int value_;
  };

  // The last entry that has not more units before it.
  __forceinline__ void find_entry(int unit, Probes probes) {
#pragma unroll 1
    while (true) {
      const int probe = probes.find(unit);
      const int first = probes.first(probe), count = probes.count(probe);
      entry_begin_ = probes.before(probe);
      entry_end_ = probes.after(probe);
      entry_ = first;
      if (count == 1) return;
      probes = Probes(items_, first, count);
    }
  }

  __forceinline__ Segment segment_at(int unit) const {
    const unsigned in_entry = unit - entry_begin_;
    const unsigned units = static_cast<unsigned>(entry_end_ - entry_begin_) / items_.items_of_entry();
    const unsigned item = in_entry / units;
    Segment segment;
    items_.name(entry_, static_cast<int>(item), segment);
    segment.first = static_cast<int>(in_entry - item * units);
    segment.units = static_cast<int>(units);
    segment.begin = unit - segment.first;
    segment.count = 0;
    return segment;
  }

  const DecodeWork& work_;
  Items items_;
  tilewright::abi::UnitCuts cuts_;
  int next_, end_;
  int entry_ = 0;
  int entry_begin_ = 0, entry_end_ = 0;
};

}  // namespace tw_kernel
