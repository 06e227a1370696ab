#pragma once

#include <cstdint>
#include <optional>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/bindings.hpp"
#include "../runtime/api/block_mask.hpp"
#include "../runtime/api/sequences.hpp"
#include "../runtime/api/shape.hpp"
#include "../runtime/api/tensor.hpp"

namespace tilewright::verify {

/// The inputs of one call of attention, as views into the caller's memory on the host. Shapes,
/// strides and layouts as ForwardTensors takes them.
struct Problem {
  /// Of a packed call: batch is the number of sequences, q_len is total_q, kv_len is total_kv.
  Shape shape;
  TensorView q;
  TensorView k;
  TensorView v;
  SnippetInputs snippet;
  std::optional<double> scale;  ///< none: the spec's
  /// Of a packed call, on the host.
  std::optional<Sequences> sequences = {};
  /// Of a packed call: PlanOptions::positions.
  const BlockMask* positions = nullptr;
  bool batch_invariant = false;  ///< PlanOptions::batch_invariant
  std::int64_t splits = 0;       ///< PlanOptions::splits, or ForwardOptions::splits
  std::int64_t page_size = 0;    ///< of paged k and v; 0: they are not
  /// Of a spec with kv_new.
  std::optional<TensorView> k_new = {};
  std::optional<TensorView> v_new = {};
};

/// The scale that the problem's scores are multiplied by.
inline double scale_of(const Spec& spec, const Problem& problem) {
  return problem.scale.value_or(spec.softmax_scale());
}

}  // namespace tilewright::verify
