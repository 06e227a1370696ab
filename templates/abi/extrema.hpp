#pragma once

// Tables of the least and greatest values in a buffer, which the interval interpretation of mask_mod reads
// instead of the buffer's elements. Shared by the runtime and all kernels of the mask's proved path.
//
// A table has one row for each index of the buffer's leading dimensions, in their order. In a row
// the last dimension is cut into runs, one entry each: {least, greatest}, two ints or two long
// longs. Then come the entries of runs of kExtremaFan runs, and those of runs of as many of these.

namespace tilewright::abi {

constexpr int kExtremaFan = 8;
constexpr int kExtremaLevels = 3;
constexpr int kMaxExtremaTables = 8;  // of a kernel

/// Elements in a run: the greatest power of two, up to 128, that is no longer than a tile's sides,
/// so that the elements of a tile are whole runs where the offsets are multiples of it too.
constexpr int extrema_run(int block_q, int block_kv) {
  int run = 16;
  while (run < 128 && 2 * run <= block_q && 2 * run <= block_kv) run *= 2;
  return run;
}

constexpr long long extrema_runs(long long extent, int run) { return (extent + run - 1) / run; }

/// Entries in a row of a table for a last dimension of `extent`.
constexpr long long extrema_per_row(long long extent, int run) {
  long long entries = 0;
  long long count = extrema_runs(extent, run);
  for (int level = 0; level < kExtremaLevels; ++level) {
    entries += count;
    count = extrema_runs(count, kExtremaFan);
  }
  return entries;
}

/// Where the tables are, in the order that the kernel has them.
struct ExtremaTables {
  void* entries[kMaxExtremaTables];
};

}  // namespace tilewright::abi
