#include "cli/bench/measure.hpp"

#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/kept.hpp"
#include "cli/bench/packed_workload.hpp"
#include "cli/bench/written_out.hpp"
#include "cli/call.hpp"
#include "cli/inputs.hpp"
#include "generator/tactic/tactic.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/call/plan_map.hpp"
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

}  // namespace

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
      attention_(workload.spec, {.device = options.device,
                                 .kernels = command_line_toolchain(),
                                 .threads = options.threads}),
      lengths_(workload.lengths),
      inputs_(make_inputs(workload, options)),
      view_(lengths_ ? inputs_.problem() : inputs_.inputs.problem()) {
  view_.batch_invariant = options.batch_invariant;
  const Spec& spec = workload.spec;
  const Shape& shape = workload.shape;
  std::vector<std::int64_t> extents(view_.q.extents().begin(), view_.q.extents().end());
  extents.back() = spec.value_head_dim();
  out_ = Tensor::zeros(spec.output_dtype(), extents);
  if (spec.outputs.lse) {
    std::vector<std::int64_t> rows = {shape.num_q_heads, shape.q_len};
    if (!lengths_) rows.insert(rows.begin(), shape.batch);
    lse_ = Tensor::zeros(DType::f32, rows);
  }
  staged_ = std::make_unique<const StagedCall>(options.device, host_tensors(), view_.snippet);
  bindings_ = attention_.bind(staged_->inputs());
  if (lengths_) {
    make_plan();
  } else if (!spec.mask_mod.empty()) {
    mask_ = attention_.block_mask(shape, bindings_, {.transposed = !spec.gradients.empty()});
    density_ = mask_->density();
  }
}

void PreparedCall::make_plan() {
  staged_plan_ = std::make_unique<const StagedPlan>(
      attention_, verify::packed_shape(view_), *view_.sequences, bindings_,
      StagedPlan::OnFaults::clamp, nullptr, view_.batch_invariant);
  plan_ = std::make_unique<Plan>(staged_plan_->plan());
  const PlanMap map(*plan_, attention_.spec().block);
  if (map.has_tiles()) density_ = map.counts().density();
}

ForwardTensors PreparedCall::host_tensors() const {
  ForwardTensors tensors{
      .q = view_.q, .k = view_.k, .v = view_.v, .out = out_.view(), .lse = std::nullopt};
  tensors.k_new = view_.k_new;
  tensors.v_new = view_.v_new;
  if (lse_) tensors.lse = lse_->view();
  return tensors;
}

verify::PackedInputs PreparedCall::make_inputs(const Workload& workload, const Options& options) {
  require_memory(workload.spec, workload.shape);
  verify::PackedInputs inputs;
  if (workload.lengths) {
    inputs = adjacent_sequences(workload.spec, *workload.lengths, options.seed);
  } else {
    inputs.inputs = verify::random_inputs(workload.spec, workload.shape, options.seed);
  }
  if (!options.buffers.empty()) take_buffers(workload.spec, options.buffers, inputs.inputs);
  return inputs;
}

std::string PreparedCall::tactic() const {
  return choose_tactic(attention_.spec(), attention_.target()).describe();
}

void PreparedCall::build_mask() const {
  attention_.block_mask(view_.shape, bindings_);
}

void PreparedCall::enqueue_rebuild(Stream stream) const {
  attention_.rebuild(*plan_, bindings_, stream);
}

void PreparedCall::enqueue() const {
  if (plan_) {
    attention_.forward(staged_->tensors(), *plan_, bindings_);
  } else if (mask_) {
    attention_.forward(staged_->tensors(), *mask_, bindings_);
  } else {
    attention_.forward(staged_->tensors(), bindings_);
  }
}

void PreparedCall::wait() const {
  staged_->wait();
}

void PreparedCall::poison_out() const {
  const TensorView& out = staged_->tensors().out;
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
  staged_->copy_back();
  require_numbers(out_);
}

void PreparedCall::require_result_at(std::size_t number) const {
  // A prime that no size divides, so that all parts of out have their turn.
  constexpr std::uint64_t kStride = 2654435761;
  const auto index =
      static_cast<std::int64_t>(number * kStride % static_cast<std::uint64_t>(out_.numel()));
  const DType dtype = out_.dtype();
  const auto* element = static_cast<const char*>(staged_->tensors().out.data) +
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
  require_number(value.data(), dtype, index);
}

double PreparedCall::kept_share() const {
  if (!lengths_) {
    return cli::kept_share(attention_.spec(), view_.shape, staged_->inputs(), device(), threads_);
  }
  return packed_kept_share(attention_.spec(), view_, *lengths_, staged_->inputs(), device(),
                           threads_);
}

}  // namespace tilewright::cli
