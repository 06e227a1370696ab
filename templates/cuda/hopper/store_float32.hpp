// The end of a warpgroup's 64 rows where the output is float32: straight from registers.
//
// Needs: pipeline.hpp, store_tile.

namespace tw_kernel {

TW_INLINE void store_out(const ForwardArguments& arguments, const TensorMaps&,
                         const SnippetArguments& call, const Shared&, const Place& place, int, int,
                         const Softmax& softmax, const float (&out)[kRows][kOutColumns]) {
  store_tile(arguments, call, place, out, softmax, arguments.scaling.to_log2);
}

}  // namespace tw_kernel
