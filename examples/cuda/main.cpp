// Causal attention over packed sequences in a GPU's memory, with other sequences in each step.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <new>
#include <vector>

#include <cuda_runtime_api.h>
#include <tilewright.hpp>

using namespace tilewright;

TensorView on_gpu(DType dtype, std::initializer_list<std::int64_t> shape) {
  TensorView view = TensorView::contiguous(static_cast<void*>(nullptr), dtype, shape);
  if (cudaMalloc(&view.data, static_cast<std::size_t>(view.bytes())) != cudaSuccess) {
    throw std::bad_alloc();
  }
  return view;
}

int main() {
  const Attention attention(
      {.dtype = bf16, .head_dim = 64, .layout = Layout::packed, .mask_mod = "q_idx >= kv_idx"},
      {.device = Device::parse("cuda")});
  const PackedShape shape = {
      .batch = 3, .num_q_heads = 8, .num_kv_heads = 2, .total_q = 256, .total_kv = 256};

  const TensorView q = on_gpu(bf16, {256, 8, 64}), out = on_gpu(bf16, {256, 8, 64});
  const TensorView k = on_gpu(bf16, {256, 2, 64}), v = on_gpu(bf16, {256, 2, 64});
  for (const TensorView& tensor : {q, k, v}) {
    cudaMemset(tensor.data, 0x3f, static_cast<std::size_t>(tensor.bytes()));  // 0.746
  }
  const TensorView begin = on_gpu(i32, {4});  // sequence b has the rows begin[b] .. begin[b + 1]
  const TensorView memory = on_gpu(u8, {attention.workspace_size(shape)});

  cudaMemset(begin.data, 0, 16);
  Plan plan =
      attention.plan(shape, {.q_begin = begin, .kv_begin = begin}, {}, {.workspace = memory});
  const std::vector<std::vector<int>> steps = {
      {0, 100, 101, 178}, {0, 1, 2, 256}, {0, 150, 100, 256}};  // the last one is wrong
  for (const std::vector<int>& rows : steps) {
    cudaMemcpy(begin.data, rows.data(), 16, cudaMemcpyHostToDevice);
    attention.rebuild(plan);
    for (int layer = 0; layer < 2; ++layer) {
      attention.forward({.q = q, .k = k, .v = v, .out = out}, plan);
    }
    std::uint16_t first = 0;
    cudaMemcpy(&first, out.data, 2, cudaMemcpyDeviceToHost);
    std::printf("%d rows, out[0] = %.3f\n", rows.back(), std::bit_cast<float>(first << 16));
    const PlanReport report = plan.report();  // waits
    if (report.count > 0) std::printf("%s\n", report.text().c_str());
  }
  for (const TensorView& tensor : {q, k, v, out, begin, memory}) cudaFree(tensor.data);
}
