#include "tests/gpu/packed_gpu_call.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/io/float16.hpp"
#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/gpu_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

unsigned next(unsigned& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

// Numbers in -1 .. 1.
void fill_random(const TensorView& view, cuda::DeviceMemory& memory, unsigned state) {
  std::vector<std::byte> bytes(memory.bytes());
  for (std::int64_t i = 0; i < view.numel(); ++i) {
    write_element(bytes.data(), view.dtype, i, next(state) / 8388608.0 - 1);
  }
  memory.copy_from(bytes.data(), bytes.size());
}

class GpuWorkspace {
 public:
  // Full of garbage.
  GpuWorkspace(const Attention& attention, const PackedShape& shape)
      : memory_(gpu(), static_cast<std::size_t>(attention.workspace_size(shape))) {
    memory_.fill(0xa5);
  }
  TensorView view() {
    return TensorView::contiguous(memory_.data(), u8, {static_cast<std::int64_t>(memory_.bytes())});
  }

 private:
  cuda::DeviceMemory memory_;
};

}  // namespace

PackedGpuCall::PackedGpuCall(const Spec& spec, const PackedShape& shape)
    : shape_(shape),
      q_(make(spec.dtype, {shape.total_q, shape.num_q_heads, spec.head_dim})),
      k_(make(spec.dtype, {shape.total_kv, shape.num_kv_heads, spec.head_dim})),
      v_(make(spec.dtype, {shape.total_kv, shape.num_kv_heads, spec.value_head_dim()})),
      out_(make(spec.output_dtype(), {shape.total_q, shape.num_q_heads, spec.value_head_dim()})),
      lse_(make(f32, {shape.num_q_heads, shape.total_q})),
      q_begin_(make(i32, {shape.batch + 1})),
      kv_begin_(make(i32, {shape.batch})),
      kv_len_(make(i32, {shape.batch})) {
  unsigned seed = 1;
  for (Tensor* const tensor : {&q_, &k_, &v_}) fill_random(tensor->view, tensor->memory, seed++);
  change_lengths(1);
  poison_outputs();
}

PackedGpuCall::Tensor PackedGpuCall::make(DType dtype, const std::vector<std::int64_t>& shape) {
  TensorView view = TensorView::contiguous(static_cast<void*>(nullptr), dtype, shape);
  cuda::DeviceMemory memory(gpu(), static_cast<std::size_t>(view.bytes()));
  view.data = memory.data();
  return {view, std::move(memory)};
}

void PackedGpuCall::set(Tensor& tensor, const std::vector<std::int32_t>& values) {
  tensor.memory.copy_from(values.data(), values.size() * sizeof(std::int32_t));
}

Sequences PackedGpuCall::sequences() const {
  return {.q_begin = q_begin_.view, .kv_begin = kv_begin_.view, .kv_len = kv_len_.view};
}

ForwardTensors PackedGpuCall::tensors() const {
  return {.q = q_.view, .k = k_.view, .v = v_.view, .out = out_.view, .lse = lse_.view};
}

void PackedGpuCall::change_lengths(unsigned seed) {
  unsigned state = seed * 2654435761u + 17;
  const auto below = [&](std::int64_t count) { return std::int64_t{next(state)} % count; };
  const std::int64_t max_kv_len = shape_.max_kv_len == 0 ? shape_.total_kv : shape_.max_kv_len;
  std::vector<std::int32_t> q_begin = {static_cast<std::int32_t>(below(3))}, kv_begin, kv_len;
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    const std::int64_t left = shape_.total_q - q_begin.back();
    const std::int64_t wanted = below(4) == 0 ? below(2) : below(2 * shape_.total_q / shape_.batch);
    q_begin.push_back(q_begin.back() + static_cast<std::int32_t>(std::min(wanted, left)));
    kv_len.push_back(static_cast<std::int32_t>(below(6) == 0 ? below(2) : below(max_kv_len + 1)));
    kv_begin.push_back(static_cast<std::int32_t>(below(shape_.total_kv - kv_len.back() + 1)));
  }
  set(q_begin_, q_begin);
  set(kv_begin_, kv_begin);
  set(kv_len_, kv_len);
}

void PackedGpuCall::poison_outputs() {
  for (Tensor* const tensor : {&out_, &lse_}) tensor->memory.fill(0xff);
}

std::vector<std::byte> PackedGpuCall::outputs() const {
  const std::size_t out = out_.memory.bytes(), lse = lse_.memory.bytes();
  std::vector<std::byte> bytes(out + lse);
  out_.memory.copy_to(bytes.data(), out);
  lse_.memory.copy_to(bytes.data() + out, lse);
  return bytes;
}

void require_equal_replays(const Spec& spec, const PackedShape& shape, int sets) {
  CAPTURE(to_string(spec.dtype), spec.head_dim, spec.mask_mod);
  const cuda::ContextScope scope(cuda::Driver::get(), 0);
  const Attention attention(spec, {.device = gpu()});
  PackedGpuCall call(spec, shape);
  GpuWorkspace memory(attention, shape), other(attention, shape);
  const TestStream stream;
  Plan plan = attention.plan(shape, call.sequences(), {},
                             {.workspace = memory.view(), .stream = stream.get()});
  attention.forward(call.tensors(), plan, {}, {.stream = stream.get()});
  stream.synchronize();
  const TestGraph graph(stream, TestGraph::Capture::of_thread, [&] {
    attention.rebuild(plan, {}, stream.get());
    attention.forward(call.tensors(), plan, {}, {.stream = stream.get()});
  });
  for (int i = 0; i < sets; ++i) {
    call.change_lengths(static_cast<unsigned>(i) + 2);
    call.poison_outputs();
    graph.launch();
    stream.synchronize();
    const std::vector<std::byte> replayed = call.outputs();
    REQUIRE(plan.report().count == 0);
    call.poison_outputs();
    const Plan fresh = attention.plan(shape, call.sequences(), {}, {.workspace = other.view()});
    attention.forward(call.tensors(), fresh);
    if (replayed != call.outputs()) FAIL("set " << i << " of lengths differs from a new plan");
  }
}

void require_equal_repeats(const Spec& spec, const PackedShape& shape, int repeats) {
  CAPTURE(to_string(spec.dtype), spec.head_dim, spec.mask_mod);
  const Attention attention(spec, {.device = gpu()});
  PackedGpuCall call(spec, shape);
  GpuWorkspace memory(attention, shape);
  Plan plan = attention.plan(shape, call.sequences(), {}, {.workspace = memory.view()});
  attention.forward(call.tensors(), plan);
  const std::vector<std::byte> first = call.outputs();
  for (int i = 0; i < repeats; ++i) {
    call.poison_outputs();
    attention.rebuild(plan);
    attention.forward(call.tensors(), plan);
    if (call.outputs() != first) FAIL("repeat " << i << " differs");
  }
}

std::vector<Spec> packed_gpu_specs() {
  const auto spec = [](DType dtype, std::int64_t head_dim, std::string mask_mod) {
    return Spec{.dtype = dtype,
                .head_dim = head_dim,
                .layout = Layout::packed,
                .mask_mod = std::move(mask_mod),
                .outputs = {.lse = true}};
  };
  std::vector<Spec> specs = {spec(f16, 64, "q_idx >= kv_idx"), spec(bf16, 128, ""),
                             spec(bf16, 64, "q_idx >= kv_idx && q_idx - kv_idx < 150 + 50 * h"),
                             spec(f32, 32, "q_idx >= kv_idx && (q_token + kv_token) % 5 != b")};
  specs.push_back(specs.front());
  specs.back().tactic = TacticSpec{.name = "portable"};
  return specs;
}
