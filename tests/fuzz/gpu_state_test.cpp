#include "fuzz/gpu_state.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file_io.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/environment.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string described_on(const std::string& path) {
  const std::string before = environment("PATH");
  ::setenv("PATH", path.c_str(), 1);
  std::string text = verify::fuzz::describe_gpus();
  ::setenv("PATH", before.c_str(), 1);
  return text;
}

std::string described_by(const std::string& script) {
  const TemporaryDirectory folder("nvidia-smi");
  write_text_file(folder.path() / "nvidia-smi", "#!/bin/sh\n" + script, 0755);
  return described_on(folder.path().string() + ":/usr/bin:/bin");
}

}  // namespace

TEST_CASE("gpu state: utilisation of the GPU and of each process") {
  const std::string text = described_by(
      "case $1 in pmon) printf '0 4711 C 99\\n' ;; *) printf 'index, utilization\\n0, 99 %%\\n' ;; "
      "esac\n");
  CHECK(text == "  index, utilization\n  0, 99 %\n  0 4711 C 99\n");
}

TEST_CASE("gpu state: a nvidia-smi that fails or is missing says so") {
  CHECK_THAT(described_by("echo no driver; exit 9"),
             ContainsSubstring("nvidia-smi: exit status 9; no driver"));
  CHECK_THAT(described_on("/nonexistent"), ContainsSubstring("nvidia-smi"));
}
