#include "runtime/cpu/backward.hpp"

#include <cstdint>
#include <memory>
#include <utility>

#include "base/ceil_div.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/cpu/thread_memory.hpp"

namespace tilewright::cpu {
BackwardKernel::BackwardKernel(std::shared_ptr<const LoadedKernel> kernel)
    : kernel_(std::move(kernel)),
      rows_(kernel_->entry<Rows>("tilewright_backward_rows")),
      columns_(kernel_->entry<Columns>("tilewright_backward_columns")),
      q_tile_(*kernel_->entry<const int>("tilewright_q_tile")),
      kv_tile_(*kernel_->entry<const int>("tilewright_kv_tile")),
      scratch_bytes_(*kernel_->entry<const long long>("tilewright_scratch_bytes")) {}

void BackwardKernel::run(const BackwardCall& call, const BlockMask* mask, const Spec& spec,
                         const Bindings& bindings, Executor& threads) const {
  const ForwardCall& forward = call.forward;
  abi::BackwardArguments arguments = {
      .snippet = snippet_arguments(bindings.cpu_arguments(), forward.shape),
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
      .scale = static_cast<float>(forward.scale),
      .mask = {},
      .columns = {},
      .gradients = nullptr};
  std::shared_ptr<const HostTileLists> lists;
  if (mask != nullptr) {
    lists = mask->on_host();
    arguments.mask = lists_argument(*mask, lists->lists, mask->q_blocks());
    arguments.columns = lists_argument(*mask, mask->transposed(), mask->kv_blocks());
  }
  if (call.dk.data != nullptr || call.dv.data != nullptr) run_columns(call, arguments, threads);
  if (call.dq.data == nullptr && gradient_names(spec).empty()) return;
  const GradientSums sums(call.gradients);
  arguments.gradients = sums.arguments();
  run_rows(call, arguments, sums, threads);
}

void BackwardKernel::run_columns(const BackwardCall& call, const abi::BackwardArguments& arguments,
                                 Executor& threads) const {
  const Shape& shape = call.forward.shape;
  const bool sums = call.sums_dk || call.sums_dv;
  const std::int64_t batches = sums ? 1 : shape.batch;
  const std::int64_t batches_of_item = sums ? shape.batch : 1;
  const std::int64_t tiles = ceil_div(shape.kv_len, kv_tile_);
  threads.parallel_for(batches * shape.num_kv_heads * tiles, [&](std::int64_t item, int) {
    const std::int64_t head = item / tiles;
    columns_(&arguments, static_cast<int>(head / shape.num_kv_heads),
             static_cast<int>(batches_of_item), static_cast<int>(head % shape.num_kv_heads),
             static_cast<int>(item % tiles),
             thread_memory(ThreadMemory::tile_scratch, scratch_bytes_));
  });
}

void BackwardKernel::run_rows(const BackwardCall& call, const abi::BackwardArguments& arguments,
                              const GradientSums& sums, Executor& threads) const {
  const Shape& shape = call.forward.shape;
  const std::int64_t tiles = ceil_div(shape.q_len, q_tile_);
  const std::int64_t items = shape.batch * shape.num_q_heads * tiles;
  const auto run = [&](std::int64_t item, double* own_sums) {
    const std::int64_t head = item / tiles;
    rows_(&arguments, static_cast<int>(head / shape.num_q_heads),
          static_cast<int>(head % shape.num_q_heads), static_cast<int>(item % tiles), own_sums,
          thread_memory(ThreadMemory::tile_scratch, scratch_bytes_));
  };
  sums.collect(items, threads, run);
}

}  // namespace tilewright::cpu
