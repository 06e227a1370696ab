#include "tests/mutants/training_calls.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "fuzz/case_gradients.hpp"
#include "fuzz/kernel_call.hpp"
#include "fuzz/written.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/mutants/packed_calls.hpp"
#include "verify/dropout.hpp"
#include "verify/fast_math.hpp"
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

// Of the tensors of a call of backward, and of the memory around them.
std::string wrong_gradients(const Attention& attention, const verify::Problem& problem,
                            bool deterministic) {
  const Spec& spec = attention.spec();
  const verify::fuzz::FuzzCase call = {
      .spec = spec, .shape = problem.shape, .seed = 1, .dlse = true};
  const verify::fuzz::Written written(call);
  const verify::fuzz::CaseGradients gradients(call, problem);
  const verify::fuzz::KernelCall run =
      run_kernels(attention, problem, written, /*is_bounded=*/true, /*is_split=*/false,
                  {.gradients = &gradients, .deterministic = deterministic});
  if (run.changed) return *run.changed;
  for (const std::string& wrong :
       {written.damage(), gradients.damage(), gradients.touched_row(problem)}) {
    if (!wrong.empty()) return wrong;
  }
  verify::GradientResults results = gradients.results();
  results.out = written.out_view();
  results.fast_math = verify::uses_fast_math(spec, attention.device());
  for (const auto& [name, verdict] :
       verify::judge_gradients(spec, problem, results, Toolchain{}, ThreadPool::shared())) {
    if (!verdict.ok) return fmt::format("{}: {}", name, verdict.reasons.front());
  }
  return "";
}

std::string wrong_in(const Attention& attention, const verify::Problem& problem,
                     const Toolchain& kernels) {
  std::string wrong = wrong_by_reference(problem, attention, kernels);
  if (wrong.empty()) wrong = wrong_gradients(attention, problem, /*deterministic=*/false);
  // A CPU has one order.
  if (!wrong.empty() || attention.device().kind() == Device::Kind::cpu) return wrong;
  wrong = wrong_gradients(attention, problem, /*deterministic=*/true);
  return wrong.empty() ? "" : "deterministic " + wrong;
}

std::string wrong_packed(const Attention& attention, const Toolchain& kernels) {
  verify::PackedLengths lengths = {.num_q_heads = kQHeads, .num_kv_heads = kKvHeads};
  lengths.sequences = {{1, 43}, {50, 50}, {0, 9}, {35, 18}, {21, 170}};
  const verify::PackedInputs inputs = verify::random_packed_inputs(attention.spec(), lengths, 7);
  return wrong_in(attention, inputs.problem(), kernels);
}

std::string wrong_dense(const Attention& attention, Shape shape, const Toolchain& kernels) {
  const Spec& spec = attention.spec();
  shape.num_q_heads = kQHeads;
  shape.num_kv_heads = kKvHeads;
  shape.q_offset = 5;
  shape.kv_offset = spec.has_seed_buffer() ? 3 : -6;
  verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  set_probabilities(spec, shape, inputs);
  return wrong_in(attention, inputs.problem(), kernels);
}

}  // namespace

std::string wrong_training_call(const Attention& attention, const Toolchain& kernels) {
  if (attention.spec().is_packed()) return wrong_packed(attention, kernels);
  return wrong_dense(attention, {.batch = 2, .q_len = 75, .kv_len = 151}, kernels);
}

std::string wrong_hopper_training_call(const Attention& attention, const Toolchain& kernels) {
  if (attention.spec().is_packed()) return wrong_packed(attention, kernels);
  // Two tiles of rows, and three blocks of columns, the last of which has fewer.
  return wrong_dense(attention, {.batch = 1, .q_len = 150, .kv_len = 331}, kernels);
}

}  // namespace tilewright::mutants
