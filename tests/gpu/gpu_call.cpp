#include "tests/gpu/gpu_call.hpp"

#include <cmath>
#include <limits>

using namespace tilewright;

namespace {

constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kWidth = 64;

void fill_random(Tensor& tensor, unsigned state) {
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    state = state * 1664525u + 1013904223u;
    static_cast<float*>(tensor.data())[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
}

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.bytes());
}

TensorView view_on_gpu(const Tensor& tensor, const cuda::DeviceMemory& memory) {
  TensorView view = tensor.view();
  view.data = memory.data();
  return view;
}

}  // namespace

GpuCall::GpuCall(std::int64_t q_len, std::int64_t kv_len, unsigned seed)
    : q_len_(q_len),
      kv_len_(kv_len),
      q_(Tensor::zeros(f32, {1, kHeads, q_len, kWidth})),
      k_(Tensor::zeros(f32, {1, kKvHeads, kv_len, kWidth})),
      v_(Tensor::zeros(f32, {1, kKvHeads, kv_len, kWidth})),
      out_(Tensor::zeros(f32, {1, kHeads, q_len, kWidth})),
      gpu_q_(gpu(), bytes_of(q_)),
      gpu_k_(gpu(), bytes_of(k_)),
      gpu_v_(gpu(), bytes_of(v_)),
      gpu_out_(gpu(), bytes_of(out_)) {
  change_contents(seed);
  poison_out();
}

Shape GpuCall::shape() const {
  return {.batch = 1,
          .num_q_heads = kHeads,
          .num_kv_heads = kKvHeads,
          .q_len = q_len_,
          .kv_len = kv_len_};
}

ForwardTensors GpuCall::on_gpu() const {
  return {.q = view_on_gpu(q_, gpu_q_),
          .k = view_on_gpu(k_, gpu_k_),
          .v = view_on_gpu(v_, gpu_v_),
          .out = view_on_gpu(out_, gpu_out_)};
}

ForwardTensors GpuCall::on_host() const {
  return {.q = q_, .k = k_, .v = v_, .out = out_};
}

void GpuCall::change_contents(unsigned seed) {
  fill_random(q_, seed);
  fill_random(k_, seed + 1);
  fill_random(v_, seed + 2);
  gpu_q_.copy_from(q_.data(), bytes_of(q_));
  gpu_k_.copy_from(k_.data(), bytes_of(k_));
  gpu_v_.copy_from(v_.data(), bytes_of(v_));
}

void GpuCall::poison_out() {
  gpu_out_.fill(0xff);
}

std::vector<float> GpuCall::out() {
  std::vector<float> values(static_cast<std::size_t>(out_.numel()));
  gpu_out_.copy_to(values.data(), bytes_of(out_));
  return values;
}

std::vector<float> GpuCall::expected(const Spec& spec) const {
  const Attention attention(spec, {.device = Device::cpu()});
  if (spec.mask_mod.empty()) {
    attention.forward(on_host());
  } else {
    attention.forward(on_host(), attention.block_mask(shape()));
  }
  const auto* out = static_cast<const float*>(out_.data());
  return std::vector<float>(out, out + out_.numel());
}

void poison(const TensorView& tensor, cuda::Stream stream) {
  const cuda::Driver& driver = cuda::Driver::get();
  driver.check(driver.functions().fill_bytes(reinterpret_cast<std::uintptr_t>(tensor.data), 0xff,
                                             static_cast<std::size_t>(tensor.bytes()), stream),
               "filling GPU memory");
}

Device gpu() {
  return Device::parse("cuda");
}

float distance(const std::vector<float>& a, const std::vector<float>& b) {
  float greatest = a.size() == b.size() ? 0 : std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const float difference = std::fabs(a[i] - b[i]);
    if (!(difference <= greatest)) greatest = difference;
    if (std::isnan(difference)) return std::numeric_limits<float>::infinity();
  }
  return greatest;
}
