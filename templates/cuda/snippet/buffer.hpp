#pragma once

#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "snippet/cell.hpp"
#include "snippet/floating.hpp"

// A tensor that a snippet reads, as in snippet/buffer.hpp, with what a GPU needs: loads through the
// read-only path, which the compiler may merge and move, and one multiplication of 32 x 32 bits for
// the last index.

namespace tw_snippet {

// A truth that comes from a buffer. Its && and || evaluate both sides, as overloaded operators do:
// were the right one evaluated only where the left one is true, every load in it would depend
// on its own branch, and could neither be hoisted out of a loop nor overlap with the next one.
struct tw_Truth {
  bool value;
  __forceinline__ operator bool() const { return value; }
};
TW_INLINE tw_Truth operator&&(tw_Truth a, tw_Truth b) {
  return {(a.value & b.value) != 0};
}
TW_INLINE tw_Truth operator&&(tw_Truth a, bool b) {
  return {(a.value & b) != 0};
}
TW_INLINE tw_Truth operator&&(bool a, tw_Truth b) {
  return {(a & b.value) != 0};
}
TW_INLINE tw_Truth operator||(tw_Truth a, tw_Truth b) {
  return {(a.value | b.value) != 0};
}
TW_INLINE tw_Truth operator||(tw_Truth a, bool b) {
  return {(a.value | b) != 0};
}
TW_INLINE tw_Truth operator||(bool a, tw_Truth b) {
  return {(a | b.value) != 0};
}
TW_INLINE tw_Truth operator!(tw_Truth a) {
  return {!a.value};
}

// A number from a buffer: the number itself in arithmetic, a tw_Truth when it is compared. Not where
// kLoadsAreNumbers: as a class it would become an int in `c ? x[i] : 0`.
template <typename Value>
struct tw_Loaded {
  Value value;
  __forceinline__ operator Value() const { return value; }
};
#define TW_COMPARE(op)                                         \
  template <typename A, typename B>                            \
  TW_INLINE tw_Truth operator op(tw_Loaded<A> a, tw_Loaded<B> b) { \
    return {a.value op b.value};                               \
  }                                                            \
  template <typename A, typename B>                            \
  TW_INLINE tw_Truth operator op(tw_Loaded<A> a, B b) {          \
    return {a.value op b};                                     \
  }                                                            \
  template <typename A, typename B>                            \
  TW_INLINE tw_Truth operator op(A a, tw_Loaded<B> b) {          \
    return {a op b.value};                                     \
  }
TW_COMPARE(==)
TW_COMPARE(!=)
TW_COMPARE(<)
TW_COMPARE(<=)
TW_COMPARE(>)
TW_COMPARE(>=)
#undef TW_COMPARE

// What reading a buffer gives. An index into a trusted buffer may be wrong where the snippet would
// not have evaluated it.
template <typename Value, bool kIsNumber>
struct tw_LoadedAs {
  using Type = tw_Loaded<Value>;
};
template <typename Value>
struct tw_LoadedAs<Value, true> {
  using Type = Value;
};

// An index as the sum of what a thread's elements share and of a constant, which becomes part of a
// load. index.hpp makes it of indices that are known to be such a sum.
struct tw_IndexSum {
  int base;
  int constant;
  __forceinline__ operator int() const { return base + constant; }
};
template <typename Index>
TW_INLINE tw_IndexSum tw_sum(Index i) {
  return {static_cast<int>(i), 0};
}

template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_InnerBuffer;

template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_Buffer {
 public:
  using Read = typename tw_LoadedAs<Value, kTrusted || tw_kernel::kLoadsAreNumbers>::Type;

  template <typename Argument>
  tw_Buffer(const Argument& argument)
      : data_(static_cast<const char*>(argument.data)),
        last_stride_(static_cast<int>(argument.stride[kDims - 1] * sizeof(Element))) {
    for (int i = 0; i < kRank; ++i) {
      last_[i] = argument.size[i] - 1;
      stride_[i] = argument.stride[i] * static_cast<long long>(sizeof(Element));
    }
  }

  template <typename Index>
  __forceinline__ Read operator[](Index i) const requires(kRank == 1) {
    return load(data_ + offset(0, i));
  }

  template <typename... Indices>
  __forceinline__ Read operator()(Indices... indices) const requires(sizeof...(Indices) == kRank) {
    // All but the last index are added to the base first, so that they are hoisted with it and stay
    // one value.
    const char* from = data_;
    int dim = 0;
    ((from = (dim == kRank - 1 ? tw_kernel::as_one_value(from) : from) + offset(dim, indices),
      ++dim),
     ...);
    return load(from);
  }

  // Extent of a dimension.
  template <typename Index>
  __forceinline__ int size(Index dim) const {
    return last_[tw_cell(dim, kRank - 1)] + 1;
  }

  // Whether these indices are inside, and a row's elements stand side by side.
  template <typename... Indices>
  __forceinline__ bool tw_holds(Indices... indices) const requires(sizeof...(Indices) == kRank) {
    bool holds = last_stride_ == sizeof(Element);
    int dim = 0;
    ((holds = holds && indices >= 0 && indices <= last_[dim], ++dim), ...);
    return holds;
  }

 private:
  static constexpr int kDims = kRank > 0 ? kRank : 1;  // C++ has no empty arrays
  friend class tw_InnerBuffer<Element, Value, kRank, kTrusted>;

  // In bytes.
  template <typename Index>
  __forceinline__ long long offset(int dim, Index i) const {
    const auto index = whole(+i);  // at least an int
    using Wide = decltype(index + 0);
    const int inside = kTrusted ? static_cast<int>(index)
                                : static_cast<int>(::min(::max(index, Wide{0}), Wide{last_[dim]}));
    return dim == kRank - 1 ? static_cast<long long>(inside) * last_stride_ : inside * stride_[dim];
  }

  // A float as an int, the nearest there is: a NaN becomes 0 or the least one.
  template <typename Number>
  static __forceinline__ auto whole(Number index) {
    if constexpr (!tw_is_floating<Number>) return index;
    else if constexpr (sizeof(Number) == sizeof(float)) return __float2int_rz(index);
    else return __double2int_rz(index);
  }

  __forceinline__ Read load(const char* from) const {
    return {static_cast<Value>(
        tw_kernel::to_number(tw_kernel::load_read_only(reinterpret_cast<const Element*>(from))))};
  }

  const char* data_;
  int last_stride_;          // of the last dimension, in bytes; below 2^31
  int last_[kDims];          // greatest index of each dimension
  long long stride_[kDims];  // in bytes
};

// A buffer of which only such elements are read as tw_holds is true for. Nothing is clamped, and
// what is constant of an index is part of the load.
template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_InnerBuffer {
 public:
  using Buffer = tw_Buffer<Element, Value, kRank, kTrusted>;
  using Read = typename Buffer::Read;

  explicit tw_InnerBuffer(const Buffer& buffer) : buffer_(buffer) {}

  template <typename Index>
  __forceinline__ Read operator[](Index i) const requires(kRank == 1) {
    return buffer_.load(buffer_.data_ + offset(0, i));
  }
  template <typename... Indices>
  __forceinline__ Read operator()(Indices... indices) const requires(sizeof...(Indices) == kRank) {
    const char* from = buffer_.data_;
    int dim = 0;
    ((from += offset(dim, indices), ++dim), ...);
    return buffer_.load(from);
  }

  template <typename Index>
  __forceinline__ int size(Index dim) const {
    return buffer_.size(dim);
  }

 private:
  // In bytes.
  template <typename Index>
  __forceinline__ long long offset(int dim, Index i) const {
    const tw_IndexSum sum = tw_sum(i);
    if (dim < kRank - 1) return static_cast<int>(sum) * buffer_.stride_[dim];
    constexpr long long size = sizeof(Element);
    return sum.base * size + sum.constant * size;
  }

  const Buffer& buffer_;
};

template <bool kInner, typename Element, typename Value, int kRank, bool kTrusted>
TW_INLINE decltype(auto) tw_choose_loads(const tw_Buffer<Element, Value, kRank, kTrusted>& buffer) {
  if constexpr (kInner) {
    return tw_InnerBuffer<Element, Value, kRank, kTrusted>(buffer);
  } else {
    return (buffer);
  }
}

}  // namespace tw_snippet
