#include "runtime/cuda/backward_launch.hpp"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/cuda/arguments.hpp"
#include "runtime/cuda/plan.hpp"

namespace tilewright::cuda {
namespace {

namespace cuda_abi = tilewright::abi::cuda;

}  // namespace

void require_backward_workspace(const BackwardCall& call, std::int64_t bytes) {
  const TensorView& given = call.workspace;
  const std::int64_t has = given.data == nullptr ? 0 : given.bytes();
  if (has < bytes) {
    throw Error(
        ErrorCode::tensor,
        fmt::format("the workspace has {} bytes; this call of backward needs {}", has, bytes),
        "attention.workspace_size(shape, Pass::backward) says it; of gradients in 16 bits and "
        "deterministic ones, workspace_size(shape, Pass::backward, bindings, deterministic)");
  }
  if (!given.is_contiguous()) {
    throw Error(ErrorCode::tensor, "the workspace is not contiguous",
                "give one block of memory, for example u8 [workspace_size(shape, Pass::backward)]");
  }
  if (reinterpret_cast<std::uintptr_t>(given.data) % kBackwardAlignment == 0) return;
  throw Error(ErrorCode::tensor,
              fmt::format("the workspace begins at no multiple of {} bytes", kBackwardAlignment),
              "align it as allocations of the GPU's memory are");
}

cuda_abi::PackedBackwardArguments backward_arguments(const BackwardCall& call,
                                                     const BackwardTiles& tiles) {
  const ForwardCall& forward = call.forward;
  cuda_abi::PackedBackwardArguments arguments = {};
  static_cast<cuda_abi::BackwardArguments&>(arguments) = {
      .q = tensor_argument(forward.q),
      .k = tensor_argument(forward.k),
      .v = tensor_argument(forward.v),
      .out = tensor_argument(forward.out),
      .dout = tensor_argument(call.dout),
      .lse = forward.lse,
      .dlse = call.dlse,
      .dq = tensor_argument(call.dq),
      .dk = tensor_argument(call.dk),
      .dv = tensor_argument(call.dv),
      .facts = static_cast<cuda_abi::RowFacts*>(call.workspace.data),
      .facts_rows = static_cast<int>(cuda_abi::facts_rows(forward.shape.q_len)),
      .batches_of_block = 1,
      .scale = static_cast<float>(forward.scale),
      .gathers_columns = 1,
      .mask = tiles.rows,
      .columns = tiles.columns};
  if (tiles.plan == nullptr) return arguments;
  arguments.plan = plan_arguments(*tiles.plan);
  if (tiles.plan->shape.batch > 0) {
    arguments.column_sequences = reinterpret_cast<const abi::ColumnSequences*>(
        tiles.plan->memory + tiles.plan->geometry.column_sequences);
  }
  if (tiles.may_share_rows) arguments.shares_rows = shared_rows_flag(*tiles.plan);
  return arguments;
}

int* shared_rows_flag(const PlanState& plan) {
  return reinterpret_cast<int*>(plan.memory + plan.geometry.shares_rows);
}

void BackwardLaunch::clear(void* memory, std::int64_t bytes) const {
  if (bytes == 0) return;
  on_.driver.check(
      on_.driver.functions().fill_bytes(device_pointer(memory), 0, static_cast<std::size_t>(bytes),
                                        static_cast<Stream>(call_.forward.stream)),
      "clearing sums of gradients");
}

}  // namespace tilewright::cuda
