// Kernels for a GPU from a bundle, with NVRTC and the C++ compiler out of reach. The driver is not
// one (fake_driver.cpp): what is tested is that everything up to the launch asks for no compiler.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

using Catch::Matchers::ContainsSubstring;

namespace {

struct Ended {
  int status = -1;
  std::string text;
};

// The executable in an environment; words as a shell takes them.
Ended start(const std::string& environment, const std::string& words) {
  const std::string command = environment + " " TILEWRIGHT_EXECUTABLE " " + words + " 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  Ended ended;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    ended.text.append(buffer, count);
  }
  const int status = ::pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
  return ended;
}

struct Folder {
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("fake-gpu-" + std::to_string(::getpid()));
};

using tilewright::test::nvrtc_is_missing;

}  // namespace

TEST_CASE("fake GPU: a bundle serves a machine without NVRTC and without a compiler") {
  if (nvrtc_is_missing()) return;
  const Folder folder;
  const std::string spec = (folder.path / "causal.json").native();
  const std::string bundle = (folder.path / "a.twb").native();
  const std::string out = (folder.path / "out").native();
  tilewright::write_text_file(spec,
                              R"({"dtype": "f16", "head_dim": 64, "mask_mod": "q_idx >= kv_idx"})");
  tilewright::write_text_file(folder.path / "m.json", R"({"specs": ["causal.json"]})");
  const Ended made = start(
      "", "precompile " + (folder.path / "m.json").native() + " --targets sm_90 --out " + bundle);
  INFO(made.text);
  REQUIRE(made.status == 0);

  const std::string production =
      "TILEWRIGHT_NVRTC=/nonexistent TILEWRIGHT_CXX=/nonexistent TILEWRIGHT_DEVICE= "
      "TILEWRIGHT_CACHE=" +
      (folder.path / "cache").native() + " ";
  const std::string run = "run " + spec + " --inputs random:1,2,2,300,200 --outputs " + out;
  const Ended without = start(production, run + " --device cuda");
  INFO(without.text);
  REQUIRE(without.status == 3);
  REQUIRE_THAT(without.text, ContainsSubstring("NVRTC"));

  // The GPU is sm_90, whose own target is sm_90a: what the bundle has for sm_90 runs there, too.
  for (const char* jit : {"", "TILEWRIGHT_JIT=off "}) {
    const Ended ended = start(production + jit + "TILEWRIGHT_BUNDLES=" + bundle, run + " --json");
    INFO(ended.text);
    REQUIRE(ended.status == 0);
    REQUIRE_THAT(ended.text, ContainsSubstring("\"device\": \"cuda:0\"") &&
                                 ContainsSubstring("\"target\": \"sm_90\"") &&
                                 ContainsSubstring("\"source\": \"bundle\"") &&
                                 !ContainsSubstring("\"source\": \"built\""));
  }

  tilewright::write_text_file(spec,
                              R"({"dtype": "f16", "head_dim": 32, "mask_mod": "q_idx >= kv_idx"})");
  const Ended missed =
      start(production + "TILEWRIGHT_JIT=off TILEWRIGHT_BUNDLES=" + bundle, run + " --device cuda");
  INFO(missed.text);
  REQUIRE(missed.status == 3);
  REQUIRE_THAT(missed.text, ContainsSubstring("error[missing_kernel]") &&
                                ContainsSubstring("was not precompiled") &&
                                ContainsSubstring("head_dim: wanted 32, recorded 64"));
}

TEST_CASE("fake GPU: kernels in the cache serve a machine that has lost its NVRTC") {
  if (nvrtc_is_missing()) return;
  const Folder folder;
  const std::string spec = (folder.path / "causal.json").native();
  tilewright::write_text_file(spec,
                              R"({"dtype": "f16", "head_dim": 64, "mask_mod": "q_idx >= kv_idx"})");
  const std::string cache = "TILEWRIGHT_CACHE=" + (folder.path / "cache").native() + " ";
  const std::string run = "run " + spec +
                          " --device cuda --inputs random:1,2,2,300,200 --outputs " +
                          (folder.path / "out").native() + " --json";
  REQUIRE(start(cache, run).status == 0);
  const Ended ended =
      start(cache + "TILEWRIGHT_NVRTC=/nonexistent TILEWRIGHT_CXX=/nonexistent", run);
  INFO(ended.text);
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.text, ContainsSubstring("\"source\": \"disk\""));
}
