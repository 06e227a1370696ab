// 1,000 runs of forward over shapes that fill the GPU several times: a race, a counter that is not
// set back or a sum in another order shows as bits that differ.
#include <vector>

#include <fmt/format.h>

#include "runtime/call/staged_call.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/device_memory.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/io/float16.hpp"
#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/gpu_call.hpp"
#include "tests/support/catch.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;

namespace {

constexpr int kRuns = 1000;

// Counts words that differ, on the GPU: copying every result to the host would take minutes.
class Comparison {
 public:
  explicit Comparison(const std::string& target) : differing_(gpu(), sizeof(unsigned)) {
    const cuda::Nvrtc::Result compiled = cuda::Nvrtc::get().compile(
        "extern \"C\" __global__ void compare(const unsigned* a, const unsigned* b, long long n,\n"
        "                                   unsigned* differing) {\n"
        "  unsigned found = 0;\n"
        "  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll)\n"
        "    found += a[i] != b[i];\n"
        "  if (found) atomicAdd(differing, found);\n"
        "}\n",
        target, {"--std=c++17"});
    const cuda::DriverFunctions& f = cuda::Driver::get().functions();
    require_success(f.module_load(&module_, compiled.cubin.data()), "loading a kernel");
    require_success(f.module_function(&function_, module_, "compare"), "finding a kernel");
    differing_.fill(0);
  }
  ~Comparison() { cuda::Driver::get().functions().module_unload(module_); }
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  // In the order of the default stream.
  void enqueue(const void* a, const void* b, std::size_t bytes) {
    long long words = static_cast<long long>(bytes / sizeof(unsigned));
    void* differing = differing_.data();
    void* parameters[] = {&a, &b, &words, &differing};
    require_success(cuda::Driver::get().functions().launch(function_, 1024, 1, 1, 256, 1, 1, 0,
                                                           nullptr, parameters, nullptr),
                    "launching a kernel");
  }

  unsigned differing() const {
    unsigned count = 0;
    differing_.copy_to(&count, sizeof count);
    return count;
  }

 private:
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
  cuda::DeviceMemory differing_;
};

void require_finite(const Tensor& out) {
  for (std::int64_t i = 0; i < out.numel(); i += 97) {
    if (!std::isfinite(read_element(out.data(), out.dtype(), i))) {
      FAIL("element " << i << " of " << out.describe() << " is no finite number");
    }
  }
}

void require_equal_runs(const Spec& spec, const Shape& shape) {
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  const Attention attention(spec, {.device = gpu()});
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 1);
  const verify::Problem problem = inputs.problem();
  const Tensor out = Tensor::zeros(
      spec.output_dtype(), {shape.batch, shape.num_q_heads, shape.q_len, spec.value_head_dim()});
  const Tensor lse = Tensor::zeros(f32, {shape.batch, shape.num_q_heads, shape.q_len});
  const StagedCall call(
      gpu(), {.q = problem.q, .k = problem.k, .v = problem.v, .out = out, .lse = lse.view()},
      problem.snippet);
  const Bindings bindings = attention.bind(call.inputs());
  std::optional<BlockMask> mask;
  if (!spec.mask_mod.empty()) mask = attention.block_mask(shape, bindings);
  const auto forward = [&] {
    if (mask) {
      attention.forward(call.tensors(), *mask, bindings);
    } else {
      attention.forward(call.tensors(), bindings);
    }
  };

  const std::vector<TensorView> outputs = {call.tensors().out, *call.tensors().lse};
  std::vector<cuda::DeviceMemory> first;
  forward();
  call.copy_back();
  require_finite(out);
  for (const Tensor* output : {&out, &lse}) {
    first.emplace_back(gpu(), static_cast<std::size_t>(output->bytes()));
    first.back().copy_from(output->data(), static_cast<std::size_t>(output->bytes()));
  }
  Comparison comparison(attention.target().name());
  for (int run = 0; run < kRuns; ++run) {
    for (const TensorView& output : outputs) poison(output, nullptr);
    forward();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      comparison.enqueue(outputs[i].data, first[i].data(),
                         static_cast<std::size_t>(outputs[i].bytes()));
    }
  }
  REQUIRE(comparison.differing() == 0);
}

Spec variant(DType dtype, std::int64_t head_dim, std::string score_mod, std::string mask_mod) {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .score_mod = std::move(score_mod),
          .mask_mod = std::move(mask_mod),
          .outputs = {.out = true, .lse = true}};
}

}  // namespace

TEST_CASE("gpu: 1,000 runs give the same bits over several waves") {
  if (gpu_is_missing()) return;
  const std::string causal = "q_idx >= kv_idx";
  Spec bias = variant(bf16, 128, "score + bias(h, kv_idx - q_idx + 4096)", causal);
  bias.buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::num_q_heads, std::int64_t{8192}}}}};
  Spec documents = variant(bf16, 64, "", causal + " && doc[q_idx] == doc[kv_idx]");
  documents.buffers = {
      {"doc", {.dtype = i32, .shape = {NamedDim::kv_len}, .range = {{0, 11}}, .sorted = true}}};
  // 32 heads of 16 tiles of q are four times the multiprocessors of an H200.
  const Shape shape{
      .batch = 2, .num_q_heads = 16, .num_kv_heads = 4, .q_len = 2048, .kv_len = 2048};
  Shape ragged = shape;
  ragged.q_len = ragged.kv_len = 1999;
  require_equal_runs(variant(bf16, 128, "", ""), shape);
  require_equal_runs(variant(bf16, 128, "", causal), shape);
  require_equal_runs(variant(f16, 64, "", causal), ragged);
  require_equal_runs(variant(bf16, 256, "", causal), ragged);
  require_equal_runs(bias, shape);
  require_equal_runs(documents, shape);
  Shape smaller = shape;
  smaller.q_len = smaller.kv_len = 512;
  require_equal_runs(variant(f32, 64, "30 * tanh(score / 30)", causal), smaller);
}
