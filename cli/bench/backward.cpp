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
#include "cli/bench/own_workload.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/bench/written_out.hpp"
#include "cli/progress.hpp"
#include "generator/snippet/snippet.hpp"
#include "runtime/call/staged_backward.hpp"
#include "runtime/io/float16.hpp"
#include "verify/random.hpp"

namespace tilewright::cli {
namespace {

// Calls that stand in a GPU's stream at once, so that the host's part of a call takes no time.
constexpr int kCallsOfSample = 8;

bool is_read_by(const Spec& spec, SnippetKind kind, const std::string& name) {
  const std::string& text = snippet_text(spec, kind);
  return !text.empty() && check_snippet(kind, text).mentions(name);
}

// A spec with gradients of all that may have one.
Spec with_gradients(Spec spec) {
  if (!spec.gradients.empty()) return spec;
  spec.outputs.lse = true;
  spec.gradients = {"q", "k", "v"};
  for (const auto& [name, buffer] : spec.buffers) {
    const bool is_learnt = is_floating(buffer.dtype) &&
                           is_read_by(spec, SnippetKind::score_mod, name) &&
                           !is_read_by(spec, SnippetKind::sink, name);
    if (is_learnt) spec.gradients.push_back(name);
  }
  return spec;
}

// The user's spec, where it may have gradients. It need not name them, so an error says who asks.
Spec own_with_gradients(const Spec& spec) {
  Spec asked = with_gradients(spec);
  try {
    validate(asked);
  } catch (const Error& error) {
    throw Error(ErrorCode::usage,
                fmt::format("--suite backward asks for gradients, which the spec cannot have: {}",
                            error.message()),
                fmt::format("--suite {} measures its forward pass",
                            spec.is_packed() ? "serving" : "dense"));
  }
  return asked;
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
      tensors_.emplace(
          name, name == "q"   ? like(forward.q)
                : name == "k" ? like(forward.k)
                : name == "v" ? like(forward.v)
                : buffer != call.staged().inputs().buffers.end()
                    ? Tensor::zeros(gradient_dtype(buffer->second.dtype), buffer->second.extents())
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
  // All bytes of all gradients.
  std::string bits() const {
    std::string all;
    for (const auto& [name, tensor] : tensors_) {
      all.append(static_cast<const char*>(tensor.data()),
                 static_cast<std::size_t>(tensor.view().bytes()));
    }
    return all;
  }
  // A time means something only where the call wrote numbers.
  void require_numbers(const Spec& spec) const {
    for (const auto& [name, tensor] : tensors_) {
      for (std::int64_t i = 0; i < tensor.numel(); i += 1 + tensor.numel() / 4096) {
        if (std::isfinite(read_element(tensor.data(), tensor.dtype(), i))) continue;
        throw not_finite_error(spec, fmt::format("element {} of the gradient of {}", i, name));
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

StagedBackward stage(const PreparedCall& call, const LearntGradients& gradients,
                     bool deterministic) {
  const auto staged = [&](const auto& shape) {
    return StagedBackward(call.attention(), shape, gradients.tensors(), call.staged().tensors(),
                          gradients.buffers(), call.bindings(), deterministic);
  };
  return call.plan() ? staged(call.plan()->shape()) : staged(call.shape());
}

void enqueue_backward(const PreparedCall& call, const StagedBackward& staged, bool deterministic) {
  const Attention& attention = call.attention();
  const BackwardOptions options{.deterministic = deterministic, .workspace = staged.workspace()};
  if (call.plan()) {
    attention.backward(staged.tensors(), *call.plan(), call.bindings(), staged.gradients(),
                       options);
  } else if (call.mask()) {
    attention.backward(staged.tensors(), *call.mask(), call.bindings(), staged.gradients(),
                       options);
  } else {
    attention.backward(staged.tensors(), call.bindings(), staged.gradients(), options);
  }
}

void require_equal_bits(const PreparedCall& call, const StagedBackward& staged,
                        const LearntGradients& gradients, const BenchArguments& arguments) {
  const std::string first = gradients.bits();
  for (std::int64_t i = 1; i <= arguments.repeats; ++i) {
    enqueue_backward(call, staged, arguments.deterministic);
    staged.copy_back();
    if (gradients.bits() == first) continue;
    throw Error(arguments.deterministic ? ErrorCode::internal : ErrorCode::usage,
                fmt::format("call {} of {} has other bits", i, arguments.repeats),
                arguments.deterministic ? "" : "--deterministic asks for equal bits");
  }
}

Samples time_backward(const PreparedCall& call, const BenchArguments& arguments) {
  const bool deterministic = arguments.deterministic;
  const LearntGradients gradients(call);
  const StagedBackward staged = stage(call, gradients, deterministic);
  const bool gpu = call.device().kind() == Device::Kind::cuda;
  const int calls = gpu ? kCallsOfSample : 1;
  call.forward();
  Samples samples = sample(arguments.timing.budget_ms, [&] {
    for (int i = 0; i < calls; ++i) enqueue_backward(call, staged, deterministic);
    staged.wait();
  });
  samples.median_ms /= calls;
  samples.least_ms /= calls;
  staged.copy_back();
  gradients.require_numbers(call.attention().spec());
  require_equal_bits(call, staged, gradients, arguments);
  return samples;
}

// [total_q, total_kv] of a packed call are its q_len and kv_len.
Json sizes_of(const BenchArguments& arguments, const Workload& workload) {
  const Shape& shape = workload.shape;
  Json sizes = {{"batch", shape.batch},
                {"num_q_heads", shape.num_q_heads},
                {"num_kv_heads", shape.num_kv_heads}};
  sizes[workload.lengths ? "total_q" : "q_len"] = shape.q_len;
  sizes[workload.lengths ? "total_kv" : "kv_len"] = shape.kv_len;
  if (workload.lengths) sizes["inputs"] = arguments.inputs;
  return sizes;
}

Json backward_row(const Workload& workload, const BenchArguments& arguments, ThreadPool& threads) {
  const Spec& spec = workload.spec;
  const PreparedCall call(workload, {.device = arguments.device,
                                     .seed = arguments.seed,
                                     .buffers = arguments.buffers,
                                     .threads = &threads});
  const Samples samples = time_backward(call, arguments);
  // Five products where forward has two.
  const double operations = 2.5 * dense_operations(workload) * call.kept_share();
  Json row = {{"variant", spec.name},        {"dtype", std::string(to_string(spec.dtype))},
              {"head_dim", spec.head_dim},   {"v_head_dim", spec.value_head_dim()},
              {"gradients", spec.gradients}, {"gflops", operations / samples.median_ms / 1e6}};
  row.update(sizes_of(arguments, workload));
  row.update(to_json(samples));
  return row;
}

std::vector<std::string> backward_header(bool gpu) {
  std::vector<std::string> names = {"variant", "dtype", "dims", "shape", "gradients"};
  if (!gpu) names.push_back("threads");
  names.insert(names.end(), {"time", gpu ? "TFLOP/s" : "GFLOP/s"});
  return names;
}

std::vector<std::string> cells(const Workload& workload, const BenchArguments& arguments,
                               const Json& row, bool gpu) {
  const Spec& spec = workload.spec;
  std::vector<std::string> cells = {spec.name, std::string(to_string(spec.dtype)),
                                    fmt::format("{}/{}", spec.head_dim, spec.value_head_dim()),
                                    workload.lengths ? arguments.inputs : workload.shape.describe(),
                                    fmt::format("{}", fmt::join(spec.gradients, ","))};
  if (!gpu) cells.push_back(std::to_string(row["threads"].get<int>()));
  const double rate = row["gflops"].get<double>() / (gpu ? 1000 : 1);
  cells.insert(cells.end(), {format_ms(row["ms"].get<double>()), fmt::format("{:.1f}", rate)});
  return cells;
}

}  // namespace

std::vector<Workload> backward_workloads(const BenchArguments& arguments) {
  if (!arguments.inputs.empty()) {
    Workload own = own_workload(arguments);
    own.spec = own_with_gradients(own.spec);
    return {own};
  }
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
  if (arguments.spec) return {{own_with_gradients(*arguments.spec), shape}};
  std::vector<Workload> workloads;
  for (Spec& spec : mod_variants(dtype_of(arguments), head_dim)) {
    workloads.push_back({with_gradients(std::move(spec)), shape});
  }
  return workloads;
}

BenchResults backward_suite(const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  BenchResults results{Table(backward_header(gpu))};
  const std::vector<Workload> rows = workloads("backward", arguments);
  const std::vector<int> counts = thread_counts(arguments);
  Progress progress(rows.size() * counts.size(), arguments.json);
  for (const Workload& workload : rows) {
    for (const int count : counts) {
      progress.step(workload.spec.name);
      ThreadPool threads(count);
      Json row = backward_row(workload, arguments, threads);
      if (!gpu) row["threads"] = threads.size();
      results.table.add(cells(workload, arguments, row, gpu));
      results.rows.push_back(std::move(row));
    }
  }
  return results;
}

}  // namespace tilewright::cli
