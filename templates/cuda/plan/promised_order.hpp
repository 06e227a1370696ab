#pragma once

#include "abi/cuda_packed.hpp"
#include "abi/plan.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"

// Counts the elements that break a spec's promise of sorted rows: all threads of the launch read every
// element once.

namespace tw_kernel {

using tilewright::abi::PlanHeader;

// The elements of a buffer row by row. A dimension of stride 0 has the same row everywhere.
template <typename Element, typename Number, int kRank, typename Buffer>
class SortedRows {
 public:
  __forceinline__ explicit SortedRows(const Buffer& buffer) : buffer_(buffer) {}

  __forceinline__ int extent(int dim) const {
    return buffer_.stride[dim] == 0 ? 1 : buffer_.size[dim];
  }
  __forceinline__ long long elements() const {
    long long count = 1;
    for (int dim = 0; dim < kRank; ++dim) count *= extent(dim);
    return count;
  }
  __forceinline__ bool begins_row(long long place) const {
    return kRank == 1 ? place == 0 : place % extent(kRank - 1) == 0;
  }
  __forceinline__ Number operator[](long long place) const {
    long long offset = 0;
    for (int dim = kRank - 1; dim > 0; --dim) {
      offset += place % extent(dim) * buffer_.stride[dim];
      place /= extent(dim);
    }
    offset += place * buffer_.stride[0];
    const Element* const data = static_cast<const Element*>(buffer_.data);
    return static_cast<Number>(to_number(load_read_only(data + offset)));
  }

 private:
  const Buffer& buffer_;
};

// Adds what this thread finds in its share of the buffer.
template <typename Element, typename Number, int kRank, typename Buffer>
TW_INLINE void find_unsorted(const Buffer& buffer, int index, PlanHeader& header) {
  const SortedRows<Element, Number, kRank, Buffer> rows(buffer);
  const long long elements = rows.elements();
  constexpr int kThreads = tilewright::abi::cuda::kPlanThreads;
  const long long threads = static_cast<long long>(gridDim.x) * kThreads;
  unsigned long long count = 0;
  long long first = 0;
#pragma unroll 1
  for (long long place = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
       place < elements; place += threads) {
    if (rows.begins_row(place) || rows[place - 1] <= rows[place]) continue;
    if (count++ == 0) first = place;
  }
  if (count == 0) return;
  atomicAdd(&header.unsorted_found, count);
  atomicMax(&header.unsorted_first, ~tilewright::abi::unsorted_element(index, first));
}

// By one thread, after all others have looked: hands over what they found, and clears it for the next
// launch.
TW_INLINE void report_unsorted(PlanHeader& header) {
  header.unsorted.count = __ldcg(&header.unsorted_found);
  header.unsorted.first = ~__ldcg(&header.unsorted_first);
  header.unsorted_found = header.unsorted_first = 0;
}

// The values at the first of them, if it is in this buffer.
template <typename Element, typename Number, int kRank, typename Buffer>
TW_INLINE void report_values(const Buffer& buffer, int index, PlanHeader& header) {
  using namespace tilewright::abi;
  const UnsortedElements& found = header.unsorted;
  if (found.count == 0 || buffer_of_unsorted(found.first) != index) return;
  const SortedRows<Element, Number, kRank, Buffer> rows(buffer);
  const long long place = place_of_unsorted(found.first);
  header.unsorted.value = rows[place];
  header.unsorted.before = rows[place - 1];
}

}  // namespace tw_kernel
