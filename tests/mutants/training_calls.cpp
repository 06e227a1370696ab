#include "tests/mutants/training_calls.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "verify/check.hpp"
#include "verify/gradients.hpp"
#include "verify/random.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"
#include "verify/sequences.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::int64_t kQHeads = 6, kKvHeads = 2;

Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape, const char* name) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  verify::Random random(1, name);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    write_element(tensor.data(), dtype, i, random.normal());
  }
  return tensor;
}

std::vector<std::int64_t> extents(const TensorView& view) {
  return {view.extents().begin(), view.extents().end()};
}

// The number in [0, 1) that the first element of a head draws.
double drawn(std::uint64_t seed, std::int64_t h, const Shape& shape) {
  verify::DropoutDraws draws{
      .p = {}, .seed = seed, .q_offset = shape.q_offset, .kv_offset = shape.kv_offset};
  double least = 0;
  for (double step = 0.5; step >= 0x1p-24; step /= 2) {
    draws.p.assign(kQHeads, least + step);
    if (draws.keeps(0, h, 0, 0)) least += step;
  }
  return least;
}

// At the first element's number, next above and below it, and outside of 0 to 1.
void set_probabilities(const Spec& spec, const Shape& shape, verify::Inputs& inputs) {
  const auto found = inputs.buffers.find("ps");
  if (found == inputs.buffers.end()) return;
  std::uint64_t seed = 0;
  if (spec.has_seed_buffer()) {
    std::memcpy(&seed, inputs.buffers.at("seed").data(), sizeof seed);
  } else {
    seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(inputs.scalars.at("seed")));
  }
  const auto number = [&](std::int64_t h) { return static_cast<float>(drawn(seed, h, shape)); };
  const float ps[kQHeads] = {
      number(0), std::nextafter(number(1), 2.0f),        std::nextafter(number(2), -1.0f), -0.5f,
      1.0f,      std::numeric_limits<float>::quiet_NaN()};
  for (std::int64_t h = 0; h < kQHeads; ++h) {
    write_element(found->second.data(), DType::f32, h, double{ps[h]});
  }
}

std::string wrong_outputs(const Spec& spec, const verify::Problem& problem,
                          const Toolchain& kernels) {
  verify::CheckOptions options;
  options.attention.device = Device::cpu();
  options.attention.kernels = kernels;
  options.interpretations = Toolchain{};
  options.check_undefined = false;
  const verify::Report report = verify::check(spec, problem, options);
  return report.ok ? "" : report.reasons().front();
}

struct alignas(256) WorkspacePart {
  unsigned char bytes[256];
};
using Workspace = std::vector<WorkspacePart>;

// What backward of a call reads and writes.
class Backward {
 public:
  Backward(const Attention& attention, const verify::Problem& problem)
      : attention_(attention), spec_(attention.spec()), problem_(problem) {
    const Shape& shape = problem.shape;
    const std::vector<std::int64_t> rows =
        spec_.is_packed() ? std::vector<std::int64_t>{shape.num_q_heads, shape.q_len}
                          : std::vector<std::int64_t>{shape.batch, shape.num_q_heads, shape.q_len};
    std::vector<std::int64_t> of_out = extents(problem.q);
    of_out.back() = spec_.value_head_dim();
    out_ = Tensor::zeros(spec_.output_dtype(), of_out);
    lse_ = Tensor::zeros(DType::f32, rows);
    dout_ = random_tensor(spec_.output_dtype(), of_out, "dout");
    dlse_ = random_tensor(DType::f32, rows, "dlse");
    for (const std::string& name : spec_.gradients) {
      const std::vector<std::int64_t> shape_of = extents_of(name);
      const bool is_tensor = name == "q" || name == "k" || name == "v";
      const DType dtype = name == "q" ? spec_.dtype
                          : is_tensor ? spec_.key_value_dtype()
                                      : DType::f32;
      Tensor& gradient =
          gradients_.emplace((is_tensor ? "d" : "d_") + name, Tensor::zeros(dtype, shape_of))
              .first->second;
      if (!is_tensor) named_.emplace(name, gradient.view());
    }
    if (spec_.outputs.weights) {
      weights_ = Tensor::zeros(spec_.output_dtype(),
                               {shape.batch, shape.num_q_heads, shape.q_len, shape.kv_len});
    }
  }

  std::string wrong() {
    spec_.is_packed() ? run_packed() : run_dense();
    verify::GradientResults results{.dout = dout_, .out = out_.view(), .dlse = dlse_.view()};
    for (const auto& [name, tensor] : gradients_) results.gradients.emplace(name, tensor);
    for (const auto& [name, verdict] :
         verify::judge_gradients(spec_, problem_, results, Toolchain{}, ThreadPool::shared())) {
      if (!verdict.ok) return fmt::format("{}: {}", name, verdict.reasons.front());
    }
    return "";
  }

 private:
  std::vector<std::int64_t> extents_of(const std::string& name) const {
    if (name == "q") return extents(problem_.q);
    if (name == "k") return extents(problem_.k);
    if (name == "v") return extents(problem_.v);
    const auto buffer = problem_.snippet.buffers.find(name);
    return buffer == problem_.snippet.buffers.end() ? std::vector<std::int64_t>{1}
                                                    : extents(buffer->second);
  }

  std::optional<TensorView> gradient(const char* name) const {
    const auto found = gradients_.find(name);
    if (found == gradients_.end()) return {};
    return found->second.view();
  }

  ForwardTensors forward_tensors() const {
    ForwardTensors tensors{
        .q = problem_.q, .k = problem_.k, .v = problem_.v, .out = out_, .lse = lse_.view()};
    if (weights_) tensors.weights = weights_->view();
    return tensors;
  }

  BackwardTensors tensors() const {
    return {.q = problem_.q,
            .k = problem_.k,
            .v = problem_.v,
            .out = out_,
            .lse = lse_,
            .dout = dout_,
            .dlse = dlse_.view(),
            .dq = gradient("dq"),
            .dk = gradient("dk"),
            .dv = gradient("dv")};
  }

  static TensorView bytes_of(Workspace& memory, std::int64_t bytes) {
    memory.resize(static_cast<std::size_t>(bytes / 256 + 1));
    return TensorView::contiguous(static_cast<void*>(memory.data()), DType::u8, {bytes});
  }

  void run_dense() {
    const Bindings bindings = attention_.bind(problem_.snippet);
    Workspace memory;
    const std::int64_t q_offset = problem_.shape.q_offset, kv_offset = problem_.shape.kv_offset;
    const BackwardOptions options{
        .q_offset = q_offset,
        .kv_offset = kv_offset,
        .workspace = bytes_of(
            memory, attention_.workspace_size(problem_.shape, Pass::backward, bindings, false))};
    if (spec_.mask_mod.empty()) {
      attention_.forward(forward_tensors(), bindings,
                         {.q_offset = q_offset, .kv_offset = kv_offset});
      attention_.backward(tensors(), bindings, named_, options);
      return;
    }
    const BlockMask mask = attention_.block_mask(problem_.shape, bindings, {.transposed = true});
    attention_.forward(forward_tensors(), mask, bindings,
                       {.q_offset = q_offset, .kv_offset = kv_offset});
    attention_.backward(tensors(), mask, bindings, named_, options);
  }

  void run_packed() {
    const Bindings bindings = attention_.bind(problem_.snippet);
    const PackedShape shape = verify::packed_shape(problem_);
    Workspace of_plan, of_backward;
    const Plan plan = attention_.plan(
        shape, *problem_.sequences, bindings,
        {.workspace = bytes_of(of_plan, attention_.workspace_size(shape)), .backward = true});
    attention_.forward(forward_tensors(), plan, bindings);
    attention_.backward(
        tensors(), plan, bindings, named_,
        {.workspace = bytes_of(of_backward,
                               attention_.workspace_size(shape, Pass::backward, bindings, false))});
  }

  const Attention& attention_;
  const Spec& spec_;
  const verify::Problem& problem_;
  Tensor out_, lse_, dout_, dlse_;
  std::optional<Tensor> weights_;
  std::map<std::string, Tensor> gradients_;
  GradientBuffers named_;
};

std::string wrong_in(const Attention& attention, const verify::Problem& problem,
                     const Toolchain& kernels) {
  std::string wrong = wrong_outputs(attention.spec(), problem, kernels);
  return wrong.empty() ? Backward(attention, problem).wrong() : wrong;
}

}  // namespace

std::vector<Spec> training_specs() {
  const BufferSpec of_heads{.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
  Spec dense = {.name = "training",
                .dtype = DType::f32,
                .head_dim = 24,
                .v_head_dim = 40,
                .score_mod = "score * gain[h] + slope * (kv_idx - q_idx)",
                .mask_mod = "(q_idx + 40 >= kv_idx && kv_idx % 7 != 2) || kv_idx > 140",
                .dropout = "ps[h]",
                .buffers = {{"gain", of_heads},
                            {"ps", of_heads},
                            {"seed", {.dtype = DType::i64, .range = {{-0x1p52, 0x1p52}}}}},
                .scalars = {{"slope", {.dtype = DType::f32, .default_value = 0.01}}},
                .block = {32, 64},
                .outputs = {.lse = true, .weights = true},
                .gradients = {"q", "k", "v", "gain", "slope"}};
  Spec plain = dense;
  plain.name = "training without dropout and mask";
  plain.dtype = DType::bf16;
  plain.mask_mod.clear();
  plain.dropout.clear();
  plain.buffers.erase("ps");
  plain.buffers.erase("seed");
  plain.gradients = {"k", "v", "slope"};
  Spec packed = {.name = "packed training",
                 .dtype = DType::f16,
                 .head_dim = 32,
                 .layout = Layout::packed,
                 .score_mod = "score + gain[h] * kv_idx",
                 .mask_mod = "q_idx >= kv_idx || (kv_idx > 60 && h != 2)",
                 .dropout = "0.4f",
                 .buffers = {{"gain", of_heads}},
                 .scalars = {{"seed", {.dtype = DType::i64}}},
                 .outputs = {.lse = true},
                 .gradients = {"q", "k", "v", "gain"}};
  packed.buffers.at("gain").range = {{-0.02, 0.02}};
  return {dense, plain, packed};
}

std::string wrong_training_call(const Attention& attention, const Toolchain& kernels) {
  const Spec& spec = attention.spec();
  if (spec.is_packed()) {
    verify::PackedLengths lengths = {.num_q_heads = kQHeads, .num_kv_heads = kKvHeads};
    lengths.sequences = {{1, 43}, {50, 50}, {0, 9}, {35, 18}, {21, 170}};
    const verify::PackedInputs inputs = verify::random_packed_inputs(spec, lengths, 7);
    return wrong_in(attention, inputs.problem(), kernels);
  }
  const Shape shape{.batch = 2,
                    .num_q_heads = kQHeads,
                    .num_kv_heads = kKvHeads,
                    .q_len = 75,
                    .kv_len = 151,
                    .q_offset = 5,
                    .kv_offset = spec.has_seed_buffer() ? 3 : -6};
  verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  set_probabilities(spec, shape, inputs);
  return wrong_in(attention, inputs.problem(), kernels);
}

}  // namespace tilewright::mutants
