// Names of kernels: what leads back from a profiler to a spec.

#include <fstream>
#include <sstream>
#include <string>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;

namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("cli: a kernel's name leads back to its spec, from the cache and from a bundle") {
  const Folder folder;
  const std::string spec = folder.write("spec.json", kCausal);
  const Environment own_cache = {{"TILEWRIGHT_CACHE", folder.path("cache")}};
  const Ended compiled = start(
      {"compile", spec, "--target", "cpu-x86-64-v3", "--kernel", "forward_masked_lse", "--json"},
      own_cache);
  REQUIRE(compiled.status == 0);
  const std::string name = compiled.json()["kernels"][0]["names"][0];
  REQUIRE_THAT(name, Matches("tw_forward_masked_lse_[0-9a-f]{8}"));
  const Ended rendered = start({"render", spec, "--target", "cpu-x86-64-v3", "--json"});
  CHECK(rendered.json()["names"][0] == name);

  for (const std::string& given : {name, name.substr(name.size() - 8)}) {
    const Ended explained = start({"cache", "explain", given, "--json"}, own_cache);
    INFO(explained.err);
    REQUIRE(explained.status == 0);
    const nlohmann::json kernel = explained.json()["kernels"].at(0);
    CHECK(kernel["kernel"] == "forward_masked_lse");
    CHECK(kernel["target"] == "cpu-x86-64-v3");
    CHECK(kernel["spec_name"] == "causal");
    CHECK(kernel["spec"]["mask_mod"] == "q_idx >= kv_idx");
    CHECK(kernel["where"] == folder.path("cache"));
  }
  const Ended shown = start({"cache", "explain", name}, own_cache);
  CHECK_THAT(shown.out, ContainsSubstring(name) && ContainsSubstring("spec      \"causal\"") &&
                            ContainsSubstring("\"mask_mod\": \"q_idx >= kv_idx\""));

  const std::string bundle = folder.path("kernels.twb");
  REQUIRE(start({"cache", "export", "--out", bundle}, own_cache).status == 0);
  const Ended bundled =
      start({"cache", "explain", name, "--json"},
            {{"TILEWRIGHT_CACHE", folder.path("empty")}, {"TILEWRIGHT_BUNDLES", bundle}});
  INFO(bundled.err);
  REQUIRE(bundled.status == 0);
  CHECK(bundled.json()["kernels"].at(0)["where"] == bundle);
}

TEST_CASE("cli: a name that nothing has is refused, and so are options of a spec") {
  const Folder folder;
  const Environment empty = {{"TILEWRIGHT_CACHE", folder.path("cache")}};
  const Ended unknown = start({"cache", "explain", "tw_forward_00000000"}, empty);
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("is named \"tw_forward_00000000\"") &&
                              ContainsSubstring("TILEWRIGHT_CACHE"));
  const Ended verbose = start({"cache", "explain", "00000000", "--verbose"}, empty);
  CHECK(verbose.status == 2);
  CHECK_THAT(verbose.err, ContainsSubstring("takes neither --target nor --verbose"));
}

TEST_CASE("cli: TILEWRIGHT_LINEINFO gives GPU kernels lines, unless nothing may be compiled") {
  if (nvrtc_is_missing()) return;
  const Folder folder;
  const std::string spec = folder.write("spec.json", kCausal), log = folder.path("log");
  const auto compile = [&](const char* lines, const char* jit) {
    return start({"compile", spec, "--target", "sm_90a", "--kernel", "mask_exact", "-o",
                  folder.path("mask.cubin")},
                 {{"TILEWRIGHT_CACHE", folder.path("cache")},
                  {"TILEWRIGHT_LINEINFO", lines},
                  {"TILEWRIGHT_JIT", jit},
                  {"TILEWRIGHT_LOG", log}});
  };
  REQUIRE(compile("1", "on").status == 0);
  CHECK_THAT(text_of(folder.path("mask.cubin")), ContainsSubstring(".debug_line"));
  REQUIRE(compile("0", "on").status == 0);
  CHECK_THAT(text_of(folder.path("mask.cubin")), !ContainsSubstring(".debug_line"));
  CHECK_THAT(text_of(log), !ContainsSubstring("line_info"));
  REQUIRE(compile("1", "off").status == 0);
  CHECK_THAT(text_of(folder.path("mask.cubin")), !ContainsSubstring(".debug_line"));
  CHECK_THAT(text_of(log), ContainsSubstring("line_info ignored="));
  const Ended wrong = compile("yes", "on");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("TILEWRIGHT_LINEINFO is \"yes\""));
}

TEST_CASE("cli: ranges of a profiler have the spec's name") {
  const Folder folder;
  const std::string spec = folder.write("spec.json", kCausal), ranges = folder.path("ranges");
  const std::vector<std::string> run = {
      "run", spec, "--inputs", "random:1,1,1,64,64", "--outputs", folder.path("out.safetensors")};
  const Ended profiled = start(run, {{"TILEWRIGHT_DEVICE", "cpu"},
                                     {"NVTX_INJECTION64_PATH", TILEWRIGHT_TEST_PROFILER},
                                     {"TILEWRIGHT_TEST_RANGES", ranges}});
  INFO(profiled.err);
  REQUIRE(profiled.status == 0);
  CHECK(text_of(ranges) == "push causal block_mask\npop\npush causal\npop\n");
  const Ended without = start(run, {{"TILEWRIGHT_DEVICE", "cpu"},
                                    {"NVTX_INJECTION64_PATH", folder.path("no_such_library.so")}});
  CHECK(without.status == 0);
}
