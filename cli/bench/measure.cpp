#include "cli/bench/measure.hpp"

#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/kept.hpp"
#include "cli/call.hpp"
#include "cli/inputs.hpp"
#include "generator/tactic/tactic.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/cuda/context.hpp"

namespace tilewright::cli {
namespace {

constexpr unsigned char kPoison = 0xff;

// A floating-point element as bits: all ones where it is poison, and whether it is finite.
struct Bits {
  std::uint32_t all;
  std::uint32_t exponent;
};

Bits bits_of(DType dtype) {
  if (dtype == DType::f32) return {0xffffffff, 0x7f800000};
  return {0xffff, dtype == DType::bf16 ? 0x7f80u : 0x7c00u};
}

std::uint32_t element_bits(const void* data, DType dtype, std::int64_t index) {
  if (dtype == DType::f32) return static_cast<const std::uint32_t*>(data)[index];
  return static_cast<const std::uint16_t*>(data)[index];
}

void require_number(std::uint32_t element, DType dtype, std::int64_t index) {
  const Bits bits = bits_of(dtype);
  if ((element & bits.exponent) != bits.exponent) return;
  if (element == bits.all) {
    throw Error(ErrorCode::internal,
                fmt::format("the kernel that was timed left element {} of out unwritten", index),
                "its time means nothing; `tilewright check` says what else is wrong");
  }
  throw Error(
      ErrorCode::internal,
      fmt::format("the kernel that was timed wrote no finite number to element {} of out", index),
      "`tilewright check` says whether the kernel or the snippets are wrong");
}

// Written for a compiler that vectorises it: outs have tens of millions of elements.
template <typename Element>
bool all_finite(const void* data, std::int64_t count, Element exponent) {
  const auto* elements = static_cast<const Element*>(data);
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < count; ++i) bad += (elements[i] & exponent) == exponent;
  return bad == 0;
}

bool all_finite(const Tensor& tensor) {
  const std::uint32_t exponent = bits_of(tensor.dtype()).exponent;
  if (tensor.dtype() == DType::f32) return all_finite(tensor.data(), tensor.numel(), exponent);
  return all_finite(tensor.data(), tensor.numel(), static_cast<std::uint16_t>(exponent));
}

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
  const Shape& shape = workload.shape;
  const double pairs = static_cast<double>(shape.batch * shape.num_q_heads) *
                       static_cast<double>(shape.q_len) * static_cast<double>(shape.kv_len);
  return 2.0 * static_cast<double>(workload.spec.head_dim + workload.spec.value_head_dim()) * pairs;
}

PreparedCall::PreparedCall(const Workload& workload, const Options& options)
    : threads_(options.threads),
      attention_(workload.spec, {.device = options.device,
                                 .kernels = command_line_toolchain(),
                                 .threads = options.threads}),
      inputs_(make_inputs(workload, options)),
      view_(inputs_.problem()) {
  const Spec& spec = workload.spec;
  const Shape& shape = workload.shape;
  std::vector<std::int64_t> extents(view_.q.extents().begin(), view_.q.extents().end());
  extents[3] = spec.value_head_dim();
  out_ = Tensor::zeros(spec.output_dtype(), extents);
  if (spec.outputs.lse) {
    lse_ = Tensor::zeros(DType::f32, {shape.batch, shape.num_q_heads, shape.q_len});
  }
  staged_ = std::make_unique<const StagedCall>(options.device, host_tensors(), view_.snippet);
  bindings_ = attention_.bind(staged_->inputs());
  if (!spec.mask_mod.empty()) mask_ = attention_.block_mask(shape, bindings_);
}

ForwardTensors PreparedCall::host_tensors() const {
  ForwardTensors tensors{
      .q = view_.q, .k = view_.k, .v = view_.v, .out = out_.view(), .lse = std::nullopt};
  if (lse_) tensors.lse = lse_->view();
  return tensors;
}

verify::Inputs PreparedCall::make_inputs(const Workload& workload, const Options& options) {
  require_memory(workload.spec, workload.shape);
  verify::Inputs inputs = verify::random_inputs(workload.spec, workload.shape, options.seed);
  if (!options.buffers.empty()) take_buffers(workload.spec, options.buffers, inputs);
  return inputs;
}

std::string PreparedCall::tactic() const {
  return choose_tactic(attention_.spec(), attention_.target()).describe();
}

void PreparedCall::build_mask() const {
  attention_.block_mask(view_.shape, bindings_);
}

void PreparedCall::enqueue() const {
  if (mask_) {
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
  if (all_finite(out_)) return;
  for (std::int64_t i = 0; i < out_.numel(); ++i) {
    require_number(element_bits(out_.data(), out_.dtype(), i), out_.dtype(), i);
  }
}

void PreparedCall::require_result_at(std::size_t number) const {
  // A prime that no size divides, so that all parts of out have their turn.
  constexpr std::uint64_t kStride = 2654435761;
  const auto index =
      static_cast<std::int64_t>(number * kStride % static_cast<std::uint64_t>(out_.numel()));
  const DType dtype = out_.dtype();
  const auto* element = static_cast<const char*>(staged_->tensors().out.data) +
                        index * static_cast<std::int64_t>(size_of(dtype));
  std::uint32_t bits = 0;
  if (device().kind() == Device::Kind::cpu) {
    std::memcpy(&bits, element, size_of(dtype));
  } else {
    const cuda::Driver& driver = cuda::Driver::get();
    const cuda::ContextScope scope(driver, device().index());
    driver.check(driver.functions().copy_to_host(&bits, reinterpret_cast<std::uintptr_t>(element),
                                                 size_of(dtype), nullptr),
                 "reading an element of out");
    driver.check(driver.functions().stream_synchronize(nullptr), "reading an element of out");
  }
  require_number(bits, dtype, index);
}

double PreparedCall::kept_share() const {
  return cli::kept_share(attention_.spec(), view_.shape, staged_->inputs(), device(), threads_);
}

}  // namespace tilewright::cli
