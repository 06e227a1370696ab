// Each header of the kernels after the includes that it names and nothing else: where a kernel's
// template gives its configuration, the header is put in place of the headers that the template
// includes.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "tests/generator/cpu_kernel.hpp"
#include "tests/generator/overlaid_templates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

// A template with its configuration, and one header in place of those that it includes after that.
std::string with_header(const std::string& text, const std::string& header) {
  static constexpr std::string_view kEnd = "}  // namespace tw_kernel\n";
  const std::size_t begin = text.find("namespace tw_kernel {\n");
  const std::size_t include = text.find("#include \"", begin == std::string::npos ? 0 : begin);
  const std::size_t end = begin == std::string::npos ? 0 : text.rfind(kEnd, include) + kEnd.size();
  std::string start = begin == std::string::npos ? text.substr(0, include) : text.substr(0, end);
  const bool is_in_condition = start.find("{% if tables %}\n") != std::string::npos;
  start += "#include \"" + header + "\"\n";
  return is_in_condition ? start + "{% endif %}\n" : start;
}

bool is_header(const std::string& file) {
  const bool is_part =
      file == "snippet/loads_in_bounds.hpp.jinja" || file == "snippet/difference_value.hpp.jinja";
  return !is_part && !file.starts_with("kernel/") &&
         (file.ends_with(".hpp") || file.ends_with(".hpp.jinja"));
}

struct Wish {
  Spec spec;
  std::string kernel;
};

Spec spec_with_dropout() {
  Spec spec{.dtype = bf16, .head_dim = 64, .dropout = "0.5f"};
  spec.scalars["seed"] = {.dtype = i64};
  spec.outputs.lse = true;
  spec.gradients = {"q", "k", "v"};
  return spec;
}

// Specs that bring every header together.
std::vector<Wish> wishes() {
  Spec plain{.dtype = bf16, .head_dim = 64};
  plain.mask_mod = "doc(b, q_idx) == doc(b, kv_idx) && q_idx >= kv_idx";
  plain.buffers["doc"] = {.dtype = i32, .shape = {NamedDim::batch, NamedDim::kv_len}};
  Spec sloped = plain;
  sloped.score_mod = "score + slopes[h] * (kv_idx - q_idx)";
  sloped.buffers["slopes"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  Spec tabled = plain;
  tabled.score_mod = "score + tanh(table[kv_idx - q_idx + 100])";
  tabled.buffers["table"] = {.dtype = f32, .shape = {FreeDim{}}};
  // Q tiles of 192 rows over blocks of 128.
  Spec causal{.dtype = bf16, .head_dim = 64};
  causal.mask_mod = "q_idx >= kv_idx";
  Spec to_float = tabled;
  to_float.out_dtype = f32;
  Spec in_float = sloped;
  in_float.dtype = f32;
  in_float.precise_math = true;
  Spec packed = causal;
  packed.layout = Layout::packed;
  Spec packed_wide = packed;  // whose q tiles have rows of one row of tiles
  packed_wide.head_dim = 128;
  Spec packed_near = packed_wide;  // whose mask intervals do not decide
  packed_near.mask_mod = "abs(q_idx - kv_idx) < 99";
  Spec packed_in_float = packed;
  packed_in_float.dtype = f32;
  Spec promised = packed;
  promised.mask_mod = "doc[q_token] == doc[kv_token]";
  promised.buffers["doc"] = {
      .dtype = DType::i64, .shape = {NamedDim::total_kv}, .sorted = Sorted::promised};
  Spec paged = packed;
  paged.kv_layout = Layout::paged;
  Spec with_new_rows = paged;
  with_new_rows.kv_new = true;
  Spec scaled{.dtype = bf16, .head_dim = 64, .k_scale = "2", .v_scale = "3", .sink = "1"};
  Spec one_byte = paged;
  one_byte.kv_dtype = f8e4m3;
  one_byte.k_scale = one_byte.v_scale = "2";
  Spec float8{.dtype = f8e4m3,
              .head_dim = 64,
              .out_dtype = f8e4m3,
              .q_scale = "2",
              .k_scale = "2",
              .v_scale = "2",
              .out_scale = "2"};
  Spec in_blocks = paged;
  in_blocks.kv_layout = Layout::paged_x;
  Spec with_gradients = tabled;
  with_gradients.outputs.lse = true;
  with_gradients.gradients = {"q", "k", "v", "table"};
  Spec float_gradients = with_gradients;
  float_gradients.dtype = f32;
  Spec hopper_gradients = sloped;
  hopper_gradients.outputs.lse = true;
  hopper_gradients.gradients = {"q", "k", "v"};
  Spec portable_gradients = hopper_gradients;
  portable_gradients.tactic = TacticSpec{.name = "portable"};
  Spec hopper_packed_gradients = hopper_gradients;
  hopper_packed_gradients.layout = Layout::packed;
  Spec wide_gradients = hopper_gradients;
  wide_gradients.head_dim = 192;
  Spec in_tf32 = causal;
  in_tf32.dtype = f32;
  in_tf32.f32_products = F32Products::tf32;
  Spec padded = paged;  // head dims that are no multiple of 8
  padded.head_dim = 17;
  Spec padded_in_float = padded;
  padded_in_float.dtype = f32;
  Spec packed_gradients = packed;
  packed_gradients.outputs.lse = true;
  packed_gradients.gradients = {"q", "k", "v"};
  Spec padded_gradients = packed_gradients;
  padded_gradients.head_dim = 17;
  Spec padded_float_gradients = padded_gradients;
  padded_float_gradients.dtype = f32;
  Spec with_max_scores{.dtype = bf16, .head_dim = 64};
  with_max_scores.outputs.max_scores = true;
  Spec with_weights = causal;
  with_weights.outputs = {.lse = true, .weights = true};
  const Spec with_dropout = spec_with_dropout();
  return {{plain, "forward"},
          {scaled, "forward"},
          {causal, "forward_masked"},
          {sloped, "forward_masked"},
          {tabled, "forward"},
          {to_float, "forward"},
          {sloped, "forward_unaligned"},
          {in_float, "forward"},
          {in_float, "forward_masked"},
          {padded, "forward"},
          {padded, "append"},
          {padded, "merge"},
          {padded_in_float, "forward"},
          {plain, "mask_proved"},
          {in_float, "mask_exact"},
          {plain, "mask_lists"},
          {packed, "forward_prefill"},
          {packed_wide, "forward_prefill"},
          {packed_wide, "forward_prefill_resident"},
          {packed_near, "forward_prefill_resident"},
          {packed_in_float, "forward_prefill"},
          {packed, "forward_decode"},
          {plain, "forward_decode"},
          {causal, "forward_masked_decode"},
          {packed, "plan_proved"},
          {promised, "plan_proved"},
          {paged, "forward_prefill"},
          {paged, "forward_decode"},
          {paged, "plan_proved"},
          {packed, "merge"},
          {packed_in_float, "merge"},
          {paged, "append"},
          {with_new_rows, "forward_prefill"},
          {with_new_rows, "forward_decode"},
          {one_byte, "forward_prefill"},
          {one_byte, "forward_prefill_unaligned"},
          {float8, "forward"},
          {float8, "forward_unaligned"},
          {one_byte, "forward_decode"},
          {one_byte, "append"},
          {one_byte, "quantise"},
          {in_blocks, "forward_prefill"},
          {in_blocks, "append"},
          {with_max_scores, "forward"},
          {with_max_scores, "forward_decode"},
          {with_weights, "weights_masked"},
          {with_dropout, "forward"},
          {with_dropout, "backward"},
          {with_gradients, "backward_masked"},
          {with_gradients, "backward_masked_unaligned"},
          {float_gradients, "backward"},
          {hopper_gradients, "backward_masked"},
          {portable_gradients, "backward_masked"},
          {hopper_packed_gradients, "backward"},
          {wide_gradients, "backward_masked"},
          {wide_gradients, "backward_masked_deterministic"},
          {padded_gradients, "backward"},
          {padded_float_gradients, "backward"},
          {in_tf32, "forward_masked"},
          {plain, "forward_split"},
          {packed_gradients, "backward"}};
}

struct Alone {
  std::string header;
  KernelSource source;
};

// Each header of a kernel that `seen` lacks.
std::vector<Alone> headers_of(const Wish& wish, const Target& target, std::set<std::string>& seen) {
  const auto loader = default_template_loader();
  const std::vector<std::string> files =
      render_kernel(wish.spec, target, KernelVariant::parse(wish.kernel), *loader).template_files;
  const std::string text = loader->load(files.front()).value();
  std::vector<Alone> all;
  for (const std::string& file : files) {
    if (!is_header(file) || !seen.insert(file).second) continue;
    const OverlaidTemplates alone(files.front(), with_header(text, file));
    all.push_back(
        {file, render_kernel(wish.spec, target, KernelVariant::parse(wish.kernel), alone)});
  }
  return all;
}

std::set<std::string> headers_below(const std::string& folder) {
  std::set<std::string> headers;
  for (const std::string& name : embedded_template_loader()->names()) {
    if (name.starts_with(folder) && is_header(name)) headers.insert(name);
  }
  return headers;
}

void expect_all(const std::string& folder, const std::set<std::string>& seen) {
  for (const std::string& header : headers_below(folder)) {
    CAPTURE(header);
    CHECK(seen.contains(header));
  }
}

}  // namespace

TEST_CASE("CUDA kernels: each header compiles behind its own includes") {
  if (nvrtc_is_missing()) return;
  std::set<std::string> seen;
  for (const Wish& wish : wishes()) {
    for (const Alone& alone : headers_of(wish, Target::parse("sm_90a"), seen)) {
      const auto result =
          cuda::Nvrtc::get().compile(alone.source.text, "sm_90a", alone.source.options);
      INFO(alone.header << " for " << wish.kernel << "\n" << result.log.substr(0, 2000));
      CHECK(result.succeeded);
    }
  }
  expect_all("cuda/", seen);
  expect_all("math/floor", seen);
}

TEST_CASE("cpu kernel: each header compiles behind its own includes") {
  std::set<std::string> seen;
  const Spec tabled = wishes()[4].spec, scaled = wishes()[1].spec;
  Spec paged = wishes()[2].spec;
  paged.layout = Layout::packed;
  paged.kv_layout = Layout::paged;
  Spec with_new_rows = paged;
  with_new_rows.kv_new = true;
  Spec one_byte = paged;
  one_byte.kv_dtype = i8;
  one_byte.k_scale = one_byte.v_scale = "2";
  Spec float8{.dtype = f8e4m3,
              .head_dim = 64,
              .out_dtype = f8e4m3,
              .q_scale = "2",
              .k_scale = "2",
              .v_scale = "2",
              .out_scale = "2"};
  Spec in_blocks = paged;
  in_blocks.kv_layout = Layout::paged_x;
  Spec padded = paged;
  padded.dtype = f32;
  padded.head_dim = 17;
  Spec with_gradients = wishes()[4].spec;
  with_gradients.outputs.lse = true;
  with_gradients.gradients = {"q", "k", "v"};
  Spec packed_gradients = wishes().back().spec;
  Spec with_weights = tabled;
  with_weights.outputs = {.lse = true, .weights = true};
  const std::vector<Wish> cpu_wishes = {{spec_with_dropout(), "forward_lse"},
                                        {spec_with_dropout(), "backward"},
                                        {tabled, "forward_masked"},
                                        {tabled, "mask_proved"},
                                        {tabled, "evaluate_double"},
                                        {scaled, "forward"},
                                        {scaled, "evaluate_double"},
                                        {scaled, "evaluate_checked"},
                                        {tabled, "evaluate_checked"},
                                        {paged, "forward"},
                                        {padded, "forward"},
                                        {paged, "merge"},
                                        {paged, "append"},
                                        {one_byte, "forward"},
                                        {one_byte, "append"},
                                        {one_byte, "quantise"},
                                        {in_blocks, "forward"},
                                        {in_blocks, "append"},
                                        {with_new_rows, "forward"},
                                        {with_gradients, "backward_masked"},
                                        {packed_gradients, "backward"},
                                        {with_weights, "weights_masked"},
                                        {with_gradients, "evaluate_slopes_double"}};
  for (const Wish& wish : cpu_wishes) {
    for (const Alone& alone : headers_of(wish, Target::host_cpu(), seen)) {
      INFO(alone.header << " for " << wish.kernel);
      CHECK_NOTHROW(CompiledText(alone.source.text, alone.source.options));
    }
  }
  expect_all("cpu/", seen);
  expect_all("math/", seen);
  expect_all("snippet/", seen);
  expect_all("interpretations/", seen);
}
