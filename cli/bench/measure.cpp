#include "cli/bench/measure.hpp"

#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/kept.hpp"
#include "cli/bench/packed_workload.hpp"
#include "cli/bench/written_out.hpp"
#include "cli/call.hpp"
#include "cli/inputs.hpp"
#include "cli/kernels.hpp"
#include "generator/tactic/tactic.hpp"
#include "runtime/api/decode_gain.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/call/plan_map.hpp"
#include "runtime/call/plan_state.hpp"
#include "runtime/cuda/context.hpp"
#include "verify/sequences.hpp"

namespace tilewright::cli {
namespace {

// Buffers from a file take the place of random ones; the file may hold nothing else.
void take_buffers(const Spec& spec, const std::string& path, verify::Inputs& inputs) {
  std::vector<std::string> names;
  for (const auto& [name, buffer] : spec.buffers) names.push_back(name);
  TensorFile file = read_safetensors(path, names);
  if (!file.skipped.empty()) {
    throw Error(ErrorCode::tensor,
                fmt::format("\"{}\" holds \"{}\", which is no buffer of the spec", path,
                            file.skipped.front()));
  }
  for (auto& [name, tensor] : file.tensors) inputs.buffers.at(name) = std::move(tensor);
}

verify::PackedInputs random_tensors(const Workload& workload, std::uint64_t seed,
                                    const std::string& buffers) {
  require_memory(workload.spec, workload.shape);
  verify::PackedInputs inputs;
  if (workload.lengths) {
    inputs = adjacent_sequences(workload.spec, *workload.lengths, seed);
  } else {
    inputs.inputs = verify::random_inputs(workload.spec, workload.shape, seed);
  }
  if (!buffers.empty()) take_buffers(workload.spec, buffers, inputs.inputs);
  return inputs;
}

ForwardTensors host_tensors(const verify::Problem& view, const Tensor& out,
                            const std::optional<Tensor>& lse,
                            const std::optional<Tensor>& max_scores,
                            const std::optional<Tensor>& weights) {
  ForwardTensors tensors{
      .q = view.q, .k = view.k, .v = view.v, .out = out.view(), .lse = std::nullopt};
  tensors.k_new = view.k_new;
  tensors.v_new = view.v_new;
  if (lse) tensors.lse = lse->view();
  if (max_scores) tensors.max_scores = max_scores->view();
  if (weights) tensors.weights = weights->view();
  return tensors;
}

}  // namespace

Spec with_tactic(Spec spec, const TacticSpec& tactic) {
  spec.tactic = tactic;
  return spec;
}

Samples summarize(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.size()};
}

Json to_json(const Samples& samples) {
  return {{"ms", samples.median_ms}, {"ms_min", samples.least_ms}, {"samples", samples.count}};
}

double dense_operations(const Workload& workload) {
  const Spec& spec = workload.spec;
  const Shape& shape = workload.shape;
  const double pairs = workload.lengths
                           ? pairs_of(*workload.lengths)
                           : static_cast<double>(shape.batch) * static_cast<double>(shape.q_len) *
                                 static_cast<double>(shape.kv_len);
  return 2.0 * static_cast<double>(spec.head_dim + spec.value_head_dim()) *
         static_cast<double>(shape.num_q_heads) * pairs;
}

PreparedCall::PreparedCall(const Workload& workload, const Options& options)
    : threads_(options.threads),
      attention_(workload.spec,
                 {.device = options.device,
                  .kernels = command_line_toolchain(),
                  .threads = options.threads,
                  .decode = options.decode &&
                            gains_from_decode(workload.spec, workload.shape, options.device)}),
      lengths_(workload.lengths),
      tensors_(make_tensors(workload, options)) {
  bind();
}

PreparedCall::PreparedCall(const PreparedCall& other, const TacticSpec& tactic)
    : threads_(other.threads_),
      attention_(with_tactic(other.attention_.spec(), tactic), {.device = other.device(),
                                                                .kernels = command_line_toolchain(),
                                                                .threads = other.threads_}),
      tensors_(other.tensors_) {
  bind();
}

void PreparedCall::bind() {
  const Spec& spec = attention_.spec();
  bindings_ = attention_.bind(staged().inputs());
  if (!lengths_) workspace_ = std::make_unique<const StagedWorkspace>(attention_, shape());
  if (lengths_) {
    make_plan();
  } else if (!spec.mask_mod.empty()) {
    mask_ = attention_.block_mask(shape(), bindings_, {.transposed = !spec.gradients.empty()});
    density_ = mask_->density();
  }
}

void PreparedCall::make_plan() {
  const verify::Problem& view = tensors_->view;
  staged_plan_ = std::make_unique<const StagedPlan>(
      attention_, verify::packed_shape(view), *view.sequences, bindings_,
      StagedPlan::OnFaults::clamp, verify::wishes_of(view));
  plan_ = std::make_unique<Plan>(staged_plan_->plan());
  const PlanMap map(*plan_, attention_.spec().block);
  if (map.has_tiles()) density_ = map.counts().density();
}

std::shared_ptr<const PreparedCall::Tensors> PreparedCall::make_tensors(const Workload& workload,
                                                                        const Options& options) {
  const auto& [spec, shape, lengths] = workload;
  auto made = std::make_shared<Tensors>(
      Tensors{.inputs = random_tensors(workload, options.seed, options.buffers), .view = {}});
  verify::Problem& view = made->view;
  view = lengths ? made->inputs.problem() : made->inputs.inputs.problem();
  view.batch_invariant = options.batch_invariant;
  view.splits = options.splits;
  std::vector<std::int64_t> extents(view.q.extents().begin(), view.q.extents().end());
  extents.back() = spec.value_head_dim();
  made->out = Tensor::zeros(spec.output_dtype(), extents);
  std::vector<std::int64_t> rows = {shape.num_q_heads, shape.q_len};
  if (!lengths) rows.insert(rows.begin(), shape.batch);
  if (spec.outputs.lse) made->lse = Tensor::zeros(DType::f32, rows);
  if (spec.outputs.max_scores) made->max_scores = Tensor::zeros(DType::f32, rows);
  if (spec.outputs.weights) {
    rows.push_back(shape.kv_len);
    made->weights = Tensor::zeros(spec.output_dtype(), rows);
  }
  made->staged = std::make_unique<const StagedCall>(
      options.device, host_tensors(view, made->out, made->lse, made->max_scores, made->weights),
      view.snippet);
  return made;
}

KernelVariant PreparedCall::variant() const {
  KernelVariant kernel = kernel_of_calls(attention_, shape());
  if (plan_ && plan_->state().decodes_all()) {
    kernel.rows = KernelRows::decode;
  } else if (plan_) {
    kernel.split = plan_->state().split_parts() > 1;
    kernel.resident = plan_->state().resident_heads() > 0;
  }
  return kernel;
}

std::string PreparedCall::tactic() const {
  return choose_tactic(attention_.spec(), attention_.target(), variant()).describe();
}

std::string PreparedCall::kernel() const {
  return variant().name();
}

void PreparedCall::build_mask() const {
  attention_.block_mask(shape(), bindings_);
}

void PreparedCall::enqueue_rebuild(Stream stream) const {
  attention_.rebuild(*plan_, bindings_, stream);
}

void PreparedCall::enqueue() const {
  if (plan_) {
    attention_.forward(staged().tensors(), *plan_, bindings_);
    return;
  }
  const ForwardOptions options = {.workspace = workspace_->view(), .splits = tensors_->view.splits};
  if (mask_) {
    attention_.forward(staged().tensors(), *mask_, bindings_, options);
  } else {
    attention_.forward(staged().tensors(), bindings_, options);
  }
}

void PreparedCall::wait() const {
  staged().wait();
}

void PreparedCall::poison_out() const {
  const TensorView& out = staged().tensors().out;
  const auto bytes = static_cast<std::size_t>(out.bytes());
  if (device().kind() == Device::Kind::cpu) {
    std::memset(out.data, kPoison, bytes);
    return;
  }
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::ContextScope scope(driver, device().index());
  driver.check(driver.functions().fill_bytes(reinterpret_cast<std::uintptr_t>(out.data), kPoison,
                                             bytes, nullptr),
               "filling out");
}

void PreparedCall::require_result() const {
  staged().copy_back();
  require_numbers(attention_.spec(), tensors_->out);
}

void PreparedCall::require_result_at(std::size_t number) const {
  // A prime that no size divides, so that all parts of out have their turn.
  constexpr std::uint64_t kStride = 2654435761;
  const auto index = static_cast<std::int64_t>(number * kStride %
                                               static_cast<std::uint64_t>(tensors_->out.numel()));
  const DType dtype = tensors_->out.dtype();
  const auto* element = static_cast<const char*>(staged().tensors().out.data) +
                        index * static_cast<std::int64_t>(size_of(dtype));
  std::array<std::byte, sizeof(double)> value = {};
  if (device().kind() == Device::Kind::cpu) {
    std::memcpy(value.data(), element, size_of(dtype));
  } else {
    const cuda::Driver& driver = cuda::Driver::get();
    const cuda::ContextScope scope(driver, device().index());
    driver.check(
        driver.functions().copy_to_host(value.data(), reinterpret_cast<std::uintptr_t>(element),
                                        size_of(dtype), nullptr),
        "reading an element of out");
    driver.check(driver.functions().stream_synchronize(nullptr), "reading an element of out");
  }
  require_number(attention_.spec(), value.data(), dtype, index);
}

double PreparedCall::kept_share() const {
  if (!lengths_) {
    return cli::kept_share(attention_.spec(), shape(), staged().inputs(), device(), threads_);
  }
  return packed_kept_share(attention_.spec(), tensors_->view, *lengths_, staged().inputs(),
                           device(), threads_);
}

}  // namespace tilewright::cli
