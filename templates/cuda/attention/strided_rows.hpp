#pragma once

// Rows of q, and of k and v, that lie one stride apart.

namespace tw_kernel {

// An element that may be absent; then `data` is not read.
template <typename Element>
struct RowSource {
  const Element* data;
  bool is_present;
};

template <typename Element>
class StridedRows {
 public:
  // rows: from the first one on
  __forceinline__ StridedRows(const Element* rows, long long stride) : rows_(rows), stride_(stride) {}

  // Walks down a column.
  class Cursor {
   public:
    __forceinline__ Cursor(const Element* at, long long stride) : at_(at), stride_(stride) {}
    // is_wanted: whether the row exists
    __forceinline__ RowSource<Element> read(bool is_wanted) const { return {at_, is_wanted}; }
    __forceinline__ void advance(int rows) { at_ += rows * stride_; }

   private:
    const Element* at_;
    long long stride_;
  };
  __forceinline__ Cursor from(int row, int column) const {
    return {rows_ + row * stride_ + column, stride_};
  }

 private:
  const Element* rows_;
  long long stride_;
};

}  // namespace tw_kernel
