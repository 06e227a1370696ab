// Replays tests/fuzz/corpus. TILEWRIGHT_TEST_DEVICE=cuda runs the cases there.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_io.hpp"
#include "fuzz/case.hpp"
#include "fuzz/run_case.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(TILEWRIGHT_SOURCE_DIR "/tests/fuzz/corpus")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("corpus: every case is right", "[.corpus]") {
  const char* device = std::getenv("TILEWRIGHT_TEST_DEVICE");
  CaseRunner runner({});
  for (const std::filesystem::path& file : corpus()) {
    FuzzCase fuzz_case = case_from_file(file);
    const bool on_gpu = device && std::string_view(device).starts_with("cuda");
    if (!is_run(fuzz_case) && test::nvrtc_is_missing()) continue;
    if (is_run(fuzz_case) && on_gpu) fuzz_case.target = "cuda";
    const Outcome outcome = runner.run(fuzz_case);
    CAPTURE(file.filename().string(), to_string(outcome.failure), outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("corpus: every case has its cause in the list, and is named alike", "[.corpus]") {
  const std::string causes = read_text_file(TILEWRIGHT_SOURCE_DIR "/tests/fuzz/corpus/README.md");
  CHECK(corpus().size() >= 18);
  for (const std::filesystem::path& file : corpus()) {
    CAPTURE(file.filename().string());
    CHECK(causes.find("| `" + file.filename().string() + "` | ") != std::string::npos);
    CHECK(case_from_file(file).spec.name == file.stem().string());
  }
}
