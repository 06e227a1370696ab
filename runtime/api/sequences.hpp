#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor.hpp"

namespace tilewright {

/// Where each sequence's rows lie in the tensors of a packed call. Contiguous i32 tensors of rank 1
/// unless said otherwise: device memory on a GPU, else on the host. Kernels read them, the host
/// never does. `batch` is PackedShape::batch.
struct Sequences {
  /// [batch + 1], rising: rows q_begin[b] .. q_begin[b + 1] of q and out. Equal neighbours: a
  /// sequence without rows, as padding of a captured graph.
  TensorView q_begin = {};
  /// [batch + 1] likewise of k and v, or [batch] with kv_len. Packed k and v need it.
  std::optional<TensorView> kv_begin = {};
  /// [batch]: columns of each sequence, from its first row of k on. Paged k and v need it.
  std::optional<TensorView> kv_len = {};
  /// Of paged k and v: numbers of the pages that the sequences' rows lie in, one after another:
  /// [batch, columns], or [entries] with page_begin. None: sequence b has page b alone (a static
  /// cache). -1 is a page that was freed: its rows are read as zeros. So are those of a number that
  /// no page has, which PlanOptions::count_absent counts. Entries after a sequence's last column
  /// are never read. Calls of forward read it too: it must not change until they are done.
  std::optional<TensorView> page_table = {};
  /// [batch], i32 or i64: element of page_table where a sequence's pages begin; or [batch + 1], and
  /// they end where the next one's begin. A two-dimensional page_table is then taken as flat.
  std::optional<TensorView> page_begin = {};
  /// [batch]: position of the first row: q_idx = row + q_offset. None: kv_offset + kv_len - q_len,
  /// so that the last row of q and the last column have the same position.
  std::optional<TensorView> q_offset = {};
  /// [batch]: position of the first column: kv_idx = column + kv_offset. None: 0.
  std::optional<TensorView> kv_offset = {};
};

/// The sizes of packed calls that share a plan. Lengths of sequences are not among them: they are
/// read on the device.
struct PackedShape {
  std::int64_t batch = 1;        ///< sequences
  std::int64_t num_q_heads = 1;  ///< a multiple of num_kv_heads
  std::int64_t num_kv_heads = 1;
  std::int64_t total_q = 0;    ///< rows of q, out and lse
  std::int64_t total_kv = 0;   ///< rows of k and v; of paged ones pages * page_size
  std::int64_t page_size = 0;  ///< rows of a page; 0 where k and v are packed
  /// A bound of each sequence's rows of q; 0: total_q. A longer sequence is cut and reported: its
  /// other rows of out and lse stay as they are. On a GPU a call whose sequences are all short
  /// enough to be decoded is one launch.
  std::int64_t max_q_len = 0;
  /// A bound of each sequence's columns; 0: total_kv. A longer sequence is cut and reported.
  std::int64_t max_kv_len = 0;

  /// Pages of a pool; 0 where k and v are packed.
  std::int64_t pages() const { return page_size == 0 ? 0 : total_kv / page_size; }

  /// "batch 3, heads 8/2, total_q 135, total_kv 1809", with page_size where there is one
  std::string describe() const;

  friend bool operator==(const PackedShape&, const PackedShape&) = default;
};

/// Refuses what no kernel can run: a negative size, one whose indices overflow an int, heads below
/// 1 or query heads that are no multiple of kv heads. batch and totals may be 0.
/// @throws Error with code tensor
void validate(const PackedShape& shape);

}  // namespace tilewright
