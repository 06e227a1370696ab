#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/progress.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/call/staged_backward.hpp"
#include "runtime/io/float16.hpp"
#include "verify/random.hpp"

namespace tilewright::cli {
namespace {

// Calls that stand in a GPU's stream at once, so that the host's part of a call takes no time.
constexpr int kCallsOfSample = 8;

// A spec with gradients of all that may have one.
Spec with_gradients(Spec spec) {
  if (!spec.gradients.empty()) return spec;
  spec.outputs.lse = true;
  spec.gradients = {"q", "k", "v"};
  for (const auto& [name, buffer] : spec.buffers) {
    const bool is_learnt = is_floating(buffer.dtype) &&
                           check_snippet(SnippetKind::score_mod, spec.score_mod).mentions(name);
    if (is_learnt) spec.gradients.push_back(name);
  }
  return spec;
}

std::vector<Spec> backward_variants(DType dtype, std::int64_t head_dim) {
  std::vector<Spec> specs;
  for (Spec& spec : mod_variants(dtype, head_dim)) specs.push_back(with_gradients(std::move(spec)));
  return specs;
}

// The gradients of a call, on the host.
class LearntGradients {
 public:
  explicit LearntGradients(const PreparedCall& call) {
    const ForwardTensors& forward = call.staged().tensors();
    dout_ = like(forward.out);
    verify::Random random(1, "dout");
    for (std::int64_t i = 0; i < dout_.numel(); ++i) {
      write_element(dout_.data(), dout_.dtype(), i, random.normal());
    }
    for (const std::string& name : call.attention().spec().gradients) {
      const auto buffer = call.staged().inputs().buffers.find(name);
      tensors_.emplace(name, name == "q"   ? like(forward.q)
                             : name == "k" ? like(forward.k)
                             : name == "v" ? like(forward.v)
                             : buffer != call.staged().inputs().buffers.end()
                                 ? like(buffer->second)
                                 : Tensor::zeros(DType::f32, {1}));
    }
  }

  BackwardTensors tensors() const {
    return {.dout = dout_, .dq = view("q"), .dk = view("k"), .dv = view("v")};
  }
  GradientBuffers buffers() const {
    GradientBuffers buffers;
    for (const auto& [name, tensor] : tensors_) {
      if (name != "q" && name != "k" && name != "v") buffers.emplace(name, tensor);
    }
    return buffers;
  }
  // A time means something only where the call wrote numbers.
  void require_numbers() const {
    for (const auto& [name, tensor] : tensors_) {
      for (std::int64_t i = 0; i < tensor.numel(); i += 1 + tensor.numel() / 4096) {
        if (std::isfinite(read_element(tensor.data(), tensor.dtype(), i))) continue;
        throw Error(ErrorCode::internal,
                    fmt::format("element {} of the gradient of {} is no number", i, name));
      }
    }
  }

 private:
  static Tensor like(const TensorView& view) {
    return Tensor::zeros(view.dtype, {view.extents().begin(), view.extents().end()});
  }
  std::optional<TensorView> view(const char* name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return std::nullopt;
    return found->second.view();
  }

  Tensor dout_;
  std::map<std::string, Tensor> tensors_;
};

Samples time_backward(const PreparedCall& call, double budget_ms) {
  const LearntGradients gradients(call);
  const StagedBackward staged(call.attention(), call.shape(), gradients.tensors(),
                              call.staged().tensors(), gradients.buffers(), call.bindings(), false);
  const bool gpu = call.device().kind() == Device::Kind::cuda;
  const int calls = gpu ? kCallsOfSample : 1;
  const BackwardOptions options{.workspace = staged.workspace()};
  call.forward();
  Samples samples = sample(budget_ms, [&] {
    for (int i = 0; i < calls; ++i) {
      if (call.mask()) {
        call.attention().backward(staged.tensors(), *call.mask(), call.bindings(),
                                  staged.gradients(), options);
      } else {
        call.attention().backward(staged.tensors(), call.bindings(), staged.gradients(), options);
      }
    }
    staged.wait();
  });
  samples.median_ms /= calls;
  samples.least_ms /= calls;
  staged.copy_back();
  gradients.require_numbers();
  return samples;
}

}  // namespace

BenchResults backward_suite(const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  const std::int64_t head_dim = arguments.spec ? arguments.spec->head_dim : head_dim_of(arguments);
  const std::int64_t length = arguments.q_len != 0 ? arguments.q_len : gpu ? 8192 : 1024;
  const std::int64_t heads = gpu ? std::max<std::int64_t>(2048 / head_dim, 1) : 4;
  const std::int64_t batch = gpu ? std::max<std::int64_t>(16384 / length, 1) : 1;
  const Shape shape = shape_of(arguments, {.batch = batch,
                                           .num_q_heads = heads,
                                           .num_kv_heads = heads,
                                           .q_len = length,
                                           .kv_len = length});
  BenchResults results{Table(
      {"variant", "dtype", "dims", "shape", "gradients", "time", gpu ? "TFLOP/s" : "GFLOP/s"})};
  std::vector<Spec> specs = own_or(arguments, backward_variants(dtype_of(arguments), head_dim));
  keep_wanted(specs, arguments.only, [](const Spec& spec) { return spec.name; });
  Progress progress(specs.size(), arguments.json);
  for (const Spec& named : specs) {
    const Spec spec = with_gradients(named);
    progress.step(spec.name);
    const PreparedCall call(
        {spec, shape},
        {.device = arguments.device, .seed = arguments.seed, .buffers = arguments.buffers});
    const Samples samples = time_backward(call, arguments.timing.budget_ms);
    // Five products where forward has two.
    const double operations = 2.5 * dense_operations({spec, shape}) * call.kept_share();
    const double rate = operations / samples.median_ms / 1e6;
    results.table.add({spec.name, std::string(to_string(spec.dtype)),
                       fmt::format("{}/{}", spec.head_dim, spec.value_head_dim()), shape.describe(),
                       fmt::format("{}", fmt::join(spec.gradients, ",")),
                       format_ms(samples.median_ms),
                       fmt::format("{:.1f}", rate / (gpu ? 1000 : 1))});
    Json row = {{"variant", spec.name},
                {"dtype", std::string(to_string(spec.dtype))},
                {"head_dim", spec.head_dim},
                {"v_head_dim", spec.value_head_dim()},
                {"batch", shape.batch},
                {"num_q_heads", shape.num_q_heads},
                {"num_kv_heads", shape.num_kv_heads},
                {"q_len", shape.q_len},
                {"kv_len", shape.kv_len},
                {"gradients", spec.gradients},
                {"gflops", rate}};
    row.update(to_json(samples));
    results.rows.push_back(std::move(row));
  }
  return results;
}

}  // namespace tilewright::cli
