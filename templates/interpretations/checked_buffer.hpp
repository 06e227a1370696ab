#pragma once

#include "abi/cpu.hpp"
#include "cpu/element.hpp"
#include "interpretations/checked.hpp"
#include "snippet/floating.hpp"

// Tensors of the checked interpretation: as snippet/buffer.hpp, and an index outside its extent is reported.

namespace tw_snippet {

// An index, with the line that it is used on: a default argument is evaluated where it is needed.
struct tw_Index {
  template <typename Number>
  tw_Index(Number i, int at = __builtin_LINE()) : line(at) {
    const auto number = +i;  // at least an int
    constexpr long long kMost = __LONG_LONG_MAX__;
    if constexpr (tw_is_floating<decltype(+i)>) {
      is_real = true;
      real = number;
      value = number != number ? 0 : number >= 0x1p63 ? kMost : number <= -0x1p63 ? -kMost - 1 : static_cast<long long>(number);
    } else {
      value = number > 0 && static_cast<unsigned long long>(number) > kMost ? kMost : static_cast<long long>(number);
    }
  }
  bool is_nan() const { return real != real; }

  long long value;  // the nearest one of a float, 0 of a NaN
  double real = 0;
  bool is_real = false;
  int line;
};

// As snippet/buffer.hpp, which says what the parameters are.
template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_Buffer {
 public:
  tw_Buffer(const tilewright::abi::BufferArgument& argument) : argument_(argument) {}

  Value operator[](tw_Index i) const requires(kRank == 1) { return load(offset(0, i)); }

  Value operator()() const requires(kRank == 0) { return load(0); }
  Value operator()(tw_Index i) const requires(kRank == 1) { return load(offset(0, i)); }
  Value operator()(tw_Index i, tw_Index j) const requires(kRank == 2) {
    return load(offset(0, i) + offset(1, j));
  }
  Value operator()(tw_Index i, tw_Index j, tw_Index k) const requires(kRank == 3) {
    return load(offset(0, i) + offset(1, j) + offset(2, k));
  }
  Value operator()(tw_Index i, tw_Index j, tw_Index k, tw_Index l) const requires(kRank == 4) {
    return load(offset(0, i) + offset(1, j) + offset(2, k) + offset(3, l));
  }
  Value operator()(tw_Index i, tw_Index j, tw_Index k, tw_Index l, tw_Index m) const
      requires(kRank == 5) {
    return load(offset(0, i) + offset(1, j) + offset(2, k) + offset(3, l) + offset(4, m));
  }

  int size(tw_Index dim) const {
    const long long inside = clamped(dim, kRank);
    if (inside != dim.value || dim.is_nan()) {
      report(Finding::dimension_out_of_range, dim, dim.value, kRank);
    }
    return static_cast<int>(argument_.size[inside]);
  }

  // What is read at a place of the snippet (generator/snippet/located_reads.hpp).
  tw_Buffer tw_at(int offset) const {
    tw_Buffer here = *this;
    here.offset_ = offset;
    return here;
  }

 private:
  void report(int kind, const tw_Index& i, long long first, long long second,
              int dimension = 0) const {
    Finding finding = {};
    finding.kind = kind;
    finding.line = i.line;
    finding.offset = offset_;
    finding.trusted = kTrusted;
    finding.operand[0] = first;
    finding.operand[1] = second;
    finding.dimension = dimension;
    finding.least = finding.greatest = i.value;
    tw_add_finding(finding);
  }

  static long long clamped(const tw_Index& i, long long extent) {
    return i.value < 0 ? 0 : i.value >= extent ? extent - 1 : i.value;
  }

  long long offset(int dim, const tw_Index& i) const {
    const long long extent = argument_.size[dim];
    const long long inside = clamped(i, extent);
    if (i.is_nan()) {
      report(Finding::index_not_a_number, i, 0, extent, dim);
    } else if (inside != i.value && i.is_real) {
      report(Finding::real_index_out_of_bounds, i, __builtin_bit_cast(long long, i.real), extent, dim);
    } else if (inside != i.value) {
      report(Finding::index_out_of_bounds, i, i.value, extent, dim);
    }
    return inside * argument_.stride[dim];
  }

  Value load(long long offset) const {
    const Element* data = static_cast<const Element*>(argument_.data);
    return static_cast<Value>(tw_kernel::to_number(data[offset]));
  }

  tilewright::abi::BufferArgument argument_;
  int offset_ = -1;
};

}  // namespace tw_snippet
