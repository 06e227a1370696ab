#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/cache_policy.hpp"
#include "cuda/ptx/cp_async.hpp"

// Rows of K and V, copied with a policy of the L2 cache.

namespace tw_kernel {

template <typename Rows>
class StreamedRows {
 public:
  __forceinline__ StreamedRows(const Rows& rows, CachePolicy policy) : rows_(rows), policy_(policy) {}

  __forceinline__ auto from(int row, int column) const { return rows_.from(row, column); }
  __forceinline__ CachePolicy policy() const { return policy_; }

 private:
  const Rows& rows_;
  CachePolicy policy_;
};

template <typename Rows>
TW_INLINE void copy_chunk(const StreamedRows<Rows>& rows, unsigned to, const void* from, int bytes) {
  copy_async_up_to_16(to, from, bytes, rows.policy());
}

}  // namespace tw_kernel
