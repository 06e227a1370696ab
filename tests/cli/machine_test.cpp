// What the machine lacks or refuses: status 3, one error, no output file.

#include <filesystem>

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string script(const Folder& folder, const std::string& body) {
  const std::string path = folder.write("cxx", "#!/bin/sh\n" + body + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

Ended run_with(const Folder& folder, const Environment& environment) {
  const std::string spec = folder.write("s.json", kCausal);
  return start(
      {"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", folder.path("out.safetensors")},
      environment);
}

void require_refused(const Ended& ended, const Folder& folder, const std::string& code,
                     const std::string& words) {
  INFO(ended.err);
  REQUIRE(ended.status == 3);
  REQUIRE_THAT(ended.err, ContainsSubstring("error[" + code + "]"));
  REQUIRE_THAT(ended.err, ContainsSubstring(words));
  REQUIRE_FALSE(std::filesystem::exists(folder.path("out.safetensors")));
}

}  // namespace

TEST_CASE("cli: a missing compiler is an error with a hint") {
  const Folder folder;
  const Environment environment = {{"TILEWRIGHT_CXX", "/nonexistent"},
                                   {"TILEWRIGHT_CACHE", folder.path("cache")}};
  require_refused(run_with(folder, environment), folder, "compiler", "/nonexistent");
  const Ended doctor = start({"doctor", "--json"}, environment);
  REQUIRE(doctor.status == 3);
  REQUIRE(doctor.json().at("ready") == false);
  REQUIRE(doctor.json().at("compiler").at("found") == false);
  REQUIRE(doctor.json().at("problems").at(0).at("fatal") == true);
}

TEST_CASE("cli: doctor says what to do where a library that was named is not there") {
  const Ended ended = start({"doctor", "--json"}, {{"TILEWRIGHT_NVRTC", "/nonexistent"}});
  const nlohmann::json problem = ended.json().at("problems").at(0);
  CHECK(problem.at("fatal") == false);
  CHECK_THAT(problem.at("what").get<std::string>(), ContainsSubstring("NVRTC"));
  CHECK_THAT(problem.at("advice").get<std::string>(), ContainsSubstring("TILEWRIGHT_NVRTC"));
}

TEST_CASE("cli: doctor lists a variable that it does not understand, and is not ready") {
  const char* const variable =
      GENERATE("TILEWRIGHT_CACHE_MAX_SIZE", "TILEWRIGHT_COMPILE_TIMEOUT", "TILEWRIGHT_LINEINFO",
               "TILEWRIGHT_JIT", "TILEWRIGHT_TEMPLATES");
  CAPTURE(variable);
  const Ended ended = start({"doctor", "--json"}, {{variable, "junk"}});
  INFO(ended.err);
  REQUIRE(ended.status == 3);
  const nlohmann::json facts = ended.json();
  REQUIRE(facts.at("ready") == false);
  bool is_listed = false;
  for (const nlohmann::json& problem : facts.at("problems")) {
    const std::string what = problem.at("what");
    is_listed = is_listed || (problem.at("fatal") == true && what.starts_with(variable));
  }
  REQUIRE(is_listed);
}

TEST_CASE("cli: a call that names its device does not read TILEWRIGHT_DEVICE") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({"dtype": "f32", "head_dim": 16})");
  const Environment wrong = {{"TILEWRIGHT_DEVICE", "junk"}};
  const std::vector<std::string> check = {"check", spec, "--inputs", "random:1,1,1,20,20"};
  std::vector<std::string> on_cpu = check;
  on_cpu.insert(on_cpu.end(), {"--device", "cpu"});
  CHECK(start(on_cpu, wrong).status == 0);
  CHECK_THAT(start(check, wrong).err,
             ContainsSubstring("TILEWRIGHT_DEVICE: unknown device \"junk\""));
}

TEST_CASE("cli: doctor says which calls fail where some do not read a wrong variable") {
  const auto [variable, broken] = GENERATE(table<std::string, std::string>({
      {"TILEWRIGHT_TUNED", "is \"junk\", so dense calls of specs without a tactic fail"},
      {"TILEWRIGHT_RESIDENT",
       "is \"junk\", so packed calls of sequences with at most 256 columns fail on Hopper GPUs"},
      {"TILEWRIGHT_DEVICE", ": unknown device \"junk\", so calls that name no device fail"},
  }));
  const Ended ended = start({"doctor", "--json"}, {{variable, "junk"}});
  CAPTURE(variable, ended.out, ended.err);
  REQUIRE(ended.status == 0);
  const nlohmann::json facts = ended.json();
  CHECK(facts.at("ready") == true);
  bool is_listed = false;
  for (const nlohmann::json& problem : facts.at("problems")) {
    const std::string what = problem.at("what");
    if (!what.starts_with(variable)) continue;
    is_listed = true;
    CHECK(problem.at("fatal") == false);
    CHECK_THAT(what, ContainsSubstring(broken));
  }
  CHECK(is_listed);
  CHECK_THAT(start({"doctor"}, {{variable, "junk"}}).out,
             ContainsSubstring("\nready, but for the calls named above: kernels run on "));
}

TEST_CASE("cli: doctor diagnoses the rest where the number of threads is wrong") {
  const Ended ended = start({"doctor", "--json"}, {{"TILEWRIGHT_THREADS", "junk"}});
  CAPTURE(ended.out, ended.err);
  REQUIRE_THAT(ended.out, ContainsSubstring("TILEWRIGHT_THREADS is \\\"junk\\\""));
  const nlohmann::json facts = ended.json();
  CHECK(facts.at("cpu").at("threads").is_null());
  CHECK(facts.at("ready") == facts.at("gpu").at("found"));  // else nothing runs
}

TEST_CASE("cli: empty switches are unset, but for one that may have been an \"off\"") {
  const char* const variable =
      GENERATE("TILEWRIGHT_LINEINFO", "TILEWRIGHT_TUNED", "TILEWRIGHT_RESIDENT");
  CAPTURE(variable);
  for (const char* const value : {"", "0", "1", "on", "off"}) {
    const Ended ended = start({"doctor", "--json"}, {{variable, value}});
    CAPTURE(value, ended.out);
    CHECK(ended.status == 0);
    CHECK_THAT(ended.out, !ContainsSubstring(std::string(variable) + " is"));
  }
  const auto jit = [](const char* value) {
    return start({"doctor", "--json"}, {{"TILEWRIGHT_JIT", value}}).json().at("jit");
  };
  CHECK(jit("1") == true);
  CHECK(jit("0") == false);
  CHECK(jit("").is_null());
}

TEST_CASE("cli: a compiler that fails, talks nonsense, writes nothing or hangs is an error") {
  const auto [body, words] = GENERATE(table<std::string, std::string>({
      {"exit 1", "exit status 1"},
      {"echo '?!$ 12:13 garbage' >&2; exit 3", "garbage"},
      {"exit 0", ""},
      {"for word; do last=$word; done; echo no ELF > kernel.so; exit 0", ""},
      {"kill -SEGV $$", "signal 11"},
      {"sleep 60", "1 s"},
  }));
  const Folder folder;
  const Ended ended = run_with(folder, {{"TILEWRIGHT_CXX", script(folder, body)},
                                        {"TILEWRIGHT_COMPILE_TIMEOUT", "1"},
                                        {"TILEWRIGHT_CACHE", folder.path("cache")}});
  CAPTURE(body);
  require_refused(ended, folder, "compiler", words);
}

TEST_CASE("cli: after a compiler has failed, the next run compiles and works") {
  const Folder folder;
  const std::string cache = folder.path("cache");
  require_refused(
      run_with(folder, {{"TILEWRIGHT_CXX", script(folder, "exit 1")}, {"TILEWRIGHT_CACHE", cache}}),
      folder, "compiler", "");
  const Ended ended = run_with(folder, {{"TILEWRIGHT_CACHE", cache}});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
}

TEST_CASE("cli: an output that cannot be written is refused before any work") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  // A compiler that is not there would be the error if the output were looked at later.
  const Environment environment = {{"TILEWRIGHT_CXX", "/nonexistent"},
                                   {"TILEWRIGHT_CACHE", folder.path("cache")}};
  for (const std::string& path :
       {folder.path("no/out"), folder.path(""), std::string("/proc/out.safetensors")}) {
    const Ended ended =
        start({"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", path}, environment);
    CAPTURE(path, ended.err);
    REQUIRE(ended.status == 3);
    // /proc says that root may write and refuses all the same, so there the compiler comes first.
    if (path.starts_with("/proc")) continue;
    REQUIRE_THAT(ended.err, ContainsSubstring("error[disk]"));
    REQUIRE_THAT(ended.err, ContainsSubstring("--outputs"));
  }
  REQUIRE(folder.names() == std::vector<std::string>{"s.json"});
}

TEST_CASE("cli: an output is no file that the command reads") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  std::filesystem::create_symlink(spec, folder.path("link"));
  for (const std::string& path : {spec, folder.path("link")}) {
    for (const char* option : {"--outputs", "--flex", "--picture"}) {
      std::vector<std::string> words = {"mask", spec, "--q-len", "64", "--kv-len", "64"};
      words.insert(words.end(), {option, path});
      if (std::string_view(option) == "--outputs") {
        words = {"check", spec, "--inputs", "random:1,1,1,16,16", option, path};
      }
      const Ended ended = start(words);
      CAPTURE(option, path, ended.err);
      REQUIRE(ended.status == 2);
      REQUIRE_THAT(ended.err, ContainsSubstring(option) &&
                                  ContainsSubstring("is a file that this command reads"));
    }
  }
  const std::string inputs = folder.path("x.safetensors");
  REQUIRE(start({"run", spec, "--inputs", "random:1,1,1,16,16", "--outputs", inputs}).status == 0);
  const Ended ended = start({"run", spec, "--inputs", inputs, "--outputs", inputs});
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("is a file that this command reads"));
}

TEST_CASE("cli: an earlier output stays as it was when a run fails") {
  const Folder folder;
  folder.write("out.safetensors", "precious");
  const std::string spec = folder.write("s.json", kCausal);
  const Ended ended = start(
      {"run", spec, "--inputs", "random:1,3,2,16,16", "--outputs", folder.path("out.safetensors")});
  REQUIRE(ended.status == 2);
  REQUIRE(std::filesystem::file_size(folder.path("out.safetensors")) == 8);
}

TEST_CASE("cli: a cache that cannot be used does not stop a run") {
  const Folder folder;
  const std::string file = folder.write("not_a_folder", "");
  const Ended ended = run_with(folder, {{"TILEWRIGHT_CACHE", file}});
  INFO(ended.err);
  REQUIRE(ended.status == 0);
  REQUIRE_THAT(ended.err, ContainsSubstring("warning: "));
  const nlohmann::json doctor = start({"doctor", "--json"}, {{"TILEWRIGHT_CACHE", file}}).json();
  REQUIRE(doctor.at("cache").at("writable") == false);
  REQUIRE(doctor.at("ready") == true);
}

TEST_CASE("cli: a misspelt variable is named with the one that was meant") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"({"dtype": "f32", "head_dim": 16})");
  const Environment misspelt = {{"TILEWRIGHT_CAHCE", "/tmp/x"}};
  const Ended rendered = start({"render", spec, "--target", "cpu"}, misspelt);
  REQUIRE(rendered.status == 0);
  REQUIRE_THAT(rendered.err, ContainsSubstring("warning: TILEWRIGHT_CAHCE is set, but tilewright "
                                               "reads no variable of that name: did you mean "
                                               "TILEWRIGHT_CACHE?"));
  REQUIRE(start({"render", spec, "--target", "cpu"}).err.empty());
  bool is_named = false;
  const nlohmann::json facts = start({"doctor", "--json"}, misspelt).json();
  for (const nlohmann::json& problem : facts["problems"]) {
    is_named = is_named || problem["what"].get<std::string>().starts_with("TILEWRIGHT_CAHCE");
  }
  REQUIRE(is_named);
}
