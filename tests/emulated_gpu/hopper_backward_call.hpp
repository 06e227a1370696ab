#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../base/error.hpp"
#include "../../generator/render/kernel_source.hpp"
#include "../../generator/snippet/spec_facts.hpp"
#include "../../generator/spec/gradients.hpp"
#include "../../runtime/api/attention.hpp"
#include "../../runtime/api/thread_pool.hpp"
#include "../../runtime/io/float16.hpp"
#include "../../verify/fast_math.hpp"
#include "../../verify/gradients.hpp"
#include "../../verify/random.hpp"
#include "../../verify/random_inputs.hpp"
#include "../support/catch.hpp"
#include "faulty_templates.hpp"

// Calls of the backward kernels for Hopper on the emulated GPU.

namespace tilewright::test {

inline constexpr std::int64_t kSpareRows = 3, kSpareColumns = 8;

// A tensor whose rows are followed by others in memory, which hold NaN: what a kernel reads there
// shows, and what it writes there too.
class Embedded {
 public:
  Embedded(DType dtype, const std::vector<std::int64_t>& shape)
      : memory_(Tensor::zeros(
            dtype, {shape[0], shape[1], shape[2] + kSpareRows, shape[3] + kSpareColumns})),
        view_(memory_.view()) {
    for (std::int64_t i = 0; i < memory_.numel(); ++i) {
      write_element(memory_.data(), dtype, i, std::nan(""));
    }
    view_.shape[2] = shape[2];
    view_.shape[3] = shape[3];
  }
  explicit Embedded(const TensorView& from)
      : Embedded(from.dtype, {from.shape[0], from.shape[1], from.shape[2], from.shape[3]}) {
    for_each([&](std::int64_t row, std::int64_t column, std::int64_t at) {
      const double x = read_element(from.data, from.dtype, row * from.shape[3] + column);
      write_element(memory_.data(), from.dtype, at, x);
    });
  }

  const TensorView& view() const { return view_; }
  std::string bits() const {
    const auto bytes = static_cast<std::size_t>(memory_.view().bytes());
    return {static_cast<const char*>(memory_.data()), bytes};
  }
  void write(std::int64_t head, std::int64_t row, double x) {
    const std::int64_t at = head * view_.strides[1] + row * view_.strides[2];
    write_element(memory_.data(), view_.dtype, at + 3, x);
  }
  // Whether what is no element is NaN still, and all elements were written.
  bool is_intact(bool some_are_nan) const {
    std::vector<bool> is_element(static_cast<std::size_t>(memory_.numel()));
    for_each([&](std::int64_t, std::int64_t, std::int64_t at) {
      is_element[static_cast<std::size_t>(at)] = true;
    });
    for (std::int64_t i = 0; i < memory_.numel(); ++i) {
      const bool is_nan = std::isnan(read_element(memory_.data(), view_.dtype, i));
      const bool is_one = is_element[static_cast<std::size_t>(i)];
      if (is_nan == is_one && !(some_are_nan && is_one)) return false;
    }
    return true;
  }

 private:
  template <typename Body>
  void for_each(Body&& body) const {
    const std::int64_t heads = view_.shape[0] * view_.shape[1];
    for (std::int64_t row = 0; row < heads * view_.shape[2]; ++row) {
      const std::int64_t head = row / view_.shape[2];
      for (std::int64_t column = 0; column < view_.shape[3]; ++column) {
        body(row, column,
             head * view_.strides[1] + row % view_.shape[2] * view_.strides[2] + column);
      }
    }
  }

  Tensor memory_;
  TensorView view_;
};

struct CallOptions {
  std::int64_t q_offset = 0;
  bool has_dlse = true;
  bool deterministic = false;
  bool has_odd_scores = false;               // NaN and +infinity
  std::vector<std::int64_t> dead_rows = {};  // whose dout and dlse hold NaN and infinity
  std::shared_ptr<const jinja::Loader> templates = nullptr;  // none: the sound ones
};

class HopperCall {
 public:
  HopperCall(const Spec& spec, const Shape& shape, CallOptions options = {})
      : options_(std::move(options)),
        shape_(shape),
        attention_(spec,
                   {.device = Device::parse("cuda"), .kernels = {.templates = options_.templates}}),
        inputs_(verify::random_inputs(spec, shape, 3)),
        problem_(inputs_.problem()),
        q_(problem_.q),
        k_(problem_.k),
        v_(problem_.v),
        out_(spec.dtype, {shape.batch, shape.num_q_heads, shape.q_len, spec.value_head_dim()}),
        dout_(noise(out_.view())),
        lse_(Tensor::zeros(f32, {shape.batch, shape.num_q_heads, shape.q_len})),
        dlse_(Tensor::zeros(f32, {shape.batch, shape.num_q_heads, shape.q_len})),
        dq_(spec.dtype, {shape.batch, shape.num_q_heads, shape.q_len, spec.head_dim}),
        dk_(spec.dtype, {shape.batch, shape.num_kv_heads, shape.kv_len, spec.head_dim}),
        dv_(spec.dtype, {shape.batch, shape.num_kv_heads, shape.kv_len, spec.value_head_dim()}) {
    problem_.q = q_.view();
    problem_.k = k_.view();
    problem_.v = v_.view();
    shape_.q_offset = problem_.shape.q_offset = options_.q_offset;
    verify::Random random(2, "dlse");
    for (std::int64_t i = 0; i < dlse_.numel() && options_.has_dlse; ++i) {
      write_element(dlse_.data(), f32, i, random.normal());
    }
    for (const std::string& name : gradient_names(spec)) {
      const auto buffer = problem_.snippet.buffers.find(name);
      Tensor tensor =
          buffer == problem_.snippet.buffers.end() ? Tensor::zeros(f32, {1}) : like(buffer->second);
      for (std::int64_t i = 0; i < tensor.numel(); ++i) {
        write_element(tensor.data(), tensor.dtype(), i, std::nan(""));
      }
      named_.emplace(name, std::move(tensor));
    }
    for (const std::int64_t row : options_.dead_rows) {
      for (std::int64_t head = 0; head < shape.batch * shape.num_q_heads; ++head) {
        dout_.write(head, row, std::nan(""));
        write_element(dlse_.data(), f32, head * shape.q_len + row,
                      std::numeric_limits<double>::infinity());
      }
    }
  }

  void run() {
    const Bindings bindings = attention_.bind(problem_.snippet);
    std::optional<BlockMask> mask;
    const bool masks = !attention_.spec().mask_mod.empty();
    if (masks) {
      mask = attention_.block_mask(shape_, bindings, {.transposed = true});
    }
    const ForwardTensors forward{
        .q = q_.view(), .k = k_.view(), .v = v_.view(), .out = out_.view(), .lse = lse_};
    const ForwardOptions of_forward{.q_offset = options_.q_offset};
    if (masks) attention_.forward(forward, *mask, bindings, of_forward);
    if (!masks) attention_.forward(forward, bindings, of_forward);
    // The workspace's bytes are NaN.
    const std::int64_t bytes =
        attention_.workspace_size(shape_, Pass::backward, bindings, options_.deterministic);
    Tensor workspace = Tensor::zeros(u8, {bytes});
    std::memset(workspace.data(), 0xff, static_cast<std::size_t>(bytes));
    BackwardTensors tensors{.q = q_.view(),
                            .k = k_.view(),
                            .v = v_.view(),
                            .out = out_.view(),
                            .lse = lse_,
                            .dout = dout_.view(),
                            .dq = dq_.view(),
                            .dk = dk_.view(),
                            .dv = dv_.view()};
    if (options_.has_dlse) tensors.dlse = dlse_.view();
    GradientBuffers named;
    for (const auto& [name, tensor] : named_) named.emplace(name, tensor);
    const BackwardOptions of_backward{.q_offset = options_.q_offset,
                                      .deterministic = options_.deterministic,
                                      .workspace = workspace};
    if (masks) attention_.backward(tensors, *mask, bindings, named, of_backward);
    if (!masks) attention_.backward(tensors, bindings, named, of_backward);
  }

  void judge() const {
    CHECK(are_intact());
    const auto all = verdicts();
    CHECK(all.size() == 3 + named_.size());
    for (const auto& [name, verdict] : all) {
      CAPTURE(name, verdict.reasons);
      CHECK(verdict.ok);
    }
  }

  // Of dq, dk and dv, and of what lies between their rows.
  std::string bits() const { return dq_.bits() + dk_.bits() + dv_.bits(); }

  bool is_right() const {
    const auto all = verdicts();
    return are_intact() &&
           std::all_of(all.begin(), all.end(), [](const auto& one) { return one.second.ok; });
  }

 private:
  bool are_intact() const {
    return dq_.is_intact(options_.has_odd_scores) && dk_.is_intact(options_.has_odd_scores) &&
           dv_.is_intact(options_.has_odd_scores);
  }

  std::map<std::string, verify::GradientVerdict> verdicts() const {
    verify::GradientResults results{.dout = dout_.view(), .dlse = dlse_};
    results.gradients.emplace("dq", dq_.view());
    results.gradients.emplace("dk", dk_.view());
    results.gradients.emplace("dv", dv_.view());
    for (const auto& [name, tensor] : named_) results.gradients.emplace("d_" + name, tensor);
    results.fast_math = verify::uses_fast_math(attention_.spec(), attention_.device());
    return verify::judge_gradients(attention_.spec(), problem_, results, {}, ThreadPool::shared());
  }

  static Tensor like(const TensorView& view) {
    return Tensor::zeros(view.dtype, {view.extents().begin(), view.extents().end()});
  }

  static Embedded noise(const TensorView& view) {
    Tensor tensor = like(view);
    verify::Random random(1, "dout");
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      write_element(tensor.data(), view.dtype, i, random.normal());
    }
    return Embedded(tensor.view());
  }

  CallOptions options_;
  Shape shape_;
  Attention attention_;
  verify::Inputs inputs_;
  verify::Problem problem_;
  Embedded q_, k_, v_, out_, dout_;
  Tensor lse_, dlse_;
  Embedded dq_, dk_, dv_;
  std::map<std::string, Tensor> named_;  // gradients of buffers and scalars
};

inline bool takes_maps(const Spec& spec) {
  const SpecFacts facts(spec);
  const KernelSource source =
      kernel_metadata(facts, Target::parse("sm_90a"), backward_kernel(spec));
  return std::find(source.entry_points.begin(), source.entry_points.end(),
                   "tilewright_backward_main") != source.entry_points.end();
}

inline void check_on_hopper(const Spec& spec, const Shape& shape, CallOptions options = {}) {
  CHECK(takes_maps(spec));
  HopperCall call(spec, shape, std::move(options));
  call.run();
  call.judge();
}

/// Whether calls with a fault are right after all: each runs its threads in another order, and a
/// race shows in some of them.
inline bool is_right(const Fault& fault, const Spec& spec, const Shape& shape,
                     CallOptions options) {
  constexpr int kOrders = 16;
  options.templates = std::make_shared<FaultyTemplates>(fault);
  try {
    for (int order = 0; order < kOrders; ++order) {
      HopperCall call(spec, shape, options);
      call.run();
      if (!call.is_right()) return false;
    }
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::device) throw;
    return false;  // the emulator ended the kernel
  }
}

inline constexpr Shape kRagged{
    .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 203, .kv_len = 150};

}  // namespace tilewright::test
