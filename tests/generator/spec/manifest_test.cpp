#include "generator/spec/manifest.hpp"

#include <algorithm>
#include <filesystem>

#include <unistd.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::filesystem::path kExamples = std::filesystem::path(TILEWRIGHT_SOURCE_DIR) / "examples";

Manifest read(const std::string& text) {
  return manifest_from_json(text, "m.json", kExamples);
}

Error refusal(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "accepted");
}

}  // namespace

TEST_CASE("manifest: specs by file and inline, what varies multiplies them") {
  const Manifest manifest = read(R"({
    "targets": ["sm_90a", "cpu"],
    "vary": {"dtype": ["f16", "bf16"]},
    "specs": [
      "causal.json",
      {"spec": {"name": "x", "mask_mod": "q_idx >= kv_idx"},
       "vary": {"head_dim": [64, 128], "outputs": [["out"], ["out", "lse"]]}},
      {"file": "causal.json", "vary": {"dtype": ["f32"], "block": [[64, 64], null]}}
    ]})");
  REQUIRE(manifest.targets == std::vector<std::string>{"sm_90a", "cpu"});
  REQUIRE(manifest.specs.size() == 2 + 8 + 2);
  REQUIRE(manifest.specs[0].pointer == "/specs/0");
  REQUIRE(manifest.specs[0].spec.dtype == DType::f16);
  REQUIRE(manifest.specs[1].spec.dtype == DType::bf16);
  const auto has = [&](DType dtype, std::int64_t head_dim, bool lse) {
    return std::any_of(manifest.specs.begin(), manifest.specs.end(), [&](const ManifestSpec& s) {
      return s.pointer == "/specs/1" && s.spec.dtype == dtype && s.spec.head_dim == head_dim &&
             s.spec.outputs.lse == lse;
    });
  };
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const std::int64_t head_dim : {64, 128}) {
      for (const bool lse : {false, true}) REQUIRE(has(dtype, head_dim, lse));
    }
  }
  REQUIRE(manifest.specs[10].spec.block[0] == 64);
  REQUIRE(manifest.specs[11].spec.block[0] == 128);
  REQUIRE(manifest.specs[11].spec.dtype == DType::f32);
}

TEST_CASE("manifest: a spec without a name takes the file's, and repetitions are dropped") {
  const Manifest manifest =
      read(R"({"specs": ["softcap.json", "softcap.json", {"file": "softcap.json"}]})");
  REQUIRE(manifest.specs.size() == 1);
  REQUIRE(manifest.specs[0].spec.name == "softcap");
}

TEST_CASE("manifest: the example is one") {
  const Manifest manifest = manifest_from_file(kExamples / "precompile" / "manifest.json");
  REQUIRE(manifest.specs.size() == 4 + 2 + 4);
  REQUIRE(manifest.targets.size() == 3);
}

TEST_CASE("manifest: what is wrong is named with its place, its pointer and the nearest name") {
  struct Case {
    std::string text;
    ErrorCode code;
    std::string message;
    std::string pointer;
    std::string hint;
  };
  const std::vector<Case> cases = {
      {R"({"spces": []})", ErrorCode::file, "unknown key \"spces\"", "/spces", "\"specs\""},
      {R"({"specs": []})", ErrorCode::file, "must be a list of specs", "/specs", ""},
      {R"({})", ErrorCode::file, "\"specs\" is missing", "/", "least manifest"},
      {R"([1])", ErrorCode::file, "is an object", "/", ""},
      {R"({"specs": ["casual.json"]})", ErrorCode::file, "casual.json", "/specs/0", "causal.json"},
      {R"({"specs": [{"flie": "causal.json"}]})", ErrorCode::file, "unknown key", "/specs/0/flie",
       "\"file\""},
      {R"({"specs": [{}]})", ErrorCode::file, "either \"file\" or \"spec\"", "/specs/0", ""},
      {R"({"specs": [3]})", ErrorCode::file, "a file's name or an object", "/specs/0", ""},
      {R"({"specs": [{"file": "causal.json", "vary": {"hed_dim": [64]}}]})", ErrorCode::file,
       "unknown key \"hed_dim\"", "/specs/0/vary/hed_dim", "\"head_dim\""},
      {R"({"specs": [{"file": "causal.json", "vary": {"head_dim": 64}}]})", ErrorCode::file,
       "must be a list", "/specs/0/vary/head_dim", "brackets"},
      {R"({"specs": [{"file": "causal.json", "vary": {"head_dim": [64, 300]}}]})", ErrorCode::spec,
       "head_dim is 300", "/specs/0/vary/head_dim/1", ""},
      {R"({"specs": [{"file": "causal.json", "vary": {"dtype": ["bfloat16"]}}]})", ErrorCode::spec,
       "bfloat16", "/specs/0/vary/dtype/0", "bf16"},
      {R"({"specs": [{"spec": {"dtype": "bf16", "hed_dim": 64}}]})", ErrorCode::spec, "hed_dim",
       "/specs/0/spec/hed_dim", "head_dim"},
      {R"({"specs": [{"spec": {"dtype": "bf16"}}]})", ErrorCode::spec, "\"head_dim\" is missing",
       "/specs/0", ""},
      {R"({"specs": [{"spec": {"dtype": "bf16", "head_dim": 64, "mask_mod": "(q_idx"}}]})",
       ErrorCode::snippet, "never closed", "/specs/0", ""},
      {R"({"targets": "cpu", "specs": ["causal.json"]})", ErrorCode::file, "must be a list",
       "/targets", ""},
  };
  for (const Case& c : cases) {
    const Error error = refusal(c.text);
    INFO(c.text << "\n" << error.what());
    REQUIRE(error.code() == c.code);
    REQUIRE_THAT(error.message(), ContainsSubstring(c.message));
    REQUIRE_THAT(error.what(),
                 ContainsSubstring("at " + c.pointer + " of the manifest \"m.json\""));
    REQUIRE_THAT(error.hint(), ContainsSubstring(c.hint));
    REQUIRE(error.place());
    if (c.code != ErrorCode::snippet) REQUIRE(error.place()->file == "m.json");
    REQUIRE_THAT(error.what(), !ContainsSubstring("combination"));
  }
  const Error syntax = refusal("{\"specs\": [\n  \"a.json\",\n]}");
  REQUIRE(syntax.code() == ErrorCode::file);
  REQUIRE(syntax.place()->line == 3);
}

TEST_CASE("manifest: what is wrong in a file that it names is shown in that file") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("manifest-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  write_text_file(folder / "bad.json", "{\n  \"dtype\": \"f32\",\n  \"head_dim\": 7\n}\n");
  write_text_file(folder / "broken.json", "{\n  \"dtype\": \"f32\",,\n}\n");
  const auto report = [&](const std::string& text) {
    try {
      manifest_from_json(text, "m.json", folder);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string bad = report(R"({"specs": ["bad.json"]})");
  const std::string varied =
      report(R"({"specs": [{"file": "bad.json", "vary": {"dtype": ["f16"]}}]})");
  const std::string broken = report(R"({"specs": ["broken.json"]})");
  std::filesystem::remove_all(folder);
  for (const std::string& text : {bad, varied}) {
    REQUIRE_THAT(text, ContainsSubstring("bad.json:3:15") && ContainsSubstring("at /specs/0"));
  }
  REQUIRE_THAT(broken, ContainsSubstring("broken.json:2") && ContainsSubstring("at /specs/0"));
}
