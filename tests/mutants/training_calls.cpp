#include "tests/mutants/training_calls.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/backward_of_call.hpp"
#include "verify/check.hpp"
#include "verify/gradients.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::int64_t kQHeads = 6, kKvHeads = 2;

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

std::string wrong_gradient(const Attention& attention, const verify::Problem& problem) {
  BackwardOfCall backward(attention, problem);
  backward.add_dlse();
  backward.run();
  for (const auto& [name, verdict] : verify::judge_gradients(
           attention.spec(), problem, backward.results(), Toolchain{}, ThreadPool::shared())) {
    if (!verdict.ok) return fmt::format("{}: {}", name, verdict.reasons.front());
  }
  return "";
}

std::string wrong_in(const Attention& attention, const verify::Problem& problem,
                     const Toolchain& kernels) {
  std::string wrong = wrong_outputs(attention.spec(), problem, kernels);
  return wrong.empty() ? wrong_gradient(attention, problem) : wrong;
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
