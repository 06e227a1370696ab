// Tensors of the checked reading: as snippet/buffer.hpp, and an index outside its extent is reported.

// An index, with the line that it is used on: a default argument is evaluated where it is needed.
struct tw_Index {
  template <typename Integer>
  tw_Index(Integer i, int at = __builtin_LINE()) : value(static_cast<long long>(i)), line(at) {}
  long long value;
  int line;
};

// As snippet/buffer.hpp, which says what the parameters are.
template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_Buffer {
 public:
  tw_Buffer(const tilewright::abi::BufferArgument& argument) : argument_(argument) {}

  Value operator[](tw_Index i) const requires(kRank == 1) { return load(offset(0, i)); }

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

  int size(int dim) const { return static_cast<int>(argument_.size[dim]); }

 private:
  long long offset(int dim, tw_Index i) const {
    const long long extent = argument_.size[dim];
    const long long clamped = i.value < 0 ? 0 : i.value >= extent ? extent - 1 : i.value;
    if (clamped != i.value) {
      tw_report(Finding::index_out_of_bounds, i.line, 0, i.value, extent);
    }
    return clamped * argument_.stride[dim];
  }

  Value load(long long offset) const {
    const Element* data = static_cast<const Element*>(argument_.data);
    return static_cast<Value>(tw_kernel::to_number(data[offset]));
  }

  tilewright::abi::BufferArgument argument_;
};
