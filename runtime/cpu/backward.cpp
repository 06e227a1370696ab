#include "runtime/cpu/backward.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/ceil_div.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/cpu/thread_memory.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::cpu {
namespace {

// Parts of a call whose gradients of buffers are summed apart and then in order: as many as their
// sums have room for, whatever the number of threads.
constexpr std::int64_t kMostParts = 32;
constexpr std::int64_t kMostBytesOfParts = std::int64_t{64} << 20;

// Dense arrays, one after the other.
struct SumsLayout {
  std::vector<abi::GradientArgument> gradients = {};
  std::int64_t cells = 0;

  explicit SumsLayout(const std::vector<TensorView>& views) {
    for (const TensorView& view : views) {
      abi::GradientArgument gradient{.first = cells, .size = {1, 1, 1, 1, 1}, .stride = {}};
      std::int64_t stride = 1;
      for (std::size_t d = static_cast<std::size_t>(view.rank); d-- > 0;) {
        gradient.size[d] = view.shape[d];
        gradient.stride[d] = view.shape[d] == 1 ? 0 : stride;
        stride *= view.shape[d];
      }
      gradients.push_back(gradient);
      cells += stride;
    }
  }
};

// The cell of a dense array as an element of a tensor of the same extents.
std::int64_t element_of(const TensorView& view, std::int64_t cell) {
  std::int64_t element = 0;
  for (std::size_t d = static_cast<std::size_t>(view.rank); d-- > 0;) {
    element += cell % view.shape[d] * view.strides[d];
    cell /= view.shape[d];
  }
  return element;
}

}  // namespace

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
  const SumsLayout sums(call.gradients);
  arguments.gradients = sums.gradients.data();
  run_rows(call, arguments, sums.cells, threads);
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
                              std::int64_t cells, Executor& threads) const {
  const Shape& shape = call.forward.shape;
  const std::int64_t tiles = ceil_div(shape.q_len, q_tile_);
  const std::int64_t items = shape.batch * shape.num_q_heads * tiles;
  const auto run = [&](std::int64_t item, double* sums) {
    const std::int64_t head = item / tiles;
    rows_(&arguments, static_cast<int>(head / shape.num_q_heads),
          static_cast<int>(head % shape.num_q_heads), static_cast<int>(item % tiles), sums,
          thread_memory(ThreadMemory::tile_scratch, scratch_bytes_));
  };
  if (cells == 0) {
    return threads.parallel_for(items, [&](std::int64_t item, int) { run(item, nullptr); });
  }
  const std::int64_t bytes = cells * static_cast<std::int64_t>(sizeof(double));
  const std::int64_t parts =
      std::clamp<std::int64_t>(kMostBytesOfParts / bytes, 1, std::min(items, kMostParts));
  auto* const sums =
      static_cast<double*>(thread_memory(ThreadMemory::gradient_sums, parts * bytes));
  threads.parallel_for(parts, [&](std::int64_t part, int) {
    double* const own = sums + part * cells;
    std::fill_n(own, cells, 0.0);
    const std::int64_t end = items * (part + 1) / parts;
    for (std::int64_t item = items * part / parts; item < end; ++item) run(item, own);
  });
  std::int64_t first = 0;
  for (const TensorView& view : call.gradients) {
    for (std::int64_t cell = 0; cell < view.numel(); ++cell) {
      double sum = 0;
      for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * cells + first + cell];
      write_element(view.data, view.dtype, element_of(view, cell), sum);
    }
    first += view.numel();
  }
}

}  // namespace tilewright::cpu
