#pragma once

#include <cstdint>
#include <string_view>

#include "../call/tensor_role.hpp"
#include "plan_state.hpp"

// What forward and backward ask of a rank's tensors. Each throws an Error with code tensor.

namespace tilewright::parallel {

/// What a tensor has to have.
struct WantedTensor {
  TensorRole role;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t width;
};

void require_fit(const WantedTensor& wanted, const TensorView& view, std::int64_t batch);

/// q, k, v and out of a call.
struct CallTensors {
  const TensorView& q;
  const TensorView& k;
  const TensorView& v;
  const TensorView& out;
};
void require_call_tensors(const Spec& spec, const CallTensors& tensors,
                          const ContextPlanState& plan);

/// A number for each row, f32 [batch, num_q_heads, q_len] of this rank, contiguous.
void require_row_numbers(std::string_view name, const TensorView& view,
                         const ContextPlanState& plan);

/// That two tensors share no byte.
void require_apart(std::string_view name, const TensorView& view, std::string_view other_name,
                   const TensorView& other);

/// @param bytes that the pass needs; 0: none
void require_room(const TensorView& workspace, std::int64_t bytes);

}  // namespace tilewright::parallel
