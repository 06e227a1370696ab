#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/cache_policy.hpp"
#include "cuda/ptx/cp_async.hpp"

// Rows of K and V, whose lines may leave the L2 cache before all others.

namespace tw_kernel {

template <typename Rows>
class StreamedRows {
 public:
  __forceinline__ StreamedRows(const Rows& rows, bool go_first) : rows_(rows), go_first_(go_first) {}

  __forceinline__ auto from(int row, int column) const { return rows_.from(row, column); }
  __forceinline__ bool go_first() const { return go_first_; }

 private:
  const Rows& rows_;
  bool go_first_;
};

template <typename Rows>
TW_INLINE void copy_chunk(const StreamedRows<Rows>& rows, unsigned to, const void* from, int bytes) {
  copy_async_up_to_16(to, from, bytes, goes_first(), rows.go_first());
}

}  // namespace tw_kernel
