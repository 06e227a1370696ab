#include "fuzz/campaign.hpp"

#include <chrono>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "fuzz/failure_files.hpp"
#include "generator/spec/spec.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

CampaignOptions options_for(const char* score_mod) {
  CampaignOptions options;
  options.source.user_spec = Spec{.head_dim = 16, .score_mod = score_mod};
  options.source.offsets = false;
  options.seed = 1;
  options.calls_of_spec = 1;
  return options;
}

ErrorCode code_of(const CampaignOptions& options) {
  try {
    run_campaign(options);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("the campaign ended without an error");
  return ErrorCode::internal;
}

TEST_CASE("campaign: a snippet that never ends is found where the time is shorter than a case's") {
  // The checked interpretation counts no rounds of a loop that declares in its condition.
  CampaignOptions options = options_for(
      "int i = 0;\nwhile (int one = i >= 0 && kv_idx < 100000) { i = (i + one) & 15; }\n"
      "return score + i;");
  options.time = std::chrono::seconds(1);
  options.time_limit = std::chrono::seconds(3);
  const CampaignState state = run_campaign(options);
  CHECK(state.cases == 1);
  CHECK_FALSE(state.says_nothing());
  REQUIRE(state.failures.groups().size() == 1);
  CHECK(state.failures.groups()[0].failure() == Failure::time_out);
}

TEST_CASE("campaign: every kind of snippet counts") {
  CampaignOptions options = options_for("");
  Spec& spec = *options.source.user_spec;
  spec.sink = "0.5f * h";
  spec.q_scale = "2";
  spec.v_scale = "2";
  spec.dropout = "0.25f";
  spec.scalars = {{"seed", {.dtype = i64, .default_value = 1}}};
  options.cases = 2;
  const CampaignState state = run_campaign(options);
  CHECK(state.cases == 2);
  CHECK(state.snippets >= 3);  // the fuzzer adds scales where it draws tensors of one byte
}

TEST_CASE("campaign: a run that judged nothing says nothing, unless it was stopped") {
  CampaignState state;
  CHECK(state.says_nothing());
  state.stopped = true;
  CHECK_FALSE(state.says_nothing());
  state.stopped = false;
  state.cases = 1;
  CHECK_FALSE(state.says_nothing());
}

TEST_CASE("campaign: a user's snippet that does not compile ends it") {
  CampaignOptions options = options_for("score + slope");
  options.cases = 1000;
  CHECK(code_of(options) == ErrorCode::snippet);
}

TEST_CASE("campaign: a machine that may not compile ends it") {
  CampaignOptions options = options_for("score + 1");
  options.cases = 2;
  options.run.kernels.jit = false;
  CHECK(code_of(options) == ErrorCode::missing_kernel);
}

class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "tilewright-XXXXXX").string();
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool holds(const char* name) const { return std::filesystem::exists(path_ / name); }

 private:
  std::filesystem::path path_;
};

FuzzCase numbered(std::int64_t number, std::int64_t q_len) {
  FuzzCase fuzz_case;
  fuzz_case.spec.head_dim = 16;
  fuzz_case.run_seed = 7;
  fuzz_case.number = number;
  fuzz_case.shape = {.q_len = q_len, .kv_len = 3};
  return fuzz_case;
}

TEST_CASE("failure files: what is smaller replaces what was found, and no case another") {
  const Folder folder;
  FailureFolder files(folder.path() / "out");
  files.write(numbered(1, 90));
  files.write(numbered(2, 80));
  CHECK(folder.holds("out/fuzz-7-2.json"));
  files.start_over();
  const FailureFiles first = files.write(numbered(1, 4));
  const FailureFiles other = files.write(numbered(1, 5));
  CHECK(files.write(numbered(1, 4)).fuzz_case == first.fuzz_case);
  files.remove_replaced();
  CHECK(case_from_file(first.fuzz_case) == numbered(1, 4));
  CHECK(case_from_file(other.fuzz_case) == numbered(1, 5));
  CHECK(folder.holds("out/fuzz-7-1.json"));
  CHECK(folder.holds("out/fuzz-7-1-forward.cpp"));
  CHECK(folder.holds("out/fuzz-7-1-2.json"));
  CHECK_FALSE(folder.holds("out/fuzz-7-2.json"));
  CHECK_FALSE(folder.holds("out/fuzz-7-2-forward.cpp"));
}

}  // namespace
