#include "generator/render/kernel_source.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/render/templates.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec alibi() {
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.score_mod = "float bias = slopes[h] * (kv_idx - q_idx);\nreturn score + bias;";
  spec.mask_mod = "q_idx >= kv_idx";
  spec.buffers["slopes"] = {f32, {NamedDim::num_q_heads}};
  spec.buffers["unused"] = {f32, {FreeDim{}}};
  spec.scalars["idle"] = {f32, {}};
  return spec;
}

KernelSource render(const std::string& kernel, const Spec& spec = alibi()) {
  return render_kernel(spec, Target::parse("cpu-x86-64-v3"), KernelVariant::parse(kernel),
                       *default_template_loader());
}

const std::vector<std::string> kKernels = {
    "forward",     "forward_masked", "forward_lse",     "forward_masked_lse", "mask_exact",
    "mask_proved", "evaluate_float", "evaluate_double", "evaluate_checked"};

std::vector<std::string> names(const std::vector<KernelVariant>& ids) {
  std::vector<std::string> names;
  for (const KernelVariant& id : ids) names.push_back(id.name());
  return names;
}

}  // namespace

TEST_CASE("kernel source: the set of kernels follows outputs and mask_mod") {
  const Target cpu = Target::host_cpu(), gpu = Target::parse("sm_90a");
  Spec spec = alibi();
  CHECK(names(kernel_set(spec, cpu)) ==
        std::vector<std::string>{"forward", "forward_masked", "mask_exact", "mask_proved"});
  CHECK(names(kernel_set(spec, gpu)) ==
        std::vector<std::string>{
            "forward", "forward_unaligned", "forward_masked", "forward_masked_unaligned",
            "forward_masked_decode", "forward_masked_decode_unaligned", "forward_split",
            "forward_masked_split", "mask_lists", "mask_exact", "mask_proved"});
  spec.outputs.lse = true;
  spec.mask_mod.clear();
  CHECK(names(kernel_set(spec, cpu)) ==
        std::vector<std::string>{"forward_lse", "forward_masked_lse", "merge"});
  CHECK(kernel_set(spec, gpu).size() == 11);
}

TEST_CASE("kernel source: every kernel is one text that includes nothing") {
  for (const std::string& kernel : kKernels) {
    const KernelSource source = render(kernel);
    CAPTURE(kernel);
    CHECK(source.variant.name() == kernel);
    CHECK(source.text.find("#include") == std::string::npos);
    CHECK(source.text.find("#pragma once") == std::string::npos);
    CHECK(source.text.find("#line") == std::string::npos);
    CHECK(source.text.find("{{") == std::string::npos);
    CHECK(source.text.find("{%") == std::string::npos);
    CHECK(source.entry_points.size() >= 1);
    for (const std::string& symbol : source.entry_points) {
      CHECK_THAT(source.text, ContainsSubstring(symbol));
    }
  }
  for (const KernelVariant& variant : kernel_set(alibi(), Target::parse("sm_90a"))) {
    const std::string text =
        render_kernel(alibi(), Target::parse("sm_90a"), variant, *default_template_loader()).text;
    CHECK(text.find("#include") == std::string::npos);
    CHECK(text.find("#pragma once") == std::string::npos);
  }
}

TEST_CASE("kernel source: entry points have dynamic shared memory where their text declares it") {
  Spec spec{.dtype = DType::bf16, .head_dim = 128};
  spec.score_mod = "score + bias[clamp(kv_idx - q_idx, -9, 9) + 9]";
  spec.buffers["bias"] = {.dtype = DType::f32, .shape = {std::int64_t{19}}};
  spec.outputs.lse = true;
  spec.gradients = {"q", "k", "v", "bias"};
  Spec packed = spec;
  packed.layout = Layout::packed;
  for (const Spec& one : {spec, packed}) {
    for (const char* target : {"sm_80", "sm_90a"}) {
      const KernelSource source = render_kernel(one, Target::parse(target), backward_kernel(one),
                                                *default_template_loader());
      REQUIRE(source.entry_points.size() >= 3);
      for (const std::string& entry : source.entry_points) {
        CAPTURE(target, entry);
        const std::size_t begin = source.text.rfind(entry + "(");  // comments name it before
        const std::size_t end = source.text.find("extern \"C\"", begin);
        const std::string text = source.text.substr(begin, end - begin);
        const bool declares = text.find("extern __shared__") != std::string::npos;
        CHECK((dynamic_shared_bytes(source, entry) > 0) == declares);
      }
    }
  }
}

TEST_CASE("kernel source: only what a snippet mentions is read") {
  const std::string text = render("forward").text;
  CHECK_THAT(text, ContainsSubstring("slopes"));
  CHECK(text.find("unused") == std::string::npos);
  CHECK(text.find("idle") == std::string::npos);
  // Arguments are in the order of all names, mentioned or not.
  Spec spec = alibi();
  spec.buffers["aaa"] = {f32, {FreeDim{}}};
  CHECK_THAT(render("forward", spec).text, ContainsSubstring("buffers[1]"));
}

TEST_CASE("kernel source: equal specs give equal texts, whatever their names") {
  Spec spec = alibi();
  spec.name = "another";
  spec.scale = 3.0;
  spec.buffers["slopes"].range = {0, 1};
  CHECK(render("forward_masked", spec).text == render("forward_masked").text);
}

TEST_CASE("kernel source: options never allow fast-math and name the instruction set") {
  for (const std::string& kernel : kKernels) {
    const std::vector<std::string> options = render(kernel).options;
    const std::set<std::string> set(options.begin(), options.end());
    CHECK(set.count("-march=x86-64-v3") == 1);
    CHECK(set.count("-ffast-math") == 0);
    CHECK(set.count("-Ofast") == 0);
    CHECK(std::any_of(set.begin(), set.end(), [](const std::string& option) {
            return option.starts_with("-fsanitize=");
          }) == (kernel == "evaluate_checked"));
  }
  const KernelSource native = render_kernel(
      alibi(), Target::host_cpu(), KernelVariant::parse("forward"), *default_template_loader());
  CHECK(native.options.front() == "-march=native");
}

TEST_CASE("kernel source: a position in the rendered snippet leads back to the snippet") {
  const KernelSource source = render("forward_masked");
  const std::size_t function = source.text.find("tw_score_mod(");
  const std::size_t at = source.text.find("return score + bias;", function);
  REQUIRE(at != std::string::npos);
  const int line = 1 + static_cast<int>(std::count(
                           source.text.begin(), source.text.begin() + static_cast<long>(at), '\n'));
  const int column = static_cast<int>(at - source.text.rfind('\n', at));
  const Origin origin = source.map.origin_of(line, column + 7);
  CHECK(origin.in_snippet);
  CHECK(origin.file == "score_mod");
  CHECK(origin.line == 2);
  CHECK(origin.column == 8);
  CHECK(source.template_files.front() == "cpu/kernels/forward.cpp.jinja");
}

TEST_CASE("kernel source: line directives name snippets and templates") {
  const KernelSource source = render("forward");
  const std::string text = with_line_directives(source);
  CHECK_THAT(text, ContainsSubstring("#line 1 \"abi/cpu.hpp\""));
  CHECK_THAT(text, ContainsSubstring("#line 1 \"score_mod\"\n"));
  // Nothing else was changed.
  std::string without;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    if (text.compare(begin, 6, "#line ") != 0) without.append(text, begin, end - begin);
    begin = end;
  }
  CHECK(without == source.text);
}

TEST_CASE("kernel source: an unknown kernel, or one of another kind of target, is a usage error") {
  REQUIRE_THROWS_WITH(render("forward_maskd"),
                      ContainsSubstring("there is no kernel \"forward_maskd\"") &&
                          ContainsSubstring("forward_masked"));
  REQUIRE_THROWS_WITH(
      render_kernel(alibi(), Target::parse("sm_90a"), KernelVariant::parse("evaluate_float"),
                    *default_template_loader()),
      ContainsSubstring("for a GPU") && ContainsSubstring("for the CPU"));
}
