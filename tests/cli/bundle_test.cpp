// Precompiled kernels: precompile, bundles, TILEWRIGHT_JIT=off, cache explain and export.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file_io.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

const std::string kShape = "random:1,2,2,70,70";

// A manifest of one spec, and a cache that all tests share so that its kernels are compiled once.
struct Setup {
  Folder folder;
  std::string spec = folder.write("causal.json", kCausal);
  std::string manifest = folder.write("m.json", R"({"specs": ["causal.json"]})");
  std::string bundle = folder.path("a.twb");

  Ended precompile(std::vector<std::string> more = {}, Environment environment = {}) const {
    std::vector<std::string> words = {"precompile", manifest, "--targets", "cpu", "--out", bundle};
    words.insert(words.end(), more.begin(), more.end());
    return start(words, environment);
  }

  // Neither a compiler, nor a kernel in the cache, nor leave to compile.
  Environment production(const Environment& more = {}) const {
    Environment environment = {
        {"TILEWRIGHT_BUNDLES", bundle},     {"TILEWRIGHT_JIT", "off"},
        {"TILEWRIGHT_CXX", "/nonexistent"}, {"TILEWRIGHT_NVRTC", "/nonexistent"},
        {"TILEWRIGHT_DEVICE", "cpu"},       {"TILEWRIGHT_CACHE", folder.path("empty")}};
    for (const auto& changed : more) {
      std::erase_if(environment,
                    [&](const auto& variable) { return variable.first == changed.first; });
      environment.push_back(changed);
    }
    return environment;
  }

  Ended run(const Environment& environment, const std::string& which = {}) const {
    return start({"run", which.empty() ? spec : which, "--inputs", kShape, "--outputs",
                  folder.path("out"), "--json"},
                 environment);
  }
};

nlohmann::json done(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  return ended.json();
}

void require_refused(const Ended& ended, int status, const std::vector<std::string>& words) {
  INFO(ended.err);
  REQUIRE(ended.status == status);
  for (const std::string& word : words) REQUIRE_THAT(ended.err, ContainsSubstring(word));
}

}  // namespace

TEST_CASE("cli: the same manifest gives the same bundle, and a bundle runs without a compiler") {
  const Setup setup;
  const Ended text = setup.precompile({"--jobs", "2"});
  INFO(text.err);
  REQUIRE(text.status == 0);
  REQUIRE_THAT(text.out, ContainsSubstring("kernels of 1 spec for cpu-x86-64-v3, cpu-x86-64-v4"));
  const auto first = read_file(setup.bundle);

  // Compiled anew, in another cache, one at a time, from another directory.
  const nlohmann::json facts = done(setup.precompile(
      {"--jobs", "1", "--json"}, {{"TILEWRIGHT_CACHE", setup.folder.path("other")}, {"PWD", "/"}}));
  REQUIRE(read_file(setup.bundle) == first);
  const std::size_t kernels = facts["kernels"];
  REQUIRE(kernels >= 6);
  REQUIRE(facts["compiled"] == kernels);
  REQUIRE(facts["bytes"] == first.size());
  REQUIRE(facts["signer"].is_null());

  // Nothing is left to compile.
  const nlohmann::json again =
      done(setup.precompile({"--json"}, {{"TILEWRIGHT_CACHE", setup.folder.path("other")}}));
  REQUIRE(again["compiled"] == 0);
  REQUIRE(again["found"] == kernels);
  REQUIRE(again["sha256"] == facts["sha256"]);
  REQUIRE(read_file(setup.bundle) == first);

  const nlohmann::json result = done(setup.run(setup.production()));
  REQUIRE_THAT(result["target"].get<std::string>(), ContainsSubstring("cpu-x86-64-v"));
  for (const nlohmann::json& kernel : result["kernels"]) {
    REQUIRE(kernel["source"] == "bundle");
    REQUIRE(kernel["render_ms"] == 0);
  }
  REQUIRE_FALSE(std::filesystem::exists(setup.folder.path("empty")));

  // What was exported from the cache is the same bundle.
  const std::string exported = setup.folder.path("exported.twb");
  const nlohmann::json summary = done(start({"cache", "export", "--out", exported, "--json"},
                                            {{"TILEWRIGHT_CACHE", setup.folder.path("other")}}));
  REQUIRE(summary["kernels"] == kernels);
  REQUIRE(read_file(exported) == first);
}

TEST_CASE(
    "cli: without leave to compile, a miss names the spec, the nearest entry and what to add") {
  const Setup setup;
  REQUIRE(setup.precompile().status == 0);
  const std::string other = setup.folder.write(
      "wide.json", R"({"name": "wide", "dtype": "f32", "head_dim": 32, "block": [64, 64],
                       "mask_mod": "q_idx >= kv_idx", "outputs": ["out", "lse"]})");
  const Ended ended = setup.run(setup.production(), other);
  require_refused(ended, 3,
                  {"error[missing_kernel]", "\"wide\"", "TILEWRIGHT_JIT=off", "of \"causal\"",
                   "head_dim: wanted 32, recorded 16", "\"specs\" of the manifest",
                   R"({"spec": {"name": "wide", "dtype": "f32", "head_dim": 32)"});
  REQUIRE(ended.json()["error"]["code"] == "missing_kernel");
  REQUIRE_FALSE(std::filesystem::exists(setup.folder.path("out")));
  require_refused(setup.run(setup.production({{"TILEWRIGHT_JIT", "of"}})), 2,
                  {"TILEWRIGHT_JIT is \"of\""});
  require_refused(setup.precompile({}, {{"TILEWRIGHT_JIT", "off"}}), 2, {"TILEWRIGHT_JIT=off"});
}

TEST_CASE("cli: a signature that is required is looked for") {
  const Setup setup;
  const std::string key =
      setup.folder.write("key.pem",  // RFC 8032, 7.1, test 1
                         "-----BEGIN PRIVATE KEY-----\n"
                         "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
                         "-----END PRIVATE KEY-----\n");
  const std::string trusted = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
  const std::string foreign = std::string(64, 'a');
  REQUIRE(setup.precompile().status == 0);
  require_refused(setup.run(setup.production({{"TILEWRIGHT_BUNDLE_KEY", trusted}})), 3,
                  {"it is not signed", "error[missing_kernel]"});
  REQUIRE(done(setup.precompile({"--sign", key, "--json"}))["signer"] == trusted);
  const auto once = read_file(setup.bundle);
  REQUIRE(setup.precompile({"--sign", key}).status == 0);
  REQUIRE(read_file(setup.bundle) == once);
  REQUIRE(setup.run(setup.production({{"TILEWRIGHT_BUNDLE_KEY", trusted}})).status == 0);
  REQUIRE(setup.run(setup.production()).status == 0);
  require_refused(setup.run(setup.production({{"TILEWRIGHT_BUNDLE_KEY", foreign}})), 3,
                  {"which is not trusted"});
  require_refused(setup.run(setup.production({{"TILEWRIGHT_BUNDLE_KEY", "/no/key"}})), 2,
                  {"TILEWRIGHT_BUNDLE_KEY", "is no public key"});
  require_refused(setup.precompile({"--sign", setup.spec}), 2, {"holds no private Ed25519 key"});
}

TEST_CASE("cli: a damaged bundle is never used, and what is compiled instead is right") {
  const Setup setup;
  REQUIRE(setup.precompile().status == 0);
  std::vector<std::byte> bytes = read_file(setup.bundle);
  std::uint64_t index_bytes = 0;
  std::memcpy(&index_bytes, &bytes[16], sizeof index_bytes);
  for (std::size_t at = 192 + index_bytes; at < bytes.size(); at += 1000) bytes[at] ^= std::byte{4};
  write_file(setup.bundle, bytes);
  const Ended refused = setup.run(setup.production());
  require_refused(
      refused, 3,
      {"its digest does not match", "is damaged in \"" + setup.bundle, "copy the bundle again"});
  REQUIRE_THAT(refused.err, !ContainsSubstring("manifest"));
  const Ended ended = setup.run({{"TILEWRIGHT_BUNDLES", setup.bundle}});
  REQUIRE(done(ended)["kernels"].size() == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("warning: the entry"));
  bytes.resize(bytes.size() / 2);
  write_file(setup.bundle, bytes);
  const Ended truncated = setup.run({{"TILEWRIGHT_BUNDLES", setup.bundle}});
  REQUIRE(done(truncated)["target"] == "cpu");
  REQUIRE_THAT(truncated.err, ContainsSubstring("warning: the bundle"));
}

TEST_CASE("cli: cache explain prints every ingredient, where was looked and why it was missed") {
  const Setup setup;
  REQUIRE(setup.precompile().status == 0);
  const nlohmann::json hit =
      done(start({"cache", "explain", setup.spec, "--json"}, setup.production()));
  REQUIRE(hit["jit"] == false);
  for (const nlohmann::json& kernel : hit["kernels"]) {
    REQUIRE(kernel["looked_in"][0]["hit"] == true);
    REQUIRE(kernel["looked_in"][0]["where"] == setup.bundle);
    for (const char* tag : {"source", "target", "options", "kernel", "format", "compiler",
                            "generator", "spec.dtype", "spec.head_dim", "spec.mask_mod"}) {
      INFO(tag);
      REQUIRE(kernel["ingredients"].contains(tag));
    }
  }
  const std::string other = setup.folder.write(
      "sliding.json", R"({"name": "sliding", "dtype": "f32", "head_dim": 16, "block": [64, 64],
                          "mask_mod": "q_idx >= kv_idx + 1", "outputs": ["out", "lse"]})");
  const Ended missed =
      start({"cache", "explain", other, "--target", "cpu-x86-64-v3"}, setup.production());
  REQUIRE(missed.status == 0);
  // merge is the same for every mask_mod.
  for (const char* words : {"1 of 5 kernels is found: 1 in", "merge: found in", "missed in",
                            "mask_mod: wanted q_idx >= kv_idx + 1, recorded", "the nearest is",
                            "of \"causal\" for cpu-x86-64-v3"}) {
    REQUIRE_THAT(missed.out, ContainsSubstring(words));
  }
  require_refused(start({"cache", "explain"}), 2, {"needs a spec"});
  require_refused(start({"cache", "stats", setup.spec}), 2, {"takes no file"});
  for (const char* const action : {"ls", "stats", "verify", "prune", "clear"}) {
    require_refused(start({"cache", action, "--out", "x.twb"}, setup.production()), 2,
                    {"takes no --out", "export"});
    require_refused(start({"cache", action, "--sign", "k.pem"}, setup.production()), 2,
                    {"takes no --sign", "export"});
  }
  require_refused(start({"cache", "ls", "--target", "cpu"}), 2, {"it belongs to cache explain"});
  require_refused(start({"cache", "ls", setup.spec}), 2, {"error[file]"});

  // What is found takes a line each, after a line that counts.
  const Ended found = start({"cache", "explain", setup.spec}, setup.production());
  REQUIRE(found.status == 0);
  const std::string count = std::to_string(hit["kernels"].size());
  REQUIRE_THAT(found.out, StartsWith("causal for ") &&
                              ContainsSubstring(count + " of " + count + " kernels are found: " +
                                                count + " in " + setup.bundle));
  REQUIRE(std::count(found.out.begin(), found.out.end(), '\n') <=
          static_cast<std::ptrdiff_t>(hit["kernels"].size()) + 3);
  const Ended verbose = start({"cache", "explain", setup.spec, "--verbose"}, setup.production());
  REQUIRE_THAT(verbose.out, ContainsSubstring("spec.mask_mod"));
  require_refused(start({"cache", "export"}), 2, {"--out is missing"});
}

TEST_CASE("cli: cache ls and cache verify take a bundle") {
  const Setup setup;
  REQUIRE(setup.precompile().status == 0);
  const nlohmann::json listed = done(start({"cache", "ls", setup.bundle, "--json"}));
  REQUIRE(listed["entries"].size() >= 6);
  for (const nlohmann::json& entry : listed["entries"]) {
    REQUIRE(entry["bytes"].get<int>() > 0);
    REQUIRE(entry["target"].get<std::string>().starts_with("cpu-x86-64-v"));
    REQUIRE(entry["kernel"] != "-");
    REQUIRE(entry["spec"] == "causal");
  }
  REQUIRE_THAT(start({"cache", "ls", setup.bundle}).out, ContainsSubstring("forward_masked"));
  const nlohmann::json sound = done(start({"cache", "verify", setup.bundle, "--json"}));
  REQUIRE(sound["ok"] == true);
  REQUIRE(sound["kernels"] == listed["entries"].size());

  // A byte of the last payload.
  std::fstream file(setup.bundle, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-10, std::ios::end);
  file.put('\x7f');
  file.close();
  const Ended damaged = start({"cache", "verify", setup.bundle, "--json"});
  REQUIRE(damaged.status == 1);
  const nlohmann::json facts = nlohmann::json::parse(damaged.out);
  REQUIRE(facts["ok"] == false);
  REQUIRE(facts["bad"].size() == 1);
  REQUIRE_THAT(start({"cache", "verify", setup.bundle}).out, StartsWith("DAMAGED"));

  // doctor names the damage, and does not ask for a compiler where nothing may be compiled.
  const Ended doctor = start({"doctor"}, setup.production());
  REQUIRE_THAT(doctor.out, ContainsSubstring("1 of " + std::to_string(listed["entries"].size()) +
                                             " kernels of"));
  REQUIRE_THAT(doctor.out, !ContainsSubstring("apt-get install g++") &&
                               !ContainsSubstring("cannot be compiled"));

  // A byte of the index: nothing of the bundle is used.
  std::fstream header(setup.bundle, std::ios::in | std::ios::out | std::ios::binary);
  header.seekp(200);
  header.put('\x7f');
  header.close();
  REQUIRE(start({"cache", "verify", setup.bundle}).status == 1);
  require_refused(start({"cache", "ls", setup.bundle}), 2, {"error[file]"});
  require_refused(start({"cache", "verify", "/nonexistent.twb"}), 2, {"does not exist"});
}

TEST_CASE("cli: doctor lists bundles, and is ready without a compiler where they serve") {
  const Setup setup;
  REQUIRE(setup.precompile().status == 0);
  const nlohmann::json facts = done(start({"doctor", "--json"}, setup.production()));
  REQUIRE(facts["jit"] == false);
  REQUIRE(facts["bundles"][0]["path"] == setup.bundle);
  REQUIRE(facts["bundles"][0]["kernels"].get<int>() >= 6);
  REQUIRE(facts["bundles"][0]["targets"] ==
          nlohmann::json::array({"cpu-x86-64-v3", "cpu-x86-64-v4"}));
  REQUIRE(facts["ready"] == true);
  const Ended broken =
      start({"doctor", "--json"}, setup.production({{"TILEWRIGHT_BUNDLES", "/nonexistent.twb"}}));
  REQUIRE(broken.status == 3);
  REQUIRE_THAT(broken.out, ContainsSubstring("/nonexistent.twb"));
}

TEST_CASE("cli: what is wrong with a manifest is said before anything is compiled") {
  const Setup setup;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    const std::string manifest = setup.folder.write("bad.json", text);
    require_refused(start({"precompile", manifest, "--targets", "cpu", "--out", setup.bundle}), 2,
                    words);
    REQUIRE_FALSE(std::filesystem::exists(setup.bundle));
  };
  refused(R"({"spces": []})", {"unknown key \"spces\"", "did you mean \"specs\"?", "/spces"});
  refused(R"({"specs": ["casual.json"]})", {"/specs/0", "\"causal.json\""});
  refused(R"({"specs": ["causal.json", {"file": "causal.json", "vary": {"head_dim": [7]}}]})",
          {"head_dim", "/specs/1/vary/head_dim/0", "bad.json:1:"});
  const auto with = [&](const std::string& targets, const std::string& out) {
    return start({"precompile", setup.manifest, "--targets", targets, "--out", out});
  };
  require_refused(with("sm_90b", setup.bundle), 2, {"sm_90b", "did you mean"});
  require_refused(with("cpu", "/nonexistent/a.twb"), 3, {"there is no folder"});
  require_refused(start({"precompile", setup.manifest, "--out", setup.bundle}), 2,
                  {"no target is named"});
}

TEST_CASE("cli: a snippet that does not compile is named with its spec and its place") {
  const Setup setup;
  const std::string manifest = setup.folder.write(
      "m2.json", R"({"specs": [{"spec": {"name": "wrong", "dtype": "f32", "head_dim": 16,
                                          "score_mod": "score * slop"}}]})");
  require_refused(
      start({"precompile", manifest, "--targets", "cpu-x86-64-v3", "--out", setup.bundle}), 2,
      {"error[snippet]", "slop", "score_mod:1:9", "\"wrong\"", "/specs/0"});
}

TEST_CASE("cli: many kernels of one manifest all load with no compiler") {
  if (!is_full_run()) return;
  const Setup setup;
  const int specs = is_whole_run() ? 34 : 12;
  const int least_kernels = is_whole_run() ? 200 : 70;
  std::string values;
  for (int i = 1; i <= specs; ++i) {
    values += (i > 1 ? ", " : "") +
              std::string(R"({"spec": {"dtype": "f32", "head_dim": 16, "block": [64, 64],)") +
              R"( "mask_mod": "q_idx >= kv_idx + )" + std::to_string(i) + "\"}}";
  }
  const std::string manifest = setup.folder.write("many.json", "{\"specs\": [" + values + "]}");
  const nlohmann::json facts =
      done(start({"precompile", manifest, "--targets", "cpu", "--out", setup.bundle, "--json"}, {},
                 std::chrono::minutes(9)));
  REQUIRE(facts["kernels"].get<int>() >= least_kernels);
  // Every spec is run, from its own line of the manifest.
  for (int i = 1; i <= specs; ++i) {
    const std::string spec = setup.folder.write(
        "one.json", R"({"dtype": "f32", "head_dim": 16, "block": [64, 64], "mask_mod": )" +
                        ("\"q_idx >= kv_idx + " + std::to_string(i)) + "\"}");
    REQUIRE(done(setup.run(setup.production(), spec))["kernels"][0]["source"] == "bundle");
    const nlohmann::json found =
        done(start({"cache", "explain", spec, "--json"}, setup.production()));
    for (const nlohmann::json& kernel : found["kernels"]) {
      REQUIRE(kernel["looked_in"][0]["hit"] == true);
    }
  }
}
