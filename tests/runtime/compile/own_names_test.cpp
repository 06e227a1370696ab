#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "generator/snippet/names.hpp"
#include "runtime/compile/host_compiler.hpp"
#include "runtime/compile/process.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

// Any name that a spec accepts compiles for every target. The names are taken from the compilers:
// macros that they and C's headers define, what CUDA declares without a header, and words of our
// own templates.

using namespace tilewright;
using test::nvrtc_is_missing;

namespace {

using Names = std::set<std::string>;

// "#define EOF (-1)" of `-dM -E`.
void add_macros(const std::vector<std::string>& command, Names& names) {
  const ProcessResult result = run_process(command);
  INFO(result.errors);
  REQUIRE(result.succeeded());
  std::istringstream lines(result.output);
  for (std::string define, name; lines >> define >> name;) {
    names.insert(name.substr(0, name.find('(')));
    std::string rest;
    std::getline(lines, rest);
  }
}

Names macros_of_the_host() {
  Names names;
  for (const char* compiler : {"g++", "clang++"}) {
    add_macros({compiler, "-std=c++20", "-dM", "-E", "-x", "c++", "/dev/null"}, names);
    add_macros(
        {compiler,   "-std=gnu++20", "-dM",      "-E",       "-x",       "c++",      "/dev/null",
         "-include", "cstdio",       "-include", "climits",  "-include", "cmath",    "-include",
         "cassert",  "-include",     "cerrno",   "-include", "cfloat",   "-include", "cstdarg",
         "-include", "cstddef",      "-include", "csignal",  "-include", "clocale"},
        names);
  }
  return names;
}

// NVRTC and its built-ins, whose headers are text inside the libraries.
std::string bytes_of_nvrtc() {
  const std::filesystem::path library = cuda::Nvrtc::get().path();
  std::string bytes;
  for (const auto& file : std::filesystem::directory_iterator(library.parent_path())) {
    if (!file.path().filename().string().starts_with("libnvrtc") || file.is_symlink()) continue;
    std::ifstream stream(file.path(), std::ios::binary);
    bytes.append(std::istreambuf_iterator<char>(stream), {});
  }
  return bytes;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Names that "define" stands before.
Names macros_of_nvrtc() {
  const std::string bytes = bytes_of_nvrtc();
  constexpr std::string_view kDefine = "define";
  Names names;
  for (std::size_t at = bytes.find(kDefine); at != std::string::npos;
       at = bytes.find(kDefine, at + 1)) {
    const std::size_t begin =
        std::min(bytes.find_first_not_of(" \t", at + kDefine.size()), bytes.size());
    if (begin == at + kDefine.size()) continue;
    std::size_t end = begin;
    while (end < bytes.size() && is_word(bytes[end])) ++end;
    if (end > begin && end - begin < 100) names.insert(bytes.substr(begin, end - begin));
  }
  return names;
}

Names words_of_our_templates() {
  Names names;
  const auto loader = default_template_loader();
  const std::regex word("[A-Za-z_][A-Za-z0-9_]*");
  for (const char* name : {"snippet/snippets.hpp.jinja", "snippet/buffer.hpp", "cpu/forward.hpp",
                           "cuda/snippet/buffer.hpp", "cuda/portable/forward.hpp",
                           "cuda/hopper/tile_visits.hpp", "cuda/hopper/q_tile_scores.hpp",
                           "cuda/hopper/softmax_step.hpp", "interpretations/interval.hpp"}) {
    const std::string text = loader->load(name).value();
    for (std::sregex_iterator match(text.begin(), text.end(), word), end; match != end; ++match) {
      names.insert(match->str());
    }
  }
  return names;
}

const char* const kOthers[] = {
    "NULL",      "assert",    "unix",      "linux",    "i386",     "I",        "isnan",
    "signbit",   "printf",    "malloc",    "memcpy",   "free",     "abort",    "exit",
    "main",      "dim3",      "half",      "float2",   "float4",   "int4",     "uint3",
    "threadIdx", "blockIdx",  "blockDim",  "gridDim",  "warpSize", "clock",    "clock64",
    "atomicAdd", "std",       "cuda",      "nv",       "size_t",   "int32_t",  "uint8_t",
    "ptrdiff_t", "va_list",   "typeof",    "restrict", "final",    "override", "final_",
    "import",    "module",    "near",      "far",      "pascal",   "vector",   "pixel",
    "complex",   "imaginary", "tile",      "lane",     "row",      "column",   "stage",
    "warp",      "thread",    "arguments", "call",     "out",      "lse",      "q",
    "k",         "v",         "i",         "j",        "x",        "y",        "z",
    "data",      "size",      "offset",    "load",     "argument", "value",    "Element",
    "Value",     "Buffer",    "State",     "Finding",  "Half",     "BFloat16", "Tiles",
    "TW_INLINE", "TW_EXPORT", "tw_real",   "_",        "_x",       "_X",       "erf",
    "erff",      "sinh",      "round",     "isinf",    "fmod",     "M_PI",     "EOF",
    "INT_MAX",   "stdin",     "errno",     "CHAR_BIT", "FLT_MAX",  "va_start", "va_arg",
    "min_",      "abs_",      "and_",      "alloca",   "offsetof", "index",    "bool_",
};

// Those that a spec accepts.
std::vector<std::string> accepted(const Names& names) {
  std::vector<std::string> result;
  for (const std::string& name : names) {
    if (name_fault(name).empty()) result.push_back(name);
  }
  return result;
}

// Each name a scalar, and read.
Spec as_scalars(const std::vector<std::string>& names) {
  Spec spec{.dtype = bf16,
            .head_dim = 64,
            .score_mod = "float total_ = score;\n",
            .mask_mod = "int total_ = 0;\n"};
  for (const std::string& name : names) {
    spec.scalars[name] = {.dtype = i32, .default_value = 1};
    spec.score_mod += fmt::format("total_ += {};\n", name);
    spec.mask_mod += fmt::format("total_ += {};\n", name);
  }
  spec.score_mod += "return total_;";
  spec.mask_mod += "return total_ > q_idx - kv_idx;";
  return spec;
}

// Each name a buffer of one dimension, read where the kernel reads ahead and elsewhere.
Spec as_buffers(const std::vector<std::string>& names) {
  Spec spec{.dtype = bf16,
            .head_dim = 64,
            .score_mod = "float total_ = score;\n",
            .mask_mod = "int total_ = 0;\n"};
  for (const std::string& name : names) {
    spec.buffers[name] = {.dtype = i32, .shape = {NamedDim::num_q_heads}};
    spec.score_mod += fmt::format("total_ += {}[h];\n", name);
    spec.mask_mod += fmt::format("total_ += {}[h];\n", name);
  }
  spec.score_mod += "return total_;";
  spec.mask_mod += "return total_ > q_idx - kv_idx;";
  return spec;
}

// Each name a local variable.
Spec as_locals(const std::vector<std::string>& names) {
  Spec spec{.dtype = bf16,
            .head_dim = 64,
            .score_mod = "float total_ = score;\n",
            .mask_mod = "int total_ = 0;\n"};
  for (const std::string& name : names) {
    spec.score_mod += fmt::format("{{ int {0} = 3; total_ += {0}; }}\n", name);
    spec.mask_mod += fmt::format("{{ int {0} = 3; total_ += {0}; }}\n", name);
  }
  spec.score_mod += "return total_;";
  spec.mask_mod += "return total_ > q_idx - kv_idx;";
  return spec;
}

void require_compiles_on_host(const Spec& spec, const std::string& compiler,
                              const std::string& kernel) {
  const KernelSource source =
      render_kernel(spec, Target::parse("cpu-x86-64-v3"), KernelVariant::parse(kernel),
                    *default_template_loader());
  std::vector<std::string> options = source.options;
  std::erase(options, "-O3");  // only whether it compiles is asked
  const auto result = HostCompiler::find(compiler).compile(source.text, options);
  INFO(compiler << " " << kernel << "\n" << result.log.substr(0, 3000));
  CHECK(result.succeeded);
}

void require_compiles_for_gpu(const Spec& spec, const std::string& target,
                              const std::string& kernel) {
  const KernelSource source = render_kernel(
      spec, Target::parse(target), KernelVariant::parse(kernel), *default_template_loader());
  const auto result = cuda::Nvrtc::get().compile(source.text, target, source.options);
  INFO(target << " " << kernel << "\n" << result.log.substr(0, 3000));
  CHECK(result.succeeded);
}

std::vector<Spec> specs_with(const std::vector<std::string>& names) {
  std::vector<Spec> specs;
  constexpr std::size_t kAtOnce = 120;
  for (std::size_t begin = 0; begin < names.size(); begin += kAtOnce) {
    const std::vector<std::string> some(
        names.begin() + static_cast<std::ptrdiff_t>(begin),
        names.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kAtOnce, names.size())));
    specs.insert(specs.end(), {as_scalars(some), as_buffers(some), as_locals(some)});
  }
  return specs;
}

}  // namespace

TEST_CASE("own names: what a spec accepts compiles with g++ and clang++") {
  Names names = macros_of_the_host();
  names.merge(words_of_our_templates());
  names.insert(std::begin(kOthers), std::end(kOthers));
  const std::vector<std::string> usable = accepted(names);
  REQUIRE(usable.size() > 300);
  for (const Spec& spec : specs_with(usable)) {
    CHECK_NOTHROW(validate(spec));
    for (const char* compiler : {"g++", "clang++"}) {
      require_compiles_on_host(spec, compiler, "evaluate_float");
      require_compiles_on_host(spec, compiler, "mask_proved");
    }
  }
}

TEST_CASE("own names: NVRTC's predefined macros compile for GPUs and the CPU") {
  if (nvrtc_is_missing()) return;
  Names names = macros_of_nvrtc();
  REQUIRE(names.contains("NULL"));
  REQUIRE(names.contains("assert"));
  names.insert(std::begin(kOthers), std::end(kOthers));
  const std::vector<std::string> usable = accepted(names);
  REQUIRE(usable.size() > 200);
  for (const Spec& spec : specs_with(usable)) {
    require_compiles_on_host(spec, "g++", "evaluate_float");
    require_compiles_for_gpu(spec, "sm_80", "mask_proved");
    require_compiles_for_gpu(spec, "sm_90a", "mask_exact");
  }
  const Spec few = as_scalars({"NULL", "assert", "va_arg", "linux", "warpSize", "half"});
  require_compiles_for_gpu(few, "sm_80", "forward_masked");
  require_compiles_for_gpu(few, "sm_90a", "forward_masked");
  require_compiles_on_host(few, "g++", "forward_masked");
}

TEST_CASE("own names: our templates' words and reserved names are refused by name") {
  for (const char* name :
       {"TW_INLINE", "tw_real", "tilewright", "_X", "a__b", "int", "score", "exp", "INFINITY"}) {
    CAPTURE(name);
    Spec spec{.dtype = f32, .head_dim = 64};
    spec.scalars[name] = {.dtype = i32};
    try {
      validate(spec);
      FAIL_CHECK("accepted");
    } catch (const Error& error) {
      CHECK_THAT(error.message(), Catch::Matchers::ContainsSubstring(name));
    }
  }
}
