// Causal attention over one long sequence that all GPUs of this machine share: a thread each.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
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

// What one rank does; all ranks make the same calls in the same order.
std::string run_rank(const std::shared_ptr<Communicator>& communicator, const Device& gpu,
                     std::int64_t tokens) {
  cudaSetDevice(gpu.index());
  const ContextParallel context(
      {.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx", .block = {64, 64}},
      communicator, {.device = gpu});
  const ContextPlan plan =
      context.plan({.num_q_heads = 4, .num_kv_heads = 1, .q_len = tokens, .kv_len = tokens});

  // The rows of plan.shards(), one shard after the other.
  const TensorView q = on_gpu(bf16, {1, 4, plan.q_rows(), 64});
  const TensorView out = on_gpu(bf16, {1, 4, plan.q_rows(), 64});
  const TensorView k = on_gpu(bf16, {1, 1, plan.kv_rows(), 64});
  const TensorView v = on_gpu(bf16, {1, 1, plan.kv_rows(), 64});
  const TensorView memory = on_gpu(u8, {context.workspace_size(plan)});
  for (const TensorView& tensor : {q, k, v}) {
    cudaMemset(tensor.data, 0x3f, static_cast<std::size_t>(tensor.bytes()));  // 0.746
  }
  for (int layer = 0; layer < 2; ++layer) {
    context.forward({.q = q, .k = k, .v = v, .out = out}, plan, {}, {.workspace = memory});
  }
  context.wait();  // an error, not a hang, where another rank is gone

  std::uint16_t first = 0;
  cudaMemcpy(&first, out.data, 2, cudaMemcpyDeviceToHost);
  std::string text = "rank " + std::to_string(communicator->rank()) + " has";
  for (const Shard& shard : plan.shards()) {
    text += " " + std::to_string(shard.q_begin) + ".." +
            std::to_string(shard.q_begin + shard.q_len - 1);
  }
  text += ", out[0] = " + std::to_string(std::bit_cast<float>(first << 16)).substr(0, 5);
  for (const TensorView& tensor : {q, k, v, out, memory}) cudaFree(tensor.data);
  return text;
}

int main(int count, char** words) {
  const std::int64_t tokens = count > 1 ? std::stoll(words[1]) : 131072;
  int gpu_count = 0;
  if (cudaGetDeviceCount(&gpu_count) != cudaSuccess || gpu_count == 0) {
    std::fprintf(stderr, "no GPU was found\n");
    return 3;
  }
  std::vector<Device> gpus;
  for (int i = 0; i < gpu_count; ++i) gpus.push_back(Device::parse("cuda:" + std::to_string(i)));
  const std::vector<std::shared_ptr<Communicator>> ranks = nccl_group(gpus);

  std::vector<std::string> reports(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        reports[i] = run_rank(ranks[i], gpus[i], tokens);
      } catch (const std::exception& error) {
        reports[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& report : reports) std::printf("%s\n", report.c_str());
}
