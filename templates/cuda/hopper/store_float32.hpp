// The end of a warpgroup's 64 rows where the output is float32: straight from registers.
//
// Needs: pipeline.hpp, store_rows.

namespace tw_kernel {

TW_INLINE void store_out(const ForwardArguments& arguments, const TensorMaps&,
                         const SnippetArguments& call, const Shared&, const Place& place, int, int,
                         const RowEnds& ends, const float (&out)[kRows][kOutColumns]) {
  store_rows(arguments, call, place, ends, out);
}

}  // namespace tw_kernel
