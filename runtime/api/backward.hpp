#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "stream.hpp"
#include "tensor.hpp"

namespace tilewright {

/// The two directions of a call.
enum class Pass : std::uint8_t { forward, backward };

/// The tensors of one call of the backward pass.
///   q, k, v, out, lse   what forward read and wrote: ForwardTensors
///   dout                gradient of out: out's dtype, shape and layout
///   dlse                gradient of lse, f32 [batch, num_q_heads, q_len], of packed calls
///                       [num_q_heads, total_q], contiguous; none: zeros
///   dq, dk, dv          gradients of q, k, v, in their dtypes, shapes and layouts, any strides
///   with
///                       a contiguous last dimension: exactly those that the spec's gradients name
/// Where k or v has batch 1, its gradient has too: the sum over the batch. In packed calls rows of
/// dq that belong to no sequence are not written, rows of dk and dv that belong to none are 0, and
/// sequences that share rows of k and v add up.
struct BackwardTensors {
  TensorView q = {};
  TensorView k = {};
  TensorView v = {};
  TensorView out = {};
  TensorView lse = {};
  TensorView dout = {};
  std::optional<TensorView> dlse = {};
  std::optional<TensorView> dq = {};
  std::optional<TensorView> dk = {};
  std::optional<TensorView> dv = {};
};

/// Where gradients of buffers and scalars are written, by their names: exactly those that the
/// spec's gradients name. Each has the shape of the tensor that the call's bindings hold, any
/// strides, and is f32 or of the buffer's dtype (f32 of an f64 buffer); a scalar's has one element.
using GradientBuffers = std::map<std::string, TensorView>;

/// Run-time values of a backward call; the forward call had the same.
struct BackwardOptions {
  std::int64_t q_offset = 0;         ///< q_idx = row + q_offset; of dense calls, as kv_offset
  std::int64_t kv_offset = 0;        ///< kv_idx = column + kv_offset
  std::optional<double> scale = {};  ///< none: the spec's
  /// Equal bits over runs. On a CPU they always are.
  bool deterministic = false;
  /// Attention::workspace_size(shape, Pass::backward) bytes; a CPU needs none.
  TensorView workspace = {};
  Stream stream = nullptr;  ///< of a GPU
};

}  // namespace tilewright
