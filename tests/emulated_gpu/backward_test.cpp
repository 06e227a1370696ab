// The portable backward kernels.

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/call/staged_backward.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/fast_math.hpp"
#include "verify/gradients.hpp"
#include "verify/random.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Tensor like(const TensorView& view) {
  return Tensor::zeros(view.dtype, {view.extents().begin(), view.extents().end()});
}

// A spec with an index of each pattern, rows 20 to 23 that keep nothing, and columns from 70 on
// that few rows keep.
Spec spec_of(DType dtype, std::vector<std::string> gradients) {
  return {.dtype = dtype,
          .head_dim = 24,
          .v_head_dim = 40,
          .score_mod =
              "cap * tanh(score / cap) * gain[h] + bias[kv_idx - q_idx + 64] + "
              "column[kv_idx] * row(b, q_idx) + own[q_idx * 7 + kv_idx]",
          .mask_mod = "(q_idx >= kv_idx || kv_idx > 70) && (q_idx < 20 || q_idx > 23)",
          .buffers = {{"gain", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                      {"bias", {.dtype = f32, .shape = {100}}},
                      {"column", {.dtype = bf16, .shape = {NamedDim::kv_len}}},
                      {"row", {.dtype = f32, .shape = {NamedDim::batch, NamedDim::q_len}}},
                      {"own", {.dtype = f32, .shape = {FreeDim{}}}}},
          .scalars = {{"cap", {.dtype = f32, .default_value = 5}}},
          .block = {48, 32},
          .outputs = {.lse = true},
          .gradients = std::move(gradients)};
}

const Shape kShape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 61, .kv_len = 83};

// A call's gradients. Memory of the emulated GPU is the host's.
class Call {
 public:
  Call(const Attention& attention, const verify::RandomOptions& options = {})
      : attention_(attention),
        inputs_(verify::random_inputs(attention.spec(), kShape, 3, options)),
        problem_(inputs_.problem()),
        out_(Tensor::zeros(attention.spec().dtype, {2, 4, 61, 40})),
        lse_(Tensor::zeros(f32, {2, 4, 61})),
        dout_(like(out_)),
        dlse_(like(lse_)) {
    verify::Random random(1, "dout");
    for (Tensor* tensor : {&dout_, &dlse_}) {
      for (std::int64_t i = 0; i < tensor->numel(); ++i) {
        write_element(tensor->data(), tensor->dtype(), i, random.normal());
      }
    }
    for (const std::string& name : attention.spec().gradients) {
      if (name == "q") tensors_.emplace("dq", like(problem_.q));
      if (name == "k") tensors_.emplace("dk", like(problem_.k));
      if (name == "v") tensors_.emplace("dv", like(problem_.v));
      if (name == "cap") tensors_.emplace("d_cap", Tensor::zeros(f32, {1}));
      const auto buffer = problem_.snippet.buffers.find(name);
      if (buffer != problem_.snippet.buffers.end()) {
        tensors_.emplace("d_" + name, Tensor::zeros(gradient_dtype(buffer->second.dtype),
                                                    buffer->second.extents()));
      }
    }
  }

  void run(bool deterministic = false, std::int64_t workspace_bytes_less = 0) {
    const Bindings bindings = attention_.bind(problem_.snippet);
    const BlockMask mask = attention_.block_mask(kShape, bindings, {.transposed = true});
    const ForwardTensors forward{
        .q = problem_.q, .k = problem_.k, .v = problem_.v, .out = out_, .lse = lse_};
    attention_.forward(forward, mask, bindings);
    write_element(dout_.data(), dout_.dtype(), 21 * 40 + 3,
                  std::nan(""));  // of a row that keeps nothing
    write_element(dlse_.data(), f32, 22, std::numeric_limits<double>::infinity());
    GradientBuffers buffers;
    const auto view = [&](const char* name) -> std::optional<TensorView> {
      const auto found = tensors_.find(name);
      if (found == tensors_.end()) return std::nullopt;
      return found->second.view();
    };
    for (const auto& [name, tensor] : tensors_) {
      if (name.starts_with("d_")) buffers.emplace(name.substr(2), tensor);
    }
    const StagedBackward staged(
        attention_, kShape,
        {.dout = dout_, .dlse = dlse_, .dq = view("dq"), .dk = view("dk"), .dv = view("dv")},
        forward, buffers, bindings, deterministic);
    TensorView workspace = staged.workspace();
    workspace.shape[0] -= workspace_bytes_less;
    attention_.backward(staged.tensors(), mask, bindings, staged.gradients(),
                        {.deterministic = deterministic, .workspace = workspace});
    staged.copy_back();
  }

  void judge() const {
    verify::GradientResults results{.dout = dout_, .dlse = dlse_};
    for (const auto& [name, tensor] : tensors_) results.gradients.emplace(name, tensor);
    results.fast_math = verify::uses_fast_math(attention_.spec(), attention_.device());
    const auto verdicts =
        verify::judge_gradients(attention_.spec(), problem_, results, {}, ThreadPool::shared());
    CHECK(verdicts.size() == attention_.spec().gradients.size());
    for (const auto& [name, verdict] : verdicts) {
      CAPTURE(name, verdict.reasons);
      CHECK(verdict.ok);
    }
  }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    for (const auto& [name, tensor] : tensors_) {
      const auto* begin = static_cast<const std::byte*>(tensor.data());
      all.insert(all.end(), begin, begin + tensor.view().bytes());
    }
    return all;
  }

 private:
  const Attention& attention_;
  verify::Inputs inputs_;
  verify::Problem problem_;
  Tensor out_, lse_, dout_, dlse_;
  std::map<std::string, Tensor> tensors_;
};

void expect_equal_bits_and_sums(const Attention& attention) {
  INFO("deterministic: equal bits in whatever order threads run");
  Call first(attention), second(attention);
  first.run(true);
  first.judge();
  second.run(true);
  CHECK(first.bytes() == second.bytes());

  INFO("k and v of one batch: their gradients are sums");
  Call broadcast(attention, {.broadcast_kv = true});
  broadcast.run();
  broadcast.judge();
}

}  // namespace

TEST_CASE("emulated GPU: gradients on tensor cores, of each pattern of an index", "[every-kind]") {
  const Attention attention(
      spec_of(bf16, {"q", "k", "v", "gain", "bias", "column", "row", "own", "cap"}),
      {.device = Device::parse("cuda")});
  Call call(attention);
  call.run();
  call.judge();

  expect_equal_bits_and_sums(attention);

  CHECK_THROWS_WITH(call.run(true, 1), ContainsSubstring("bytes; this call of backward needs"));
}

TEST_CASE("emulated GPU: gradients in float32, one of a buffer of f64", "[every-kind]") {
  Spec spec = spec_of(f32, {"k", "column", "bias"});
  spec.buffers.at("bias").dtype = f64;
  const Attention attention(spec, {.device = Device::parse("cuda")});
  Call call(attention);
  call.run();
  call.judge();
}

TEST_CASE("emulated GPU: gradients of q, k and v alone, by sums of dq in memory", "[every-kind]") {
  const Attention attention(spec_of(bf16, {"q", "k", "v"}), {.device = Device::parse("cuda")});
  Call call(attention);
  call.run();
  call.judge();
  CHECK_THROWS_WITH(call.run(false, 1), ContainsSubstring("bytes; this call of backward needs"));

  expect_equal_bits_and_sums(attention);
}

TEST_CASE("emulated GPU: columns past kv_len add nothing to dq, where e^-lse is infinite") {
  Spec spec = spec_of(bf16, {"q", "k", "v"});
  spec.score_mod = "kv_idx < kv_len ? score - 200.0f : score";
  const Attention attention(spec, {.device = Device::parse("cuda")});
  Call call(attention);
  call.run();
  call.judge();
}
