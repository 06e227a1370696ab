#pragma once

// What kernels read that bring tensors with the copy engine.

namespace tilewright::abi::cuda {

/// A CUtensorMap of cuda.h: where the copy engine finds a tensor, and what boxes it brings of it.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

/// Dimensions, fastest first: columns, rows, heads, batch; a dimension of stride 0 has extent 1.
/// Boxes are 64 columns wide, and 64 rows high for q, a kv tile for k and v, 16 rows for out.
///   void tilewright_forward(ForwardArguments, TensorMaps, SnippetArguments<buffers, scalars>)
struct TensorMaps {
  TensorMap q, k, v;
  TensorMap out;  // not read where out is float32
};

}  // namespace tilewright::abi::cuda
