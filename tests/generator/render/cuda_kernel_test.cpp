#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using test::nvrtc_is_missing;

namespace {

struct Compiled {
  KernelSource source;
  cuda::Nvrtc::Result result;
};

Compiled compile(const Spec& spec, std::string_view target, std::string_view kernel) {
  KernelSource source = render_kernel(spec, Target::parse(target), KernelVariant::parse(kernel),
                                      *default_template_loader());
  cuda::Nvrtc::Result result = cuda::Nvrtc::get().compile(source.text, target, source.options);
  return {std::move(source), std::move(result)};
}

void require_compiles(const Spec& spec, std::string_view target, std::string_view kernel) {
  const Compiled compiled = compile(spec, target, kernel);
  INFO(kernel << " for " << target << ", head_dim " << spec.head_dim << "\n"
              << compiled.result.log.substr(0, 2000));
  REQUIRE(compiled.result.succeeded);
  const auto resources = cuda::parse_ptxas_log(compiled.result.log);
  for (const std::string& entry : compiled.source.entry_points) {
    REQUIRE(std::any_of(resources.begin(), resources.end(), [&](const auto& kernel_resources) {
      return kernel_resources.entry == entry;
    }));
  }
}

int spill_bytes(const Spec& spec, std::string_view target, std::string_view kernel) {
  const Compiled compiled = compile(spec, target, kernel);
  if (!compiled.result.succeeded) return -1;
  int bytes = 0;
  for (const auto& resources : cuda::parse_ptxas_log(compiled.result.log)) {
    bytes += resources.spill_bytes;
  }
  return bytes;
}

Spec alibi_documents(DType dtype, std::int64_t head_dim) {
  Spec spec{.dtype = dtype, .head_dim = head_dim};
  spec.score_mod = "score + slopes[h] * (kv_idx - q_idx)";
  spec.mask_mod = "q_idx >= kv_idx && doc(b, q_idx) == doc(b, kv_idx)";
  spec.buffers["slopes"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  spec.buffers["doc"] = {.dtype = i32, .shape = {NamedDim::batch, NamedDim::kv_len}};
  return spec;
}

Spec with_tiles(Spec spec, std::int64_t q_tile, std::int64_t kv_tile, std::int64_t stages) {
  spec.tactic = TacticSpec{"portable",
                           {{"q_tile", q_tile},
                            {"kv_tile", kv_tile},
                            {"warps", q_tile / 32},
                            {"stages", stages},
                            {"q_in_registers", 0},
                            {"blocks_per_sm", 256 / q_tile},
                            {"mask_unroll", 8}}};
  return spec;
}

}  // namespace

TEST_CASE("cuda kernel: an assignment keeps its variable, whatever its value becomes") {
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.buffers["table"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  spec.score_mod =
      "float x = 1.0; if (kv_idx < 5) { x = table[h]; x += table[h]; x = 0.5; x *= 0.5; ++x; } "
      "return score * x;";
  for (const char* target : {"sm_80", "sm_90a", "cpu-x86-64-v3"}) {
    const std::string text =
        render_kernel(spec, Target::parse(target), {.aligned = true}, *default_template_loader())
            .text;
    INFO(target);
    CHECK_THAT(text, ContainsSubstring("{ x = tw_loads.table_at_h; x += tw_loads.table_at_h; "
                                       "x = 0.5f; x *= 0.5f; ++x; }"));
  }
}

TEST_CASE("CUDA kernels: every kernel of a spec compiles") {
  if (nvrtc_is_missing()) return;
  Spec spec = alibi_documents(bf16, 64);
  spec.outputs.lse = GENERATE(false, true);
  for (const KernelVariant& id : kernel_set(spec, Target::parse("sm_90a"))) {
    require_compiles(spec, "sm_90a", id.name());
  }
}

TEST_CASE("CUDA kernels: splits of one byte in pages have room for their parts") {
  if (nvrtc_is_missing()) return;
  for (const std::int64_t head_dim : {16, 64, 96, 128}) {
    const Spec spec{.dtype = bf16,
                    .head_dim = head_dim,
                    .layout = Layout::packed,
                    .kv_layout = Layout::paged,
                    .kv_dtype = f8e4m3,
                    .mask_mod = "q_idx >= kv_idx",
                    .k_scale = "0.5f",
                    .v_scale = "1.0f"};
    require_compiles(spec, "sm_90a", "forward_prefill_split");
  }
}

TEST_CASE("CUDA kernels: every generation compiles") {
  if (nvrtc_is_missing()) return;
  for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
    require_compiles(alibi_documents(f16, 128), target, "forward_masked");
    require_compiles(alibi_documents(f16, 128), target, "mask_lists");
    require_compiles(alibi_documents(f16, 128), target, "mask_exact");
    require_compiles(alibi_documents(f16, 128), target, "mask_proved");
  }
}

TEST_CASE("CUDA kernels: head dims that fill no step, and unlike each other") {
  if (nvrtc_is_missing()) return;
  for (const std::int64_t head_dim : {16, 24, 72, 200, 256}) {
    const Spec spec{.dtype = bf16, .head_dim = head_dim, .v_head_dim = 272 - head_dim};
    require_compiles(spec, "sm_86", "forward");
    require_compiles(spec, "sm_86", "forward_unaligned");
  }
}

TEST_CASE("CUDA kernels: float32, and mixtures of dtypes") {
  if (nvrtc_is_missing()) return;
  require_compiles(alibi_documents(f32, 128), "sm_80", "forward_masked");
  require_compiles({.dtype = f32, .head_dim = 256}, "sm_120", "forward_unaligned");
  require_compiles({.dtype = f32, .head_dim = 64, .kv_dtype = bf16}, "sm_80", "forward");
  require_compiles({.dtype = bf16, .head_dim = 64, .kv_dtype = f16}, "sm_80", "forward");
  require_compiles({.dtype = f16, .head_dim = 64, .out_dtype = f32}, "sm_80", "forward");
  require_compiles({.dtype = f16, .head_dim = 64, .out_dtype = bf16}, "sm_80", "forward_unaligned");
}

TEST_CASE("CUDA kernels: f32 takes precise functions in snippets unless the spec says otherwise") {
  const auto is_fast = [](DType dtype, std::optional<bool> precise) {
    const KernelSource source = render_kernel(
        Spec{.dtype = dtype,
             .head_dim = 64,
             .score_mod = "cap * tanh(score / cap)",
             .scalars = {{"cap", {.dtype = f32}}},
             .precise_math = precise},
        Target::parse("sm_80"), KernelVariant::parse("forward"), *default_template_loader());
    const bool calls_fast = source.text.find("return tw_math::tanh(x)") != std::string::npos;
    const bool divides_fast = std::find(source.options.begin(), source.options.end(),
                                        "--prec-div=false") != source.options.end();
    CHECK(calls_fast == divides_fast);
    return calls_fast;
  };
  CHECK_FALSE(is_fast(f32, {}));
  CHECK_FALSE(is_fast(f32, true));
  CHECK(is_fast(f32, false));
  CHECK(is_fast(bf16, {}));
  CHECK(is_fast(f16, false));
  CHECK_FALSE(is_fast(bf16, true));
}

TEST_CASE("CUDA kernels: a fixed maximum only where bf16 has room for all weights") {
  const auto fixed_max = [](DType dtype, const std::string& score_mod, bool precise = false) {
    const std::string text =
        render_kernel(
            Spec{.dtype = dtype, .head_dim = 64, .score_mod = score_mod, .precise_math = precise},
            Target::parse("sm_90a"), KernelVariant::parse("forward"), *default_template_loader())
            .text;
    const std::string before = "constexpr bool kHasFixedMax = true;\nconstexpr float kFixedMax = ";
    const std::size_t at = text.find(before);
    return at == std::string::npos ? 0.0f : std::stof(text.substr(at + before.size()));
  };
  // 100 / (50 log2(e)) - 1: the least weight is 2^-100. Of 30 the greatest is 1.
  CHECK(std::abs(fixed_max(bf16, "50 * tanh(score / 50)") - 0.38629436f) < 1e-6f);
  CHECK(fixed_max(bf16, "30 * tanh(score / 30)") == 1.0f);
  CHECK(fixed_max(bf16, "55 * tanh(score)") > 0.25f);
  for (const char* unbounded : {"56 * tanh(score)", "2 * exp(score)", "tanh(score) + score", ""}) {
    CAPTURE(unbounded);
    CHECK(fixed_max(bf16, unbounded) == 0.0f);
  }
  CHECK(fixed_max(f16, "50 * tanh(score / 50)") == 0.0f);
  CHECK(fixed_max(bf16, "50 * tanh(score / 50)", true) == 0.0f);
}

TEST_CASE("CUDA kernels: without tables mask_lists is one kernel for all specs") {
  const auto render = [](const Spec& spec) {
    return render_kernel(spec, Target::parse("sm_90a"), KernelVariant::parse("mask_lists"),
                         *default_template_loader());
  };
  const KernelSource causal =
      render({.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"});
  Spec other{.dtype = f32, .head_dim = 16, .mask_mod = "weight[kv_idx] > limit"};
  other.buffers["weight"] = {.dtype = f32, .shape = {NamedDim::kv_len}};
  other.scalars["limit"] = {.dtype = f32};
  other.block = {64, 256};
  other.precise_math = true;
  const KernelSource same = render(other);
  REQUIRE(same.text == causal.text);
  REQUIRE(same.options == causal.options);
  REQUIRE(same.entry_points == std::vector<std::string>{"tilewright_mask_scan"});

  other.buffers["weight"].dtype = i32;
  const KernelSource tables = render(other);
  REQUIRE(tables.text != causal.text);
  REQUIRE(tables.entry_points ==
          std::vector<std::string>{"tilewright_mask_scan", "tilewright_mask_extrema"});
}

TEST_CASE("CUDA kernels: mask_lists makes the tables that mask_proved reads") {
  Spec spec = alibi_documents(bf16, 64);
  spec.mask_mod = "doc(b, q_idx) == far[kv_idx]";
  spec.buffers["far"] = {.dtype = i64, .shape = {NamedDim::kv_len}};  // slopes is the third
  const auto text = [&](const char* kernel) {
    return render_kernel(spec, Target::parse("sm_90a"), KernelVariant::parse(kernel),
                         *default_template_loader())
        .text;
  };
  const std::string proved = text("mask_proved"), lists = text("mask_lists");
  REQUIRE_THAT(proved, ContainsSubstring("{tw_arguments.buffers[0], tw_tables.entries[0]},") &&
                           ContainsSubstring("{tw_arguments.buffers[1], tw_tables.entries[1]},"));
  const auto made = [&](const std::string& number, const std::string& types, int buffer) {
    return ContainsSubstring("if (table == " + number + ") {\n    tw_kernel::make_table<" + types +
                             ">(\n        call.buffers[" + std::to_string(buffer) + "],");
  };
  REQUIRE_THAT(lists, made("0", "int, int, 2", 0) && made("1", "long long, long long, 1", 1));
}

TEST_CASE("CUDA kernels: small and uneven blocks of the mask") {
  if (nvrtc_is_missing()) return;
  for (const std::array<std::int64_t, 2> block :
       {std::array<std::int64_t, 2>{16, 16}, {48, 80}, {64, 256}, {256, 112}}) {
    Spec spec = alibi_documents(bf16, 64);
    spec.block = block;
    require_compiles(spec, "sm_90a", "forward_masked");
    require_compiles(spec, "sm_90a", "mask_lists");
  }
}

TEST_CASE("CUDA kernels: every function of snippets, fast and precise") {
  if (nvrtc_is_missing()) return;
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.score_mod =
      "float x = tanh(score) + exp(score) + exp2(score) + log(score) + log2(score) + sqrt(score)\n"
      "  + rsqrt(score) + sin(score) + cos(score) + tan(score) + pow(score, 2.5) + abs(score)\n"
      "  + fabs(score) + min(score, 1.0) + max(score, 0.5) + fmin(score, 2.0) + fmax(score, 1.0)\n"
      "  + floor(score) + ceil(score) + clamp(score, -1.0, 1.0) + select(q_idx > kv_idx, 1.0, "
      "2.0)\n"
      "  + erf(score) + erfcf(score) + log1p(score) + expm1f(score) + sign(score) + sign(kv_idx)\n"
      "  + floor_div(score, 2) + floor_mod(kv_idx, 7) + floor_mod(kv_idx, 2.5) + "
      "floor_div(kv_idx, 3ll);\n"
      "return isfinite_(x) ? x / 3 : -INFINITY;";
  // No function of that name: the message must come from the snippet, not from a function before
  // it.
  const Compiled wrong = compile(spec, "sm_80", "forward");
  REQUIRE_FALSE(wrong.result.succeeded);
  REQUIRE_THAT(wrong.result.log, ContainsSubstring("isfinite_"));

  spec.score_mod.replace(spec.score_mod.find("isfinite_(x)"), 12, "x == x");
  spec.precise_math = GENERATE(false, true);
  require_compiles(spec, "sm_80", "forward");
}

TEST_CASE("CUDA kernels: what a snippet reads behaves as a number and as a truth") {
  if (nvrtc_is_missing()) return;
  Spec spec = alibi_documents(bf16, 64);
  spec.buffers["flag"] = {.dtype = boolean, .shape = {NamedDim::kv_len}};
  spec.buffers["far"] = {.dtype = i64, .shape = {NamedDim::kv_len}};
  spec.buffers["trusted"] = {.dtype = i32, .shape = {NamedDim::kv_len}, .bounds = Bounds::trusted};
  spec.mask_mod =
      "const auto here = doc(b, q_idx);\n"
      "int there = doc(b, kv_idx);\n"
      "const int most = max(doc(b, 0), there);\n"
      "bool same = here == there || !flag[kv_idx];\n"
      "if (here < 3 && kv_idx > 2) same = flag[doc(b, kv_idx)];\n"
      "for (int i = 0; i < min(there, 2); ++i) same = same && trusted[i] != most;\n"
      "return (same ? far[kv_idx] >= q_idx : true) && (flag[q_idx] & 1) != 0 && slopes[h] > 0;";
  require_compiles(spec, "sm_90a", "forward_masked");
  require_compiles(spec, "sm_90a", "mask_exact");
}

TEST_CASE("CUDA kernels: buffers of no and of five dimensions, with indices of every type") {
  if (nvrtc_is_missing()) return;
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.buffers["gain"] = {.dtype = f32, .shape = {}};
  spec.buffers["on"] = {.dtype = boolean, .shape = {}};
  spec.buffers["deep"] = {.dtype = f16, .shape = {2, 3, 4, 5, NamedDim::kv_len}};
  spec.buffers["table"] = {.dtype = f32, .shape = {FreeDim{}}};
  spec.score_mod =
      "return score * gain + deep(h, log2(score), 3u, kv_idx * 5ll, kv_idx) + table[score] + "
      "table[18446744073709551615ull - kv_idx] + table[q_idx > kv_idx] + table[(char)kv_idx] + "
      "table[gain] + table.size(h);";
  spec.mask_mod = "on && table[0.5 * kv_idx] > gain && table[q_idx - kv_idx + 0.25] < 7";
  for (const char* kernel : {"forward_masked", "mask_exact", "mask_proved", "mask_lists"}) {
    require_compiles(spec, "sm_90a", kernel);
    require_compiles(spec, "sm_80", kernel);
  }
}

TEST_CASE("CUDA kernels: the measured tactics spill nothing") {
  if (nvrtc_is_missing()) return;
  const Spec plain{.dtype = bf16, .head_dim = 128};
  Spec causal = plain;
  causal.mask_mod = "q_idx >= kv_idx";
  Spec softcap = plain;
  softcap.score_mod = "20 * tanh(score / 20)";
  const Spec documents = alibi_documents(bf16, 128);

  REQUIRE(spill_bytes(with_tiles(plain, 128, 64, 1), "sm_90a", "forward") == 0);
  REQUIRE(spill_bytes(with_tiles(causal, 128, 64, 1), "sm_90a", "forward_masked") == 0);
  REQUIRE(spill_bytes(with_tiles(softcap, 128, 64, 1), "sm_90a", "forward") == 0);
  REQUIRE(spill_bytes(with_tiles(documents, 128, 64, 1), "sm_90a", "forward_masked") == 0);
  for (const char* target : {"sm_80", "sm_90a", "sm_120"}) {
    REQUIRE(spill_bytes(with_tiles(documents, 128, 32, 1), target, "forward_masked") == 0);
    REQUIRE(spill_bytes(with_tiles(alibi_documents(bf16, 64), 128, 64, 2), target,
                        "forward_masked") == 0);
  }
  // The test can fail: twice the columns are too many for two row tiles a warp.
  REQUIRE(spill_bytes(with_tiles(plain, 128, 128, 1), "sm_90a", "forward") > 0);
}

TEST_CASE("CUDA kernels: shared memory that a tactic understates does not compile") {
  if (nvrtc_is_missing()) return;
  const KernelSource source =
      render_kernel(Spec{.dtype = bf16, .head_dim = 64}, Target::parse("sm_80"),
                    KernelVariant::parse("forward"), *default_template_loader());
  const std::string before = "kLaunchSharedBytes = ";
  const std::string bytes = std::to_string(source.launch.shared_bytes);
  std::string text = source.text;
  const std::size_t at = text.find(before + bytes);
  REQUIRE(at != std::string::npos);
  text.replace(at + before.size(), bytes.size(), "1");
  const auto result = cuda::Nvrtc::get().compile(text, "sm_80", source.options);
  REQUIRE_FALSE(result.succeeded);
  REQUIRE_THAT(result.log, ContainsSubstring("shared_bytes"));
}
