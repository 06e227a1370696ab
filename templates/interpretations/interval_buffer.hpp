#pragma once

#include "abi/extrema.hpp"
#include "kernel/configuration.hpp"
#include "kernel/element.hpp"
#include "kernel/language.hpp"
#include "kernel/undecided.hpp"
#include "interpretations/interval.hpp"

// Tensors of the interval interpretation. A read over an interval of the last index gives the least and
// greatest value there: of a few elements read at once, of more from a table (abi/extrema.hpp),
// which may be those of a little more than asked for, or, in rows that the spec promises to be sorted,
// at the interval's ends. Over an interval of a leading index nothing is known. Indices are clamped as in the exact interpretation, and those of a trusted buffer too: a read that
// the snippet guards is done here in any case.

namespace tw_proved {

// TW_SEPARATE: how a function is compiled on its own where that saves time. TW_ROLLED: before a
// loop, that it is compiled as it stands where that does.
//
// The extent of a dimension, which is clamped as in the exact interpretation.
template <int kRank, typename Index>
TW_INLINE tw_Interval<int> tw_size_at(const long long* last, Index dim) {
  const tw_Interval<long long> at = tw_as<long long>(dim);
  if (!at.is_one()) return {};
  return static_cast<int>(last[tw_greater(0ll, tw_lesser(at.lo, kRank - 1ll))] + 1);
}

// What a read over more than a few elements is known by.
enum class RangeRead { unknown, table, ends };

// Element: in memory. Number: int or long long.
template <typename Element, typename Number, int kRank, RangeRead kRangeRead>
class tw_Buffer {
 public:
  template <typename Argument>
  TW_MEMBER tw_Buffer(const Argument& argument, const void* table)
      : data_(static_cast<const Element*>(argument.data)),
        table_(static_cast<const Extrema*>(table)) {
    for (int i = 0; i < kRank; ++i) {
      last_[i] = argument.size[i] - 1;
      stride_[i] = argument.stride[i];
    }
  }

  template <typename Index>
    requires(kRank == 1)
  TW_MEMBER tw_Interval<Number> operator[](Index i) const {
    return read(i);
  }
  template <typename... Indices>
    requires(sizeof...(Indices) == kRank)
  TW_MEMBER tw_Interval<Number> operator()(Indices... indices) const {
    return read(indices...);
  }

  // Not an int: `n > 1 && x / (n - 1)` would divide by 0 here, where both sides are computed.
  template <typename Index>
  TW_MEMBER tw_Interval<int> size(Index dim) const {
    return tw_size_at<kRank>(last_, dim);
  }

 private:
  struct Extrema {
    Number least;
    Number greatest;
  };
  static constexpr int kDirect = 4;  // elements that are read one by one

  template <typename... Indices>
  TW_MEMBER tw_Interval<Number> read(Indices... indices) const {
    if constexpr (kRank == 0) return at_offset(0);
    const tw_Interval<long long> index[kDims] = {tw_as<long long>(indices)...};
    long long row = 0;
    long long offset = 0;
    for (int dim = 0; dim < kRank; ++dim) {
      if (!index[dim].is_known) return {};
      const long long lo = inside(dim, index[dim].lo), hi = inside(dim, index[dim].hi);
      if (dim == kRank - 1) return read_last(row, offset, lo, hi);
      if (lo != hi) return {};
      row = row * (last_[dim] + 1) + lo;
      offset += lo * stride_[dim];
    }
    return {};
  }

  TW_MEMBER long long inside(int dim, long long index) const {
    return tw_greater(0ll, tw_lesser(index, last_[dim]));
  }

  TW_SEPARATE tw_Interval<Number> read_last(long long row, long long offset, long long lo,
                                          long long hi) const {
    if constexpr (kRangeRead == RangeRead::ends) {
      const Number first = at(offset, lo), last = at(offset, hi);
      // Rows that break the promise give an interval too.
      return {tw_lesser(first, last), tw_greater(first, last), true};
    }
    if (hi - lo < kDirect) {
      Number first = at(offset, lo);
      Extrema all = {first, first};
      TW_ROLLED
      for (long long i = lo + 1; i <= hi; ++i) {
        const Number value = at(offset, i);
        all = {tw_lesser(all.least, value), tw_greater(all.greatest, value)};
      }
      return {all.least, all.greatest, true};
    }
    if (kRangeRead != RangeRead::table) return {};
    return read_table(row, static_cast<int>(lo), static_cast<int>(hi));
  }

  // Few entries that cover the elements from lo to hi.
  TW_MEMBER tw_Interval<Number> read_table(long long row, int lo, int hi) const {
    using namespace tilewright::abi;
    constexpr int kRun = extrema_run(tw_kernel::kBlockQ, tw_kernel::kBlockKv);
    const long long extent = last_[kRank - 1] + 1;
    const Extrema* level = table_ + row * extrema_per_row(extent, kRun);
    int count = static_cast<int>(extrema_runs(extent, kRun));
    int first = lo / kRun, last = hi / kRun;
    TW_ROLLED
    for (int i = 1; i < kExtremaLevels && last - first >= kExtremaFan; ++i) {
      level += count;
      count = static_cast<int>(extrema_runs(count, kExtremaFan));
      first /= kExtremaFan;
      last /= kExtremaFan;
    }
    Extrema all = level[first];
    TW_ROLLED
    for (int i = first + 1; i <= last; ++i) {
      const Extrema entry = level[i];
      all = {tw_lesser(all.least, entry.least), tw_greater(all.greatest, entry.greatest)};
    }
    return {all.least, all.greatest, true};
  }

  TW_MEMBER Number at(long long offset, long long i) const {
    return at_offset(offset + i * stride_[kDims - 1]);
  }
  TW_MEMBER Number at_offset(long long offset) const {
    return static_cast<Number>(tw_kernel::to_number(data_[offset]));
  }

  static constexpr int kDims = kRank > 0 ? kRank : 1;  // C++ has no empty arrays

  const Element* data_;
  const Extrema* table_;
  long long last_[kDims];  // greatest index of each dimension
  long long stride_[kDims];
};

// Floats prove nothing, so they need not be read.
template <int kRank>
class tw_RealBuffer {
 public:
  template <typename Argument>
  TW_MEMBER tw_RealBuffer(const Argument& argument, const void*) {
    for (int i = 0; i < kRank; ++i) last_[i] = argument.size[i] - 1;
  }
  template <typename Index>
    requires(kRank == 1)
  TW_MEMBER tw_Real operator[](Index) const {
    return {};
  }
  template <typename... Indices>
    requires(sizeof...(Indices) == kRank)
  TW_MEMBER tw_Real operator()(Indices...) const {
    return {};
  }
  template <typename Index>
  TW_MEMBER tw_Interval<int> size(Index dim) const {
    return tw_size_at<kRank>(last_, dim);
  }

 private:
  long long last_[kRank > 0 ? kRank : 1];
};

}  // namespace tw_proved
