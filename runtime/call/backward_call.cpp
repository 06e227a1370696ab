#include "runtime/call/backward_call.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/call/named_gradients.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright {
namespace {

struct NamedTensor {
  std::string name;
  TensorView view;
};

[[noreturn]] void refuse(std::string_view name, const std::string& why, const std::string& hint) {
  throw Error(ErrorCode::tensor, fmt::format("{} {}", name, why), hint);
}

void require_contiguous_rows(std::string_view name, const TensorView& view) {
  const auto last = static_cast<std::size_t>(view.rank) - 1;
  if (view.shape[last] <= 1 || view.strides[last] == 1) return;
  refuse(name,
         fmt::format("has stride {} in its last dimension, which must be contiguous",
                     view.strides[last]),
         "given: " + view.describe());
}

class Resolver {
 public:
  Resolver(const Spec& spec, const BackwardTensors& tensors, const Bindings& bindings,
           const GradientBuffers& gradients)
      : spec_(spec), tensors_(tensors), bindings_(bindings), gradients_(gradients) {}

  BackwardCall dense(const BackwardOptions& options) {
    return run(resolve_call(spec_, forward_tensors(), forward_options(options), Pass::backward),
               options);
  }

  BackwardCall packed(const PackedShape& shape, const TensorView& plan,
                      const BackwardOptions& options) {
    read_.push_back({"the plan's workspace", plan});
    return run(resolve_packed_call(spec_, forward_tensors(), shape, forward_options(options),
                                   Pass::backward),
               options);
  }

 private:
  ForwardTensors forward_tensors() const {
    return {.q = tensors_.q,
            .k = tensors_.k,
            .v = tensors_.v,
            .out = tensors_.out,
            .lse = tensors_.lse};
  }

  static ForwardOptions forward_options(const BackwardOptions& options) {
    return {.q_offset = options.q_offset,
            .kv_offset = options.kv_offset,
            .scale = options.scale,
            .stream = options.stream};
  }

  BackwardCall run(const ForwardCall& forward, const BackwardOptions& options) {
    BackwardCall call;
    call.forward = forward;
    bindings_.check(spec_, call.forward.shape);
    require_like("dout", tensors_.dout, "out", tensors_.out, spec_.output_dtype());
    require_contiguous_rows("dout", tensors_.dout);
    call.dout = resolved(tensors_.dout, spec_.layout);
    call.dlse = dlse();
    call.dq = gradient_of("q", tensors_.dq, tensors_.q, spec_.dtype, spec_.layout);
    call.dk = gradient_of("k", tensors_.dk, tensors_.k, spec_.key_value_dtype(),
                          spec_.key_value_layout());
    call.dv = gradient_of("v", tensors_.dv, tensors_.v, spec_.key_value_dtype(),
                          spec_.key_value_layout());
    call.sums_dk = tensors_.dk && !spec_.is_packed() && tensors_.k.shape[0] == 1;
    call.sums_dv = tensors_.dv && !spec_.is_packed() && tensors_.v.shape[0] == 1;
    take_named(call);
    call.deterministic = options.deterministic;
    call.workspace = options.workspace;
    if (call.workspace.data != nullptr) written_.push_back({"workspace", call.workspace});
    require_written_apart();
    return call;
  }

  const float* dlse() const {
    if (!tensors_.dlse) return nullptr;
    require_like("dlse", *tensors_.dlse, "lse", tensors_.lse, DType::f32);
    if (!tensors_.dlse->is_contiguous()) {
      refuse("dlse", "is not contiguous", "given: " + tensors_.dlse->describe());
    }
    return static_cast<const float*>(tensors_.dlse->data);
  }

  ResolvedTensor gradient_of(const std::string& name, const std::optional<TensorView>& gradient,
                             const TensorView& tensor, DType dtype, Layout layout) {
    const std::string own = "d" + name;
    if (!has_gradient(spec_, name)) {
      if (!gradient) return {};
      refuse(own, fmt::format("was given, but the spec's gradients do not name \"{}\"", name),
             fmt::format("leave it out, or add \"{}\" to the spec's gradients", name));
    }
    if (!gradient) {
      refuse(own, fmt::format("is missing, but the spec's gradients name \"{}\"", name),
             fmt::format("give a tensor in the shape of {}", name));
    }
    require_like(own, *gradient, name, tensor, dtype);
    require_contiguous_rows(own, *gradient);
    require_own_elements(own, *gradient);
    written_.push_back({own, *gradient});
    return resolved(*gradient, layout);
  }

  void take_named(BackwardCall& call) {
    call.gradients = named_gradients(spec_, bindings_, gradients_);
    std::size_t index = 0;
    for (const std::string& name : gradient_names(spec_)) {
      written_.push_back({"d_" + name, call.gradients[index++]});
    }
  }

  void require_written_apart() const {
    std::vector<NamedTensor> others = read_;
    others.insert(others.end(), {{"q", tensors_.q},
                                 {"k", tensors_.k},
                                 {"v", tensors_.v},
                                 {"out", tensors_.out},
                                 {"lse", tensors_.lse},
                                 {"dout", tensors_.dout}});
    if (tensors_.dlse) others.push_back({"dlse", *tensors_.dlse});
    std::size_t index = 0;
    for (const auto& [name, buffer] : spec_.buffers) {
      others.push_back({fmt::format("buffer \"{}\"", name), bindings_.buffers()[index++]});
    }
    for (const NamedTensor& written : written_) {
      for (const NamedTensor& other : others) {
        if (!overlap(written.view, other.view)) continue;
        refuse(written.name, fmt::format("overlaps {} in memory", other.name),
               fmt::format("give {} memory of its own", written.name));
      }
      others.push_back(written);
    }
  }

  const Spec& spec_;
  const BackwardTensors& tensors_;
  const Bindings& bindings_;
  const GradientBuffers& gradients_;
  std::vector<NamedTensor> read_ = {};  // in addition to the call's tensors and buffers
  std::vector<NamedTensor> written_ = {};
};

}  // namespace

void require_gradients(const Spec& spec) {
  if (!spec.gradients.empty()) return;
  throw Error(ErrorCode::usage, "the spec names no gradients, so it has no backward pass",
              R"(add "gradients": ["q", "k", "v"] to the spec)");
}

BackwardCall resolve_backward_call(const Spec& spec, const BackwardTensors& tensors,
                                   const Bindings& bindings, const GradientBuffers& gradients,
                                   const BackwardOptions& options) {
  require_gradients(spec);
  return Resolver(spec, tensors, bindings, gradients).dense(options);
}

BackwardCall resolve_packed_backward(const Spec& spec, const BackwardTensors& tensors,
                                     const PackedShape& shape, const TensorView& plan,
                                     const Bindings& bindings, const GradientBuffers& gradients,
                                     const BackwardOptions& options) {
  require_gradients(spec);
  return Resolver(spec, tensors, bindings, gradients).packed(shape, plan, options);
}

Shape one_batch(const PackedShape& shape) {
  return {.batch = 1,
          .num_q_heads = shape.num_q_heads,
          .num_kv_heads = shape.num_kv_heads,
          .q_len = shape.total_q,
          .kv_len = shape.total_kv};
}

}  // namespace tilewright
