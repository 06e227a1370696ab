#include "tests/generator/cpu_kernel.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

// Greatest error of out: that of float sums, or half a unit in the last place of a 16-bit type.
double tolerance(const Spec& spec) {
  switch (spec.output_dtype()) {
    case DType::f16:
      return 6e-4;
    case DType::bf16:
      return 5e-3;
    default:
      return 8e-6;
  }
}

Spec dense(std::int64_t head_dim = 64) {
  Spec spec{.dtype = f32, .head_dim = head_dim};
  spec.outputs.lse = true;
  return spec;
}

void require_right(const Spec& spec, const Call& call, const Mods& mods) {
  const Call::Difference difference = call.difference(mods);
  CAPTURE(spec.score_mod, spec.mask_mod, spec.head_dim, call.shape().q_len, call.shape().kv_len);
  REQUIRE(difference.out <= tolerance(spec));
  REQUIRE(difference.lse <= 1e-5);
}

void check(const Spec& spec, const CallShape& shape, const Mods& mods = {},
           const Target& target = Target::host_cpu()) {
  Call call(spec, shape);
  call.run(load_kernel(spec, "forward_lse", target));
  require_right(spec, call, mods);
}

void check_masked(const Spec& spec, const CallShape& shape, const Mods& mods,
                  bool per_batch = false, bool per_head = false,
                  const Target& target = Target::host_cpu()) {
  Call call(spec, shape);
  const BlockLists lists(spec, shape, mods, per_batch ? shape.batch : 1,
                         per_head ? shape.q_heads : 1);
  call.run(load_kernel(spec, "forward_masked_lse", target), &lists);
  require_right(spec, call, mods);
}

Mods causal() {
  Mods mods;
  mods.mask = [](int, int, int q, int kv) { return q >= kv; };
  return mods;
}

Spec causal_spec() {
  Spec spec = dense();
  spec.mask_mod = "q_idx >= kv_idx";
  return spec;
}

}  // namespace

TEST_CASE("cpu kernel: lengths that no tile divides") {
  const int q_len = GENERATE(1, 2, 15, 17, 33, 49, 64, 65, 127);
  const int kv_len = GENERATE(1, 2, 7, 9, 64, 127, 129, 257);
  check(dense(), {.q_len = q_len, .kv_len = kv_len});
}

TEST_CASE("cpu kernel: unequal head dims, from 16 to 256") {
  using Dims = std::array<std::int64_t, 2>;
  const Dims dims = GENERATE(Dims{16, 256}, Dims{24, 40}, Dims{136, 128}, Dims{256, 16},
                             Dims{192, 128}, Dims{256, 256});
  Spec spec = dense(dims[0]);
  spec.v_head_dim = dims[1];
  check(spec, {.q_len = 70, .kv_len = 150});
}

TEST_CASE("cpu kernel: grouped query heads, batches, and k and v of one batch for all") {
  check(dense(), {.batch = 3, .q_heads = 6, .kv_heads = 2, .q_len = 20, .kv_len = 40});
  check(dense(),
        {.batch = 3, .q_heads = 4, .kv_heads = 1, .q_len = 20, .kv_len = 40, .kv_batch = 1});
}

TEST_CASE("cpu kernel: layouts, near and far rows") {
  Spec spec = dense();
  spec.layout = GENERATE(Layout::bhsd, Layout::bshd);
  spec.kv_layout = GENERATE(Layout::bhsd, Layout::bshd);
  check(spec, {.batch = 2, .q_heads = 3, .kv_heads = 3, .q_len = 80, .kv_len = 140});
  check(spec, {.q_heads = 8, .kv_heads = 8, .q_len = 70, .kv_len = 130});
}

TEST_CASE("cpu kernel: 16-bit types, alone and mixed") {
  Spec spec = dense();
  using Types = std::array<DType, 3>;
  const Types types = GENERATE(Types{f16, f16, f16}, Types{bf16, bf16, bf16}, Types{f32, bf16, f16},
                               Types{f16, f32, bf16}, Types{bf16, f16, f32});
  spec.dtype = types[0];
  spec.kv_dtype = types[1];
  spec.out_dtype = types[2];
  check(spec, {.q_heads = 2, .kv_heads = 1, .q_len = 70, .kv_len = 131});
}

TEST_CASE("cpu kernel: every target that this machine can run, and forced tiles") {
  const Target target = Target::parse(GENERATE("cpu", "cpu-x86-64-v3", "cpu-x86-64-v4"));
  if (!can_run(target)) return;
  Spec spec = causal_spec();
  for (const std::int64_t q_tile : {16, 32, 48, 64, 128}) {
    spec.block = {q_tile == 48 ? 96 : 128, 64};
    spec.tactic = TacticSpec{"cpu", {{"q_tile", q_tile}, {"kv_tile", 48}}};
    check_masked(spec, {.q_heads = 2, .kv_heads = 2, .q_len = 201, .kv_len = 201}, causal(), false,
                 false, target);
  }
}

TEST_CASE("cpu kernel: a scale of any sign, and zero") {
  Call call(dense(), {.q_len = 40, .kv_len = 50});
  call.scale = GENERATE(-0.3f, 0.0f, 1.0f);
  call.run(load_kernel(dense(), "forward_lse"));
  require_right(dense(), call, {});
}

TEST_CASE("cpu kernel: block masks of any block, rows with nothing kept") {
  Spec spec = dense();
  spec.block = {GENERATE(16, 48, 128, 256), GENERATE(16, 112, 128, 256)};
  spec.mask_mod = "int d = q_idx - kv_idx; return d >= 0 && d < 70 && q_idx % 7 != 3;";
  Mods mods;
  mods.mask = [](int, int, int q, int kv) { return q - kv >= 0 && q - kv < 70 && q % 7 != 3; };
  check_masked(spec, {.q_heads = 2, .kv_heads = 2, .q_len = 300, .kv_len = 290}, mods);
}

TEST_CASE("cpu kernel: block masks per batch and per head") {
  Spec spec = dense();
  spec.block = {32, 32};
  spec.mask_mod = "kv_idx <= q_idx + 20 * b - 15 * h";
  Mods mods;
  mods.mask = [](int b, int h, int q, int kv) { return kv <= q + 20 * b - 15 * h; };
  check_masked(spec, {.batch = 2, .q_heads = 3, .kv_heads = 1, .q_len = 100, .kv_len = 90}, mods,
               true, true);
}

TEST_CASE("cpu kernel: offsets shift the indices that snippets see") {
  const CallShape shape{.q_len = 30, .kv_len = 130, .q_offset = 90, .kv_offset = 5};
  check_masked(causal_spec(), shape, causal());
  check(causal_spec(), shape, causal());
}

TEST_CASE("cpu kernel: a full tile never asks mask_mod") {
  // The lists say that all tiles are full, so the mask, which drops everything, is not heard.
  Spec spec = dense();
  spec.mask_mod = "false";
  const CallShape shape{.q_len = 100, .kv_len = 300};
  Call call(spec, shape);
  const BlockLists lists(spec, shape, Mods{}, 1, 1);
  call.run(load_kernel(spec, "forward_masked_lse"), &lists);
  require_right(spec, call, {});
}

TEST_CASE("cpu kernel: without a block mask mask_mod is asked everywhere") {
  check(causal_spec(), {.q_heads = 2, .kv_heads = 2, .q_len = 150, .kv_len = 170}, causal());
}

TEST_CASE("cpu kernel: without mask_mod partial tiles are whole") {
  const CallShape shape{.q_len = 100, .kv_len = 300};
  Call call(dense(), shape);
  BlockLists lists(dense(), shape, Mods{}, 1, 1);
  std::swap(lists.indices, lists.full_indices);
  std::swap(lists.row_offsets, lists.full_row_offsets);
  call.run(load_kernel(dense(), "forward_masked_lse"), &lists);
  require_right(dense(), call, {});
}

TEST_CASE("cpu kernel: an empty block mask gives 0 and -inf, whatever V holds") {
  const Spec spec = causal_spec();
  const CallShape shape{.q_len = 70, .kv_len = 70};
  Call call(spec, shape);
  call.set_v(0, 0, 3, 3, NAN);
  Mods nothing;
  nothing.mask = [](int, int, int, int) { return false; };
  const BlockLists lists(spec, shape, nothing, 1, 1);
  call.run(load_kernel(spec, "forward_masked_lse"), &lists);
  require_right(spec, call, nothing);
  CHECK(call.out(0, 0, 0, 0) == 0.0f);
  CHECK(call.lse(0, 0, 0) == -INFINITY);
}

TEST_CASE("cpu kernel: a row with nothing kept is 0 in a tile where others meet a NaN of V") {
  Spec spec = dense();
  spec.mask_mod = "q_idx % 2 == 0";
  Call call(spec, {.q_len = 20, .kv_len = 20});
  call.set_v(0, 0, 3, 3, NAN);
  call.run(load_kernel(spec, "forward_lse"));
  CHECK(call.out(0, 0, 1, 3) == 0.0f);
  CHECK(call.lse(0, 0, 1) == -INFINITY);
  CHECK(std::isnan(call.out(0, 0, 2, 3)));
}

TEST_CASE("cpu kernel: what K holds in dropped rows never reaches a query") {
  const Spec spec = causal_spec();
  const CallShape shape{.q_len = 100, .kv_len = 100};
  for (const float poison : {NAN, INFINITY, -INFINITY}) {
    Call call(spec, shape);
    for (int d = 0; d < 64; ++d) call.set_k(0, 0, 60, d, poison);
    const BlockLists lists(spec, shape, causal(), 1, 1);
    call.run(load_kernel(spec, "forward_masked_lse"), &lists);
    require_right(spec, call, causal());
    CHECK(std::isfinite(call.out(0, 0, 59, 0)));
    CHECK(std::isnan(call.out(0, 0, 60, 0)));
  }
}

TEST_CASE("cpu kernel: infinite and NaN scores behave as in exact softmax") {
  Spec spec = dense();
  spec.score_mod = GENERATE("kv_idx == 5 && q_idx == 9 ? INFINITY : score",
                            "kv_idx == 5 && q_idx == 9 ? INFINITY - INFINITY : score",
                            "q_idx == 9 ? -INFINITY : score", "kv_idx < 128 ? -INFINITY : score");
  const std::string text = spec.score_mod;
  Mods mods;
  mods.score = [text](double s, int, int, int q, int kv) {
    const bool one = kv == 5 && q == 9;
    const double infinity = std::numeric_limits<double>::infinity();
    if (text[0] == 'q') return q == 9 ? -infinity : s;
    if (text.find("<") != std::string::npos) return kv < 128 ? -infinity : s;
    if (text.find(" - ") != std::string::npos) return one ? NAN : s;
    return one ? infinity : s;
  };
  check(spec, {.q_len = 40, .kv_len = 200}, mods);
}

TEST_CASE("cpu kernel: scores as large as a float are no reason for NaN") {
  Spec spec = dense();
  spec.score_mod = "kv_idx % 2 == 0 ? -3.4e38f : q_idx == 3 ? -3.4e38f : score * 1e30f";
  Mods mods;
  mods.score = [](double s, int, int, int q, int kv) {
    return kv % 2 == 0 || q == 3 ? double{-3.4e38f} : s * 1e30f;
  };
  check(spec, {.q_len = 20, .kv_len = 140}, mods);
}

TEST_CASE("cpu kernel: nothing is written behind the last row") {
  const Spec spec = dense();
  Call call(spec, {.q_len = 33, .kv_len = 20});
  call.run(load_kernel(spec, "forward_lse"));
  CHECK(std::isnan(call.out(0, 0, 33, 0)));
  CHECK(std::isnan(call.lse(0, 0, 33)));
}

TEST_CASE("cpu kernel: loading and running a kernel leaves the floating-point modes alone") {
#if defined(__x86_64__)
  const unsigned before = __builtin_ia32_stmxcsr();
  check(dense(), {.q_len = 3, .kv_len = 3});
  CHECK((__builtin_ia32_stmxcsr() & 0xffc0u) == (before & 0xffc0u));
#endif
}
