// A tensor that a snippet reads, as in snippet/buffer.hpp, with what a GPU needs: loads through the
// read-only path, which the compiler may merge and move, and one multiplication of 32 x 32 bits for the
// last index.

template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_Buffer {
 public:
  tw_Buffer(const tilewright::abi::BufferArgument& argument)
      : data_(static_cast<const Element*>(argument.data)),
        last_stride_(static_cast<int>(argument.stride[kRank - 1])) {
    for (int i = 0; i < kRank; ++i) {
      last_[i] = argument.size[i] - 1;
      stride_[i] = argument.stride[i];
    }
  }

  template <typename Index>
  __forceinline__ Value operator[](Index i) const requires(kRank == 1) {
    return load(offset(0, i));
  }

  template <typename... Indices>
  __forceinline__ Value operator()(Indices... indices) const requires(sizeof...(Indices) == kRank) {
    int dim = 0;
    return load((offset(dim++, indices) + ...));
  }

  // Extent of a dimension.
  __forceinline__ int size(int dim) const { return last_[dim] + 1; }

 private:
  template <typename Index>
  __forceinline__ long long offset(int dim, Index i) const {
    const auto index = +i;  // at least an int
    const int last = last_[dim];
    const int clamped = kTrusted ? static_cast<int>(index)
                                 : static_cast<int>(index < 0 ? 0 : index > last ? last : index);
    return dim == kRank - 1 ? static_cast<long long>(clamped) * last_stride_ : clamped * stride_[dim];
  }

  __forceinline__ Value load(long long offset) const {
    return static_cast<Value>(tw_kernel::to_number(tw_kernel::load_read_only(data_ + offset)));
  }

  const Element* data_;
  int last_stride_;  // of the last dimension; below 2^31
  int last_[kRank];  // greatest index of each dimension
  long long stride_[kRank];
};
