#pragma once

#include <cstddef>

#include "../api/attention.hpp"
#include "../api/backward.hpp"
#include "../api/sequences.hpp"

namespace tilewright {

/// One tensor of a call with its dimensions in one order, whatever its layout.
struct ResolvedTensor {
  void* data = nullptr;
  /// In elements; 0 where the batch is broadcast. Of a pool: from one page to the next.
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
};

/// A call of forward whose tensors have been checked against the spec.
struct ForwardCall {
  Shape shape;
  std::int64_t page_size = 0;  ///< of paged k and v
  ResolvedTensor q, k, v, out;
  ResolvedTensor k_new, v_new;  ///< of a spec with kv_new
  float* lse = nullptr;
  float* max_scores = nullptr;
  void* weights = nullptr;
  double scale = 1;
  /// What a dense call may split with, where its backend asks for some; null: none.
  std::byte* workspace = nullptr;
  std::int64_t splits = 0;  ///< ForwardOptions::splits
  Stream stream = nullptr;
};

/// Reads the sizes of a call off its tensors and checks every one of them.
/// @param pass backward takes what forward read and wrote, and of its results out and lse alone
/// @throws Error with code tensor
ForwardCall resolve_call(const Spec& spec, const ForwardTensors& tensors,
                         const ForwardOptions& options, Pass pass = Pass::forward);

/// The same for packed tensors, whose sizes must be the plan's. In the call's shape q_len is
/// total_q, kv_len is total_kv, and batch the number of sequences; batch strides are 0, or a
/// page's.
/// @throws Error with code tensor, usage
ForwardCall resolve_packed_call(const Spec& spec, const ForwardTensors& tensors,
                                const PackedShape& shape, const ForwardOptions& options,
                                Pass pass = Pass::forward);

/// What named dimensions of buffers are in a packed call.
Shape shape_of_totals(const PackedShape& shape);

}  // namespace tilewright
