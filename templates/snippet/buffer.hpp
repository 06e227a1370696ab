// A tensor that a snippet reads, `x[i]` in one dimension and `x(i, j)` in more. Unless the spec trusts
// it, an index is clamped to its extent, so that no snippet can read foreign memory.

template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_Buffer {
 public:
  tw_Buffer(const tilewright::abi::BufferArgument& argument)
      : data_(static_cast<const Element*>(argument.data)) {
    for (int i = 0; i < kRank; ++i) {
      const long long last = argument.size[i] - 1;
      last_[i] = last < 0x7ffffffe ? static_cast<int>(last) : 0x7ffffffe;
      stride_[i] = argument.stride[i];
    }
  }

  template <typename Index>
  TW_MEMBER Value operator[](Index i) const requires(kRank == 1) {
    return load(offset(0, i));
  }

  template <typename... Indices>
  TW_MEMBER Value operator()(Indices... indices) const requires(sizeof...(Indices) == kRank) {
    int dim = 0;
    return load((offset(dim++, indices) + ...));
  }

  // Extent of a dimension.
  TW_MEMBER int size(int dim) const { return last_[dim] + 1; }

 private:
  template <typename Index>
  TW_MEMBER long long offset(int dim, Index i) const {
    if (kTrusted) return static_cast<long long>(i) * stride_[dim];
    const auto index = +i;  // at least an int
    const int last = last_[dim];
    const int clamped = index < 0 ? 0 : index > last ? last : static_cast<int>(index);
    return clamped * stride_[dim];
  }

  TW_MEMBER Value load(long long offset) const {
    return static_cast<Value>(tw_kernel::to_number(data_[offset]));
  }

  const Element* data_;
  int last_[kRank];  // greatest index of each dimension
  long long stride_[kRank];
};
