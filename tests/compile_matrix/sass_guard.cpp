#include "tests/compile_matrix/sass_guard.hpp"

#include <array>
#include <sstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "cli/bench/variants.hpp"
#include "generator/render/cuda_kernels.hpp"
#include "generator/render/kernel_source.hpp"

namespace tilewright::compile_matrix {
namespace {

// The commit is the one that later kernels are compared with.
constexpr std::string_view kIntroduction =
    R"(# What ptxas made of the kernels of bench's suites dense, mods and masks at commit e4012b2.
# tests/compile_matrix/sass_guard.hpp says which kernels these are and how far they may grow.
# `sass_guard --write` writes this file anew: say in the commit why a kernel may need more.
)";
constexpr std::string_view kCompilerLine = "compiler\t";

constexpr std::array kTargets = {"sm_80", "sm_90a"};

std::vector<Spec> dense_specs() {
  std::vector<Spec> specs;
  for (const std::int64_t head_dim : {64, 128, 256}) {
    specs.push_back(cli::dense_variant(bf16, head_dim));
    Spec causal = cli::dense_variant(bf16, head_dim);
    causal.name = "causal";
    causal.mask_mod = "q_idx >= kv_idx";
    specs.push_back(causal);
  }
  // The block that bench chooses for long causal sequences.
  Spec wide_rows = specs[3];
  wide_rows.name = "causal_192x80";
  wide_rows.block = {192, 80};
  specs.push_back(wide_rows);
  for (const std::int64_t head_dim : {64, 128}) {
    Spec spec = cli::dense_variant(f32, head_dim);
    specs.push_back(spec);
  }
  return specs;
}

// Prompts over pages, alone and with new rows outside of them.
std::vector<Spec> paged_specs() {
  Spec spec = cli::causal_variant(bf16, 128);
  spec.name = "paged_causal";
  spec.layout = Layout::packed;
  spec.kv_layout = Layout::paged;
  Spec with_new_rows = spec;
  with_new_rows.name += "_kv_new";
  with_new_rows.kv_new = true;
  return {spec, with_new_rows};
}

// Backward kernels that take tensor maps, of dense and of packed calls.
std::vector<Spec> gradient_specs() {
  std::vector<Spec> specs;
  const auto add = [&](Spec spec) {
    specs.push_back(spec);
    spec.layout = Layout::packed;
    spec.name += "_packed";
    specs.push_back(std::move(spec));
  };
  for (const std::int64_t head_dim : {64, 128}) {
    Spec spec = cli::dense_variant(bf16, head_dim);
    spec.outputs.lse = true;
    spec.gradients = {"q", "k", "v"};
    add(spec);
    spec.name = "causal";
    spec.mask_mod = "q_idx >= kv_idx";
    add(spec);
    spec.name = "softcap_causal";
    spec.score_mod = "50.0 * tanh(score / 50.0)";
    add(spec);
    spec.name = "slopes_causal";
    spec.score_mod = "score + slopes[h] * (kv_idx - q_idx)";
    spec.buffers["slopes"] = BufferSpec{.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
    spec.gradients = {"q", "k", "v", "slopes"};
    add(spec);
    spec.name = "relative_bias_causal";
    spec.score_mod = "score + bias[clamp(kv_idx - q_idx, -512, 512) + 512]";
    spec.buffers = {{"bias", {.dtype = DType::f32, .shape = {std::int64_t{1025}}}}};
    spec.gradients = {"q", "k", "v", "bias"};
    add(spec);
  }
  return specs;
}

}  // namespace

std::vector<Wish> guarded_wishes() {
  std::vector<Spec> forward = dense_specs();
  for (Spec& spec : cli::long_mod_variants(bf16, 128)) {
    const bool is_dense = spec.score_mod.empty() && (spec.name == "dense" || spec.name == "causal");
    if (!is_dense) forward.push_back(std::move(spec));
  }
  std::vector<Wish> wishes;
  for (const char* name : kTargets) {
    const Target target = Target::parse(name);
    for (const Spec& spec : forward) wishes.push_back({spec, target, forward_kernel(spec, target)});
    for (const Spec& spec : cli::mask_variants()) {
      for (const char* kernel : {"mask_exact", "mask_proved"}) {
        wishes.push_back({spec, target, KernelVariant::parse(kernel)});
      }
    }
  }
  const Target hopper = Target::parse("sm_90a");
  for (const Spec& spec : paged_specs()) {
    wishes.push_back({spec, hopper, forward_kernel(spec, hopper)});
  }
  for (const Spec& spec : gradient_specs()) {
    wishes.push_back({spec, hopper, backward_kernel(spec)});
  }
  return wishes;
}

std::vector<std::string> growth(const SassFigures& before, const SassFigures& now) {
  std::vector<std::string> lines;
  const auto compare = [&](std::string_view what, std::int64_t was, std::int64_t is, double most) {
    if (static_cast<double>(is) <= static_cast<double>(was) * (1 + most)) return;
    lines.push_back(fmt::format("{}: was {}, is {}", what, was, is));
  };
  compare("registers", before.registers, now.registers, 0);
  compare("spilled bytes", before.spill_bytes, now.spill_bytes, 0);
  compare("shared memory", before.shared_bytes, now.shared_bytes, 0);
  compare("instructions", before.instructions, now.instructions, kMostGrowth);
  return lines;
}

std::string SassBaseline::text() const {
  std::string text = fmt::format("{}{}{}\nregisters\tspill\tshared\tinstructions\tkernel\n",
                                 kIntroduction, kCompilerLine, compiler);
  for (const auto& [kernel, figures] : kernels) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\n", figures.registers, figures.spill_bytes,
                        figures.shared_bytes, figures.instructions, kernel);
  }
  return text;
}

SassBaseline SassBaseline::read(const std::string& path) {
  SassBaseline baseline;
  std::istringstream lines(read_text_file(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#') || line.starts_with("registers\t")) continue;
    if (line.starts_with(kCompilerLine)) {
      baseline.compiler = line.substr(kCompilerLine.size());
      continue;
    }
    SassFigures figures;
    std::string kernel;
    std::istringstream cells(line);
    cells >> figures.registers >> figures.spill_bytes >> figures.shared_bytes >>
        figures.instructions >> std::ws;
    if (!cells || !std::getline(cells, kernel)) {
      throw Error(ErrorCode::file, fmt::format("\"{}\" has no figures in \"{}\"", path, line),
                  "sass_guard --write writes the file");
    }
    baseline.kernels[kernel] = figures;
  }
  if (baseline.kernels.empty()) {
    throw Error(ErrorCode::file, fmt::format("\"{}\" holds no kernel", path),
                "sass_guard --write writes the file");
  }
  return baseline;
}

}  // namespace tilewright::compile_matrix
