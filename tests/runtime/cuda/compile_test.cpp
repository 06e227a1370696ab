// Kernels for GPUs are compiled without one. Where NVRTC is missing there is nothing to test.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/library/kernel_library.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"
#include "tests/support/slow_kernel.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using test::nvrtc_is_missing;

namespace {

// A cache that forgets everything, so that each test compiles.
Toolchain fresh_context() {
  Toolchain toolchain;
  toolchain.store = std::make_shared<cache::Store>(cache::Store::Options{});
  return toolchain;
}

KernelBinary compile(const Spec& spec, const char* target, const char* kernel) {
  return build_kernel(spec, Target::parse(target), KernelVariant::parse(kernel), fresh_context());
}

const Spec kCausal{.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};

bool is_cubin(const std::vector<std::byte>& bytes) {
  return bytes.size() > 4 && std::memcmp(bytes.data(), "\177ELF", 4) == 0;
}

Error refusal(const Spec& spec, const char* kernel) {
  try {
    compile(spec, "sm_80", kernel);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "compiled");
}

}  // namespace

TEST_CASE("CUDA compile: NVRTC's builtins are taken from beside it, wherever that is") {
  if (nvrtc_is_missing()) return;
  const std::filesystem::path library = cuda::Nvrtc::get().path();
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  const auto folder = std::filesystem::canonical(library).parent_path();
  REQUIRE_THAT(mapped, ContainsSubstring(folder.string() + "/libnvrtc-builtins.so"));
}

TEST_CASE("CUDA compile: every target gives a cubin, without a GPU") {
  if (nvrtc_is_missing()) return;
  for (const char* target : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"}) {
    const KernelBinary kernel = compile(kCausal, target, "forward_masked");
    REQUIRE(is_cubin(kernel.entry->payload));
    REQUIRE(kernel.build.source == "built");
    REQUIRE(kernel.entry->metadata.at("target") == target);
  }
}

TEST_CASE("CUDA compile: the default tactic spills nothing at head_dim 64 and 128") {
  if (nvrtc_is_missing()) return;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const char* target : {"sm_80", "sm_90a"}) {
      Spec spec = kCausal;
      spec.head_dim = head_dim;
      const KernelBinary kernel = compile(spec, target, "forward_masked");
      REQUIRE(kernel.build.gpu);
      REQUIRE(kernel.build.gpu->spill_bytes == 0);
      REQUIRE(kernel.build.gpu->registers > 32);
      REQUIRE(kernel.build.gpu->registers <= 255);
      REQUIRE(kernel.build.gpu->shared_bytes >= kernel.source.launch.shared_bytes);
    }
  }
}

TEST_CASE("CUDA compile: float32, unaligned tensors, lse and the block mask compile") {
  if (nvrtc_is_missing()) return;
  Spec spec = kCausal;
  spec.dtype = f32;
  spec.outputs.lse = true;
  for (const char* kernel : {"forward_lse", "forward_masked_lse_unaligned", "mask_exact"}) {
    REQUIRE(is_cubin(compile(spec, "sm_80", kernel).entry->payload));
  }
  REQUIRE(is_cubin(compile(kCausal, "sm_80", "forward_unaligned").entry->payload));
}

TEST_CASE("CUDA compile: what ptxas said is known of a kernel from the cache, too") {
  if (nvrtc_is_missing()) return;
  const Toolchain toolchain = fresh_context();
  const Target target = Target::parse("sm_80");
  const KernelBinary first =
      build_kernel(kCausal, target, KernelVariant::parse("mask_exact"), toolchain);
  const KernelBinary second =
      build_kernel(kCausal, target, KernelVariant::parse("mask_exact"), toolchain);
  REQUIRE(second.build.source == "memory");
  REQUIRE(second.build.gpu->registers == first.build.gpu->registers);
  REQUIRE(second.build.gpu->shared_bytes > 16 * 1024);  // the scan's sums
}

TEST_CASE("CUDA compile: a wrong snippet is reported at its own line and column") {
  if (nvrtc_is_missing()) return;
  Spec spec = kCausal;
  spec.mask_mod = "int k = kv_idx;\nreturn q_idx >= kv_idxx;";
  const Error error = refusal(spec, "forward_masked");
  REQUIRE(error.code() == ErrorCode::snippet);
  REQUIRE(error.place());
  REQUIRE(error.place()->file == "mask_mod");
  REQUIRE(error.place()->line == 2);
  REQUIRE(error.place()->column == 17);
  REQUIRE_THAT(error.hint(), ContainsSubstring("kv_idx"));
}

TEST_CASE("CUDA compile: a snippet that calls what it cannot is blamed, not the template") {
  if (nvrtc_is_missing()) return;
  Spec spec = kCausal;
  spec.score_mod = "score + slopes(h, 1)";
  spec.buffers["slopes"] = {.dtype = f32, .shape = {NamedDim::num_q_heads}};
  const Error error = refusal(spec, "forward");
  REQUIRE(error.code() == ErrorCode::snippet);
  REQUIRE(error.place()->file == "score_mod");
  REQUIRE(error.place()->line == 1);
}

TEST_CASE("CUDA compile: what ptxas says of a kernel is read from its log") {
  const auto kernels = cuda::parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "ptxas         .     1200 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 40 bytes smem\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
      "ptxas info    : Used 12 registers\n");
  REQUIRE(kernels.size() == 2);
  REQUIRE(kernels[0].entry == "a");
  REQUIRE(kernels[0].spill_bytes == 20);
  REQUIRE(kernels[0].stack_bytes == 1200);
  REQUIRE(kernels[0].registers == 40);
  REQUIRE(kernels[0].static_shared_bytes == 40);
  REQUIRE(kernels[1].registers == 12);
  REQUIRE(cuda::parse_ptxas_log("nothing of ptxas").empty());
}

TEST_CASE("CUDA compile: of ptxas's messages those that cost speed are warnings") {
  const std::string serialized =
      "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources for the wgmma pipeline in the function "
      "'f'";
  const std::string ignored =
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to "
      "determine register count at entry.";
  const std::string log = ignored +
                          "\nptxas info    : (C7517) warpgroup.wait is injected in around line 49\n"
                          "ptxas info    : (C7519) warpgroup.arrive is injected\n" +
                          serialized + "\nptxas info    : Used 30 registers, used 0 barriers\n";
  REQUIRE(cuda::performance_warnings(log) == std::vector<std::string>{ignored, serialized});
  REQUIRE(cuda::performance_warnings("").empty());
}

TEST_CASE("CUDA compile: a serialised wgmma and an ignored setmaxnreg are known of the kernel") {
  if (nvrtc_is_missing()) return;
  Toolchain toolchain = fresh_context();
  toolchain.templates = std::make_shared<jinja::MapLoader>(std::map<std::string, std::string>{
      {"cuda/kernels/portable_forward.cu.jinja", test::kSlowKernel}});
  Spec plain{.dtype = bf16, .head_dim = 64};
  plain.tactic = TacticSpec{"portable", {}};  // whose template is the one above
  for (const char* source : {"built", "memory"}) {
    const KernelBuild build =
        build_kernel(plain, Target::parse("sm_90a"), KernelVariant::parse("forward"), toolchain)
            .build;
    REQUIRE(build.source == source);
    REQUIRE(build.gpu);
    REQUIRE(build.gpu->performance_warnings.size() == 2);
    REQUIRE_THAT(build.gpu->performance_warnings[0], ContainsSubstring("(C7508)"));
    REQUIRE_THAT(build.gpu->performance_warnings[1], ContainsSubstring("(C7511)"));
  }
  REQUIRE(compile(plain, "sm_90a", "forward").build.gpu->performance_warnings.empty());
}
