#include "verify/gradients.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/random.hpp"
#include "verify/random_inputs.hpp"

namespace {

using namespace tilewright;
using verify::GradientVerdict;

// Of dout, of v, or of q.
struct OddElement {
  std::int64_t at;
  double value;
};

// A call's gradients, computed by the kernel.
struct Call {
  explicit Call(const Spec& given, const verify::RandomOptions& options = {},
                std::int64_t q_len = 37, std::int64_t kv_len = 50,
                std::optional<OddElement> odd = {}, std::optional<OddElement> odd_value = {},
                std::optional<OddElement> odd_query = {})
      : spec(given),
        shape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = q_len, .kv_len = kv_len},
        inputs(verify::random_inputs(given, shape, 3, options)) {
    const Attention attention(spec, {.device = Device::cpu()});
    if (odd_value) {
      write_element(inputs.v.data(), spec.dtype, odd_value->at, odd_value->value);
    }
    if (odd_query) {
      write_element(inputs.q.data(), spec.dtype, odd_query->at, odd_query->value);
    }
    const verify::Problem problem = inputs.problem();
    const auto like = [](const TensorView& view) {
      return Tensor::zeros(view.dtype, {view.extents().begin(), view.extents().end()});
    };
    Tensor lse = Tensor::zeros(f32, {2, 4, q_len});
    out = like(problem.q);
    dout = like(problem.q);
    verify::Random random(1, "dout");
    for (std::int64_t i = 0; i < dout.numel(); ++i) {
      write_element(dout.data(), dout.dtype(), i, random.normal());
    }
    if (odd) write_element(dout.data(), dout.dtype(), odd->at, odd->value);
    tensors.emplace("dq", like(problem.q));
    tensors.emplace("dk", like(problem.k));
    tensors.emplace("dv", like(problem.v));
    GradientBuffers buffers;
    for (const auto& [name, view] : problem.snippet.buffers) {
      tensors.emplace("d_" + name, like(view));
      buffers.emplace(name, tensors.at("d_" + name));
    }
    const Bindings bindings = attention.bind(problem.snippet);
    const BlockMask mask = attention.block_mask(shape, bindings, {.transposed = true});
    attention.forward({.q = problem.q, .k = problem.k, .v = problem.v, .out = out, .lse = lse},
                      mask, bindings);
    attention.backward({.q = problem.q,
                        .k = problem.k,
                        .v = problem.v,
                        .out = out,
                        .lse = lse,
                        .dout = dout,
                        .dq = tensors.at("dq"),
                        .dk = tensors.at("dk"),
                        .dv = tensors.at("dv")},
                       mask, bindings, buffers);
  }

  verify::GradientResults results() const {
    verify::GradientResults results{.dout = dout, .out = out};
    for (const auto& [name, tensor] : tensors) results.gradients.emplace(name, tensor);
    return results;
  }

  std::map<std::string, GradientVerdict> judge(bool fast_math = false) const {
    verify::GradientResults fast = results();
    fast.fast_math = fast_math;
    return judge(fast);
  }

  std::map<std::string, GradientVerdict> judge(const verify::GradientResults& results) const {
    return verify::judge_gradients(spec, inputs.problem(), results, {}, ThreadPool::shared());
  }

  Spec spec;
  Shape shape;
  verify::Inputs inputs;
  Tensor dout, out;
  std::map<std::string, Tensor> tensors;
};

Spec spec_of(DType dtype) {
  return {.dtype = dtype,
          .head_dim = 16,
          .score_mod = "tanh(score) * gain[h] + max(score, 0) + bias[kv_idx - q_idx + 20]",
          .mask_mod = "q_idx >= kv_idx",
          .buffers = {{"gain", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                      {"bias", {.dtype = f32, .shape = {30}}}},
          .block = {32, 32},
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v", "gain", "bias"}};
}

TEST_CASE("gradients: the kernel's are right, and others are not") {
  for (const DType dtype : {f32, f16, bf16}) {
    Call call(spec_of(dtype), {.broadcast_kv = dtype == f16});
    for (const auto& [name, verdict] : call.judge()) {
      INFO(to_string(dtype) << " " << name << " " << verdict.error_max << " of "
                            << verdict.bound_max);
      for (const std::string& reason : verdict.reasons) UNSCOPED_INFO(reason);
      CHECK(verdict.ok);
      CHECK(verdict.bound_max > 0);
    }
    if (dtype != f32) continue;
    for (auto& [name, tensor] : call.tensors) {
      const double kept = read_element(tensor.data(), tensor.dtype(), 7 % tensor.numel());
      write_element(tensor.data(), tensor.dtype(), 7 % tensor.numel(), kept + 0.01);
      CHECK_FALSE(call.judge().at(name).ok);
      write_element(tensor.data(), tensor.dtype(), 7 % tensor.numel(), kept);
    }
  }
}

// Terms of d_slopes are a hundred times as large as their sum, and so are scores.
TEST_CASE("gradients: a buffer's that is off by a tenth is not right, however far slopes reach") {
  const DType dtype = GENERATE(f32, f16, bf16);
  CAPTURE(to_string(dtype));
  const Spec spec = {.dtype = dtype,
                     .head_dim = 64,
                     .score_mod = "score + slopes[h] * (kv_idx - q_idx)",
                     .mask_mod = "q_idx >= kv_idx",
                     .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
                     .outputs = {.lse = true},
                     .gradients = {"q", "k", "v", "slopes"}};
  Call call(spec, {}, 400, 400);
  CHECK(call.judge().at("d_slopes").ok);
  Tensor& slopes = call.tensors.at("d_slopes");
  for (std::int64_t i = 0; i < slopes.numel(); ++i) {
    write_element(slopes.data(), f32, i, 1.1 * read_element(slopes.data(), f32, i));
  }
  CHECK_FALSE(call.judge().at("d_slopes").ok);
  verify::GradientResults elsewhere = call.results();
  elsewhere.is_from_elsewhere = true;  // whose terms may have 8 bits
  CHECK(call.judge(elsewhere).at("d_slopes").ok == (dtype == bf16));
}

// The mask keeps 100 columns before each row: row 1040 is far from the tiles of the first columns.
TEST_CASE("gradients: where infinity of dout may spread inside of a tile it is not judged") {
  const Spec spec = {.dtype = f32,
                     .head_dim = 16,
                     .mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 100",
                     .block = {32, 32},
                     .outputs = {.lse = true},
                     .gradients = {"q", "k", "v"}};
  constexpr std::int64_t kLength = 1060, kDim = 16, kRow = 1040;  // of the first head
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(value);
    Call call(spec, {}, kLength, kLength, OddElement{kRow * kDim + 3, value});
    for (const auto& [name, verdict] : call.judge()) {
      CAPTURE(name);
      for (const std::string& reason : verdict.reasons) UNSCOPED_INFO(reason);
      CHECK(verdict.ok);
    }
    if (value != kInfinity) continue;
    const auto judge_with = [&](const std::vector<std::pair<const char*, std::int64_t>>& places,
                                double odd) {
      std::map<std::string, Tensor> changed;
      for (const auto& [name, at] : places) {
        Tensor& tensor = call.tensors.at(name);
        changed.emplace(name, Tensor::copy_of(tensor));
        write_element(tensor.data(), f32, at, odd);
      }
      const auto verdicts = call.judge();
      for (auto& [name, tensor] : changed) call.tensors.at(name) = std::move(tensor);
      return verdicts;
    };
    // A column that the row drops, of a tile that it visits.
    constexpr std::int64_t kNear = 1045 * kDim;
    const auto reached = judge_with({{"dv", kNear}}, kInfinity);
    CHECK(reached.at("dv").ok);
    CHECK(reached.at("dv").spread > 0);
    CHECK_FALSE(judge_with({{"dv", kNear}}, 1e4).at("dv").ok);          // a number is judged
    CHECK_FALSE(judge_with({{"dv", 1030 * kDim + 3}}, 0).at("dv").ok);  // the row keeps this one
    // Columns of tiles that are skipped, and another row.
    for (const auto& [name, verdict] :
         judge_with({{"dv", 10 * kDim}, {"dk", 10 * kDim}, {"dq", 10 * kDim}}, kInfinity)) {
      CAPTURE(name);
      CHECK_FALSE(verdict.ok);
    }
    // Another head of v.
    CHECK_FALSE(judge_with({{"dv", kLength * kDim + kNear}}, kInfinity).at("dv").ok);
  }
}

// Writes `odd` to elements of gradients, judges, and puts back what was there.
std::map<std::string, GradientVerdict> judge_with(
    Call& call, const std::vector<std::pair<std::string, std::int64_t>>& places, double odd) {
  std::map<std::string, Tensor> sound;
  for (const auto& [name, at] : places) {
    Tensor& tensor = call.tensors.at(name);
    sound.emplace(name, Tensor::copy_of(tensor));
    write_element(tensor.data(), tensor.dtype(), at, odd);
  }
  auto verdicts = call.judge();
  for (auto& [name, tensor] : sound) call.tensors.at(name) = std::move(tensor);
  return verdicts;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Row 20 of each head keeps columns 0 to 20, and has a score of NaN or +infinity.
Spec spec_of_odd_row(const std::string& score) {
  return {.dtype = f32,
          .head_dim = 16,
          .score_mod = score + " + gain[h] * 0.1 + bias[kv_idx - q_idx + 40]",
          .mask_mod = "q_idx >= kv_idx",
          .buffers = {{"gain", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                      {"bias", {.dtype = f32, .shape = {90}}}},
          .block = {32, 32},
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v", "gain", "bias"}};
}

TEST_CASE("gradients: NaN of a row's scores is wanted where it keeps, and nowhere else") {
  const std::string one = GENERATE("(q_idx == 20 && h == 0 ? INFINITY : score)",
                                   "(q_idx == 20 && h == 0 && kv_idx == 3 ? INFINITY : score)",
                                   "(q_idx == 20 && h == 0 ? sqrt(-1.0 - abs(score)) : score)");
  CAPTURE(one);
  Call call(spec_of_odd_row(one));
  for (const auto& [name, verdict] : call.judge()) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
    CHECK(verdict.spread == 0);
  }
  constexpr std::int64_t kDim = 16, kColumns = 50, kRows = 37;
  const auto is_ok = [&](const std::string& name, std::int64_t at, double odd) {
    return judge_with(call, {{name, at}}, odd).at(name).ok;
  };
  for (const char* const name : {"dk", "dv"}) {
    CAPTURE(name);
    CHECK_FALSE(is_ok(name, 21 * kDim, kNan));               // the row drops it, in its tile
    CHECK_FALSE(is_ok(name, 20 * kDim, 0));                  // the row keeps it
    CHECK_FALSE(is_ok(name, (kColumns + 20) * kDim, kNan));  // of another head of k
    CHECK_FALSE(is_ok(name, 25 * kDim, 1e4));                // a number of other rows
  }
  CHECK_FALSE(is_ok("dq", 19 * kDim, kNan));
  CHECK_FALSE(is_ok("dq", 20 * kDim, 0));
  CHECK_FALSE(is_ok("dq", (kRows + 20) * kDim, kNan));  // of another head of q
  CHECK_FALSE(is_ok("dq", 19 * kDim, 1e4));
  CHECK_FALSE(is_ok("d_gain", 0, 0));
  CHECK_FALSE(is_ok("d_gain", 1, kNan));
  CHECK_FALSE(is_ok("d_bias", 19, kNan));  // of differences below -20
  CHECK_FALSE(is_ok("d_bias", 20, 0));
  CHECK_FALSE(is_ok("d_bias", 41, kNan));  // which no row keeps
}

TEST_CASE("gradients: what a row of NaN keeps with a score of -infinity may be NaN") {
  Call call(
      spec_of_odd_row("(q_idx == 20 && h == 0 ? (kv_idx < 10 ? INFINITY : "
                      "kv_idx < 15 ? -INFINITY : score) : score)"));
  for (const auto& [name, verdict] : call.judge()) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
  }
  const auto of_infinity =
      judge_with(call, {{"dk", 12 * 16}, {"dv", 12 * 16}, {"d_bias", 32}}, kNan);
  for (const char* const name : {"dk", "dv", "d_bias"}) {
    CAPTURE(name, of_infinity.at(name).reasons);
    CHECK(of_infinity.at(name).ok);
    CHECK(of_infinity.at(name).spread == 1);
  }
  CHECK_FALSE(judge_with(call, {{"dk", 12 * 16}}, 1e4).at("dk").ok);
  CHECK_FALSE(judge_with(call, {{"dk", 16 * 16}}, 0).at("dk").ok);  // a number in the row
}

TEST_CASE("gradients: a row whose last kept scores are -infinity is NaN where one is NaN") {
  Call call(
      spec_of_odd_row("(q_idx == 20 && h == 0 ? (kv_idx < 10 ? sqrt(-1.0 - abs(score)) : "
                      "-INFINITY) : score)"));
  for (const auto& [name, verdict] : call.judge()) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
  }
  CHECK_FALSE(judge_with(call, {{"dk", 5 * 16}}, 0).at("dk").ok);
}

// Rows 20 and 22 have a sink of NaN, and 22 keeps nothing.
TEST_CASE("gradients: sinks of NaN and infinity") {
  Spec spec = spec_of_odd_row("score");
  spec.mask_mod = "q_idx >= kv_idx && q_idx != 22";
  spec.sink =
      "q_idx % 2 == 0 && abs(q_idx - 21) < 2 ? INFINITY - INFINITY : "
      "q_idx == 25 ? INFINITY : q_idx == 27 ? -INFINITY : 0.5";
  Call call(spec);
  for (const auto& [name, verdict] : call.judge()) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
    CHECK(verdict.spread == 0);
  }
  CHECK_FALSE(judge_with(call, {{"dk", 20 * 16}}, 0).at("dk").ok);
  CHECK_FALSE(judge_with(call, {{"dk", 21 * 16}}, kNan).at("dk").ok);
  for (const std::int64_t row : {22, 25, 27}) {
    CAPTURE(row);
    CHECK_FALSE(judge_with(call, {{"dq", row * 16}}, kNan).at("dq").ok);
  }
}

// Row 20 of the first head: its dP overflows, and so does its share of dk, d_gain and d_bias.
TEST_CASE("gradients: an element that is left out widens no bound of the others") {
  Call call(spec_of_odd_row("score"), {}, 37, 50, OddElement{20 * 16 + 3, 3e38});
  const auto right = call.judge();
  for (const auto& [name, verdict] : right) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
  }
  for (const char* const name : {"dq", "d_gain"}) {
    CAPTURE(name);
    CHECK(right.at(name).overflow > 0);
    CHECK(right.at(name).bound_max < 0.1);
  }
  CHECK_FALSE(judge_with(call, {{"dq", 21 * 16}}, 9).at("dq").ok);
  CHECK_FALSE(judge_with(call, {{"d_gain", 1}}, 9).at("d_gain").ok);
}

TEST_CASE("gradients: scores of a row that is left out widen no bound of fast functions") {
  Call call(spec_of_odd_row("score"), {}, 37, 50, {}, {}, OddElement{20 * 16 + 3, 3e38});
  const GradientVerdict right = call.judge(true).at("dq");
  CAPTURE(right.reasons);
  CHECK(right.ok);
  CHECK(right.overflow == 16);
  CHECK(right.bound_max < 0.5);
}

TEST_CASE("gradients: a score without weight widens no bound of fast functions") {
  Spec spec = spec_of(bf16);
  spec.score_mod = "kv_idx % 3 == 1 ? -1e30f : " + spec.score_mod;
  const Call call(spec);
  for (const auto& [name, verdict] : call.judge(true)) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
    CHECK(verdict.bound_max < 10);
  }
}

TEST_CASE("gradients: a row of large scores widens what it is part of, and no other row") {
  Call call(spec_of_odd_row("score"), {}, 37, 50, {}, {}, OddElement{20 * 16 + 3, 1e5});
  const auto right = call.judge(true);
  for (const auto& [name, verdict] : right) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
  }
  const auto is_seen = [&](const char* name, std::int64_t at, double value) {
    Tensor& tensor = call.tensors.at(name);
    const Tensor sound = Tensor::copy_of(tensor);
    write_element(tensor.data(), f32, at, value);
    const bool seen = !call.judge(true).at(name).ok;
    call.tensors.at(name) = Tensor::copy_of(sound);
    return seen;
  };
  CHECK(is_seen("dq", 21 * 16 + 5, 9));
  CHECK(is_seen("dv", 25 * 16 + 5, 9));
  CHECK(is_seen("d_gain", 1, 9));
  Tensor& dq = call.tensors.at("dq");
  for (std::int64_t i = 0; i < dq.numel(); ++i) write_element(dq.data(), f32, i, 0);
  CHECK_FALSE(call.judge(true).at("dq").ok);
}

// P is below 2^-126, and 0 in the kernel, or in parts of it.
TEST_CASE("gradients: next to a sink that is far above all scores weights may be 0") {
  for (const double sink : {80, 86, 90, 104}) {
    CAPTURE(sink);
    Spec spec = spec_of_odd_row("min(score, 0)");
    spec.sink = "level";
    spec.scalars = {{"level", {.dtype = f32, .default_value = sink}}};
    Call call(spec);
    for (const auto& [name, verdict] : call.judge()) {
      CAPTURE(name, verdict.reasons);
      CHECK(verdict.ok);
      Tensor& tensor = call.tensors.at(name);
      for (std::int64_t i = 0; i < tensor.numel(); ++i) write_element(tensor.data(), f32, i, 0);
      CHECK(call.judge().at(name).ok == (sink > 80));
      write_element(tensor.data(), f32, 0, 1e-32);
      CHECK_FALSE(call.judge().at(name).ok);
    }
  }
}

// v is finite in all rows but 22, which row 20 drops in its tile.
TEST_CASE("gradients: where NaN of v may spread by delta it is not judged") {
  Spec spec = spec_of_odd_row("score");
  Call call(spec, {}, 37, 50, {}, OddElement{22 * 16 + 3, kNan});
  for (const auto& [name, verdict] : call.judge()) {
    CAPTURE(name, verdict.reasons);
    CHECK(verdict.ok);
  }
  CHECK(judge_with(call, {{"dk", 40 * 16}}, kNan).at("dk").ok);  // of Hopper's kernel
  CHECK_FALSE(judge_with(call, {{"dk", 40 * 16}}, 1e4).at("dk").ok);
  CHECK_FALSE(judge_with(call, {{"dv", 40 * 16}}, kNan).at("dv").ok);
  CHECK_FALSE(judge_with(call, {{"dk", (50 + 40) * 16}}, kNan).at("dk").ok);  // another head
}

}  // namespace
