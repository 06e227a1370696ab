// Wrong tensors, files and values: one error with a code and a hint, status 2, and no output file.

#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct WrongTensors {
  std::string words;
  std::vector<Zeros> tensors;
};

Ended run_on(const Folder& folder, const std::string& spec, const std::string& inputs,
             const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"run",  spec,        "--inputs",
                                        inputs, "--outputs", folder.path("out.safetensors")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return start(arguments);
}

void require_refused(const Ended& ended, const Folder& folder, const std::string& code,
                     const std::string& words) {
  INFO(ended.err);
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("error[" + code + "]"));
  REQUIRE_THAT(ended.err, ContainsSubstring(words));
  REQUIRE(ended.out.empty());
  for (const std::string& name : folder.names()) {
    REQUIRE_THAT(name, !ContainsSubstring("out.safetensors"));
  }
}

}  // namespace

TEST_CASE("cli: wrong q, k and v are refused by name before anything is compiled") {
  const WrongTensors wrong = GENERATE(values<WrongTensors>({
      {"q has rank 3",
       {{"q", f32, {2, 8, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 2, 8, 16}}}},
      {"k has rank 2", {{"q", f32, {1, 2, 8, 16}}, {"k", f32, {8, 16}}, {"v", f32, {1, 2, 8, 16}}}},
      {"q is f16",
       {{"q", f16, {1, 2, 8, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 2, 8, 16}}}},
      {"q has head_dim 24",
       {{"q", f32, {1, 2, 8, 24}}, {"k", f32, {1, 2, 8, 24}}, {"v", f32, {1, 2, 8, 16}}}},
      {"v has v_head_dim 8",
       {{"q", f32, {1, 2, 8, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 2, 8, 8}}}},
      {"v has kv_len 9",
       {{"q", f32, {1, 2, 8, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 2, 9, 16}}}},
      {"v has num_kv_heads 1",
       {{"q", f32, {1, 2, 8, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 1, 8, 16}}}},
      {"k has batch 2",
       {{"q", f32, {3, 2, 8, 16}}, {"k", f32, {2, 2, 8, 16}}, {"v", f32, {3, 2, 8, 16}}}},
      {"3 query heads cannot be shared by 2",
       {{"q", f32, {1, 3, 8, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 2, 8, 16}}}},
      {"q is empty",
       {{"q", f32, {1, 2, 0, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 2, 8, 16}}}},
      {"k is empty",
       {{"q", f32, {1, 2, 8, 16}}, {"k", f32, {1, 2, 0, 16}}, {"v", f32, {1, 2, 0, 16}}}},
      {"no tensor \"v\"", {{"q", f32, {1, 2, 8, 16}}, {"k", f32, {1, 2, 8, 16}}}},
      {"extra tensor \"bias\"",
       {{"q", f32, {1, 2, 8, 16}},
        {"k", f32, {1, 2, 8, 16}},
        {"v", f32, {1, 2, 8, 16}},
        {"bias", f32, {1}}}},
  }));
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  const std::string inputs = write_zeros(folder, "in.safetensors", wrong.tensors);
  require_refused(run_on(folder, spec, inputs), folder, "tensor", wrong.words);
}

TEST_CASE("cli: a misspelt tensor names the nearest one") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kDocuments);
  const std::string inputs = write_zeros(folder, "in.safetensors",
                                         {{"q", f32, {1, 1, 8, 16}},
                                          {"k", f32, {1, 1, 8, 16}},
                                          {"v", f32, {1, 1, 8, 16}},
                                          {"docs", i32, {1, 8}}});
  require_refused(run_on(folder, spec, inputs), folder, "tensor", "did you mean \"doc\"?");
}

TEST_CASE("cli: a buffer cannot have the name of q, k or v in a file") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({"dtype": "f32", "head_dim": 16,
    "score_mod": "score + k[0]", "buffers": {"k": {"dtype": "f32", "shape": [1]}}})json");
  const std::string inputs = write_zeros(
      folder, "in.safetensors",
      {{"q", f32, {1, 1, 8, 16}}, {"k", f32, {1, 1, 8, 16}}, {"v", f32, {1, 1, 8, 16}}});
  require_refused(run_on(folder, spec, inputs), folder, "spec", "has the name of an input");
}

TEST_CASE("cli: a buffer that differs from its declaration is refused") {
  const WrongTensors wrong = GENERATE(values<WrongTensors>({
      {"\"doc\" has another dtype", {{"doc", i64, {1, 8}}}},
      {"\"doc\" has another rank", {{"doc", i32, {8}}}},
      {"kv_len of this call is 8", {{"doc", i32, {1, 9}}}},
      {"batch of this call is 1", {{"doc", i32, {2, 8}}}},
      {"no tensor \"doc\"", {}},
  }));
  const Folder folder;
  const std::string spec = folder.write("s.json", kDocuments);
  std::vector<Zeros> tensors = wrong.tensors;
  for (const char* name : {"q", "k", "v"}) tensors.push_back({name, f32, {1, 1, 8, 16}});
  const std::string inputs = write_zeros(folder, "in.safetensors", tensors);
  require_refused(run_on(folder, spec, inputs, {"--scalar", "cap=1"}), folder, "tensor",
                  wrong.words);
}

TEST_CASE("cli: a file that is truncated, lies or is no safetensors is refused") {
  const std::string good = R"({"q":{"dtype":"F32","shape":[1,1,2,16],"data_offsets":[0,128]},)"
                           R"("k":{"dtype":"F32","shape":[1,1,2,16],"data_offsets":[128,256]},)"
                           R"("v":{"dtype":"F32","shape":[1,1,2,16],"data_offsets":[256,384]}})";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string header = good;
    return header.replace(header.find(from), from.size(), to);
  };
  const auto whole = [](const std::string& header, std::size_t bytes) {
    return raw_safetensors(header.size(), header, bytes);
  };
  const std::vector<std::string> files = {
      "",
      "1234567",
      "q,k,v\n1,2,3\n",
      raw_safetensors(std::uint64_t{1} << 62, good, 384),  // a header longer than any file
      raw_safetensors(good.size() + 1000, good, 384),      // a header that runs into the data
      raw_safetensors(good.size() - 1, good, 384),         // a header that is cut
      whole(good, 383),                                    // data that is cut
      whole(good, 400),                                    // data that no tensor owns
      whole(changed("[128,256]", "[100,228]"), 384),       // an overlap
      whole(changed("[128,256]", "[256,128]"), 384),       // backwards
      whole(changed("[1,1,2,16]", "[1,1,3,16]"), 384),     // more elements than bytes
      whole(changed("[256,384]", "[256,99999]"), 384),     // beyond the end
      whole(changed("[1,1,2,16]", "[1,1,-2,16]"), 384),    // a negative extent
      whole(changed("[1,1,2,16]", "[4294967296,4294967296,4294967296,16]"), 384),  // overflow
      whole(changed("F32", "F99"), 384),
  };
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  REQUIRE(run_on(folder, spec, folder.write("good.safetensors", whole(good, 384))).status == 0);
  std::filesystem::remove(folder.path("out.safetensors"));
  for (const std::string& bytes : files) {
    CAPTURE(bytes.substr(0, 200));
    require_refused(run_on(folder, spec, folder.write("in.safetensors", bytes)), folder, "file",
                    "in.safetensors");
  }
  require_refused(run_on(folder, spec, folder.path("none")), folder, "file", "none");
}

TEST_CASE("cli: --inputs random wants five sizes that make sense") {
  const auto [sizes, code, words] = GENERATE(table<std::string, std::string, std::string>({
      {"1,1,1,16", "usage", "needs 5"},
      {"", "usage", "needs 5"},
      {"1,1,1,16,16,16", "usage", "needs 5"},
      {"1,1,1,16,x", "usage", "\"x\" is no whole number"},
      {"1,1,1,16,1.5", "usage", "no whole number"},
      {"1,1,1,0,16", "tensor", "q_len is 0"},
      {"1,1,1,16,-1", "tensor", "kv_len is -1"},
      {"1,3,2,16,16", "tensor", "3 query heads cannot be shared by 2 kv heads"},
      {"99999999999,1,1,16,16", "tensor", "batch is 99999999999"},
  }));
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  require_refused(run_on(folder, spec, "random:" + sizes), folder, code, words);
}

TEST_CASE("cli: tensors that no memory holds are refused with status 3") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  const Ended ended = run_on(folder, spec, "random:1000,1000,1000,100000,100000");
  REQUIRE(ended.status == 3);
  REQUIRE_THAT(ended.err, ContainsSubstring("error[memory]"));
  // Refused before it is asked for, not because an allocation failed: that may succeed and then end
  // the process.
  REQUIRE_THAT(ended.err, ContainsSubstring("but this machine has"));
  REQUIRE(folder.names() == std::vector<std::string>{"s.json"});
}

TEST_CASE("cli: scalars are NAME=NUMBER, known, and all given") {
  const auto [scalars, words] = GENERATE(table<std::vector<std::string>, std::string>({
      {std::vector<std::string>(), "scalar \"cap\" has no default"},
      {std::vector<std::string>(), "give --scalar cap=X"},
      {{"--scalar", "cap"}, "\"cap\" is no scalar"},
      {{"--scalar", "cap=much"}, "\"cap=much\" is no scalar"},
      {{"--scalar", "=1"}, "\"=1\" is no scalar"},
      {{"--scalar", "cpa=1", "--scalar", "cap=1"}, "did you mean \"cap\"?"},
      {{"--scalar", "cap=1", "--scalar", "cap=2"}, "given twice"},
      {{"--scalar", "cap=1e99"}, "cap"},
  }));
  const Folder folder;
  const std::string spec = folder.write("s.json", kDocuments);
  require_refused(run_on(folder, spec, "random:1,1,1,16,16", scalars), folder, "usage", words);
}

TEST_CASE("cli: --seed is refused where the inputs come from a file") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  const std::string inputs = write_zeros(
      folder, "in.safetensors",
      {{"q", f32, {1, 2, 8, 16}}, {"k", f32, {1, 2, 8, 16}}, {"v", f32, {1, 2, 8, 16}}});
  require_refused(run_on(folder, spec, inputs, {"--seed", "3"}), folder, "usage",
                  "--seed is of random contents, and --inputs is a file");
  CHECK(on_cpu({"check", spec, "--inputs", inputs, "--seed", "3"}).status == 2);
  const std::string drops = folder.write("d.json", R"json({
    "dtype": "f32", "head_dim": 16, "dropout": "0.5f", "scalars": {"seed": {"dtype": "i64"}}})json");
  require_refused(run_on(folder, drops, inputs, {"--seed", "3"}), folder, "usage",
                  "--scalar seed=N is the seed of dropout");
}

TEST_CASE("cli: a scalar is any number that its dtype holds, NaN and infinities of f32 too") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "f32", "head_dim": 16, "mask_mod": "q_idx >= kv_idx - n", "dropout": "p",
    "scalars": {"n": {"dtype": "i32", "default": 0}, "p": {"dtype": "f32", "default": 0.5},
                "seed": {"dtype": "i64", "default": 1}}})json");
  const auto with = [&](const std::string& scalar) {
    return run_on(folder, spec, "random:1,1,1,16,16", {"--scalar", scalar});
  };
  for (const char* const held : {"p=nan", "p=-inf", "p=inf", "seed=9007199254740992",
                                 "seed=-9007199254740992", "seed=1e3"}) {
    CAPTURE(held);
    CHECK(with(held).status == 0);
  }
  const auto [scalar, message] = GENERATE(table<std::string, std::string>({
      {"n=nan", "scalar \"n\" is nan, but must be a whole number from -2147483648 to 2147483647"},
      {"n=inf", "scalar \"n\" is inf, but must be a whole number from -2147483648 to 2147483647"},
      {"seed=nan", "scalar \"seed\" is nan, but must be a whole number from -9007199254740992 to "},
      {"seed=9007199254740993",
       "scalar \"seed\" is 9007199254740993, but must be a whole number from -"},
      {"seed=-9007199254740993",
       "scalar \"seed\" is -9007199254740993, but must be a whole number from -"},
      {"seed=9007199254740994",
       "scalar \"seed\" is 9007199254740994, but must be a whole number from -"},
      {"seed=99999999999999999999", "to 9007199254740992 (i64)"},
      {"seed=9007199254740993.5", "scalar \"seed\" is 9007199254740993.5, but must"},
      {"seed=4503599627370496.25", "scalar \"seed\" is 4503599627370496.25, but must"},
      {"seed=9007199254740992.25", "scalar \"seed\" is 9007199254740992.25, but must"},
      {"seed=0.5", "scalar \"seed\" is 0.5, but must be a whole number from -"},
  }));
  CAPTURE(scalar);
  const Ended ended = with(scalar);
  CHECK(ended.status == 2);
  CHECK_THAT(ended.err, ContainsSubstring("error[usage]") && ContainsSubstring(message));
  if (scalar.starts_with("seed")) CHECK_THAT(ended.err, ContainsSubstring("comes in a buffer"));
}

TEST_CASE("cli: check notes a dropout that a call's scalar puts outside of 0 to 1") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "f32", "head_dim": 16, "dropout": "p",
    "scalars": {"p": {"dtype": "f32"}, "seed": {"dtype": "i64", "default": 1}}})json");
  const auto with = [&](const std::string& scalar) {
    return on_cpu({"check", spec, "--inputs", "random:1,2,2,16,16", "--scalar", scalar, "--json"});
  };
  CHECK(with("p=0.25").json()["notes"].empty());
  for (const auto& [scalar, message] : std::vector<std::pair<std::string, std::string>>{
           {"p=1", "dropout is 1 by this call's values"},
           {"p=nan", "dropout is NaN by this call's values"}}) {
    const Ended ended = with(scalar);
    INFO(ended.err);
    CHECK_THAT(ended.err, ContainsSubstring("note: dropout:1:1: " + message));
    REQUIRE(ended.json()["notes"].size() == 1);
    CHECK_THAT(ended.json()["notes"][0]["message"].get<std::string>(), ContainsSubstring(message));
  }
}

TEST_CASE("cli: offsets and scales that no call can have are refused") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  const std::string inputs = "random:1,1,1,16,16";
  require_refused(run_on(folder, spec, inputs, {"--q-offset", "2147483640"}), folder, "tensor",
                  "q_offset");
  require_refused(run_on(folder, spec, inputs, {"--scale", "nan"}), folder, "usage", "scale");
  require_refused(run_on(folder, spec, inputs, {"--seed", "-1"}), folder, "usage", "--seed");
}

TEST_CASE("cli: devices that are unknown or not there are told apart") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPlain);
  require_refused(run_on(folder, spec, "random:1,1,1,16,16", {"--device", "cdua"}), folder, "usage",
                  "unknown device \"cdua\"");
  const Ended absent = run_on(folder, spec, "random:1,1,1,16,16", {"--device", "cuda:99"});
  REQUIRE(absent.status == 3);
  REQUIRE_THAT(absent.err, ContainsSubstring("error[device]"));
}
