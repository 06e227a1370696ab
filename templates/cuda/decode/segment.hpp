#pragma once

// What a block of threads works on at a time.

namespace tw_kernel {

// Units of one item that follow each other.
struct Segment {
  int b;
  int head;   // of k and v; of q where items are of one query head each
  int first;  // unit of the item
  int count;
  int units;  // of the item
  int begin;  // the item's first unit, of all
  __forceinline__ bool is_whole() const { return count == units; }
};

}  // namespace tw_kernel
