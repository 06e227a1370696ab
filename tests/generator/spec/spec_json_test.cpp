#include "generator/spec/spec_json.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Error refusal(const std::string& text) {
  try {
    spec_from_json(text, "my.json");
  } catch (const Error& error) {
    return error;
  }
  FAIL("accepted: " << text);
  return Error(ErrorCode::internal, "");
}

// The least spec with more fields.
std::string with(const std::string& fields) {
  return "{\"dtype\": \"bf16\", \"head_dim\": 64,\n" + fields + "}";
}

struct Refused {
  std::string fields;
  int column;  // in the second line
  std::string message;
  std::string hint;
};

void check_refusals(const std::vector<Refused>& cases) {
  for (const Refused& refused : cases) {
    CAPTURE(refused.fields);
    const Error error = refusal(with(refused.fields));
    CHECK(error.code() == ErrorCode::spec);
    CHECK_THAT(error.message(), ContainsSubstring(refused.message));
    CHECK_THAT(error.hint(), ContainsSubstring(refused.hint));
    REQUIRE(error.place());
    CHECK(error.place()->file == "my.json");
    CHECK(error.place()->line == 2);
    CHECK(error.place()->column == refused.column);
    CHECK_FALSE(error.place()->excerpt.empty());
  }
}

std::vector<std::filesystem::path> examples() {
  std::vector<std::filesystem::path> paths;
  for (const char* const folder : {"/examples", "/examples/packed"}) {
    const std::filesystem::path path = std::string(TILEWRIGHT_SOURCE_DIR) + folder;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
    }
  }
  return paths;
}

}  // namespace

TEST_CASE("spec: every key is read") {
  const Spec spec = spec_from_json(R"({
    "name": "everything", "dtype": "f16", "head_dim": 64, "v_head_dim": 128, "layout": "bshd",
    "kv_layout": "bhsd", "kv_dtype": "bf16", "out_dtype": "f32", "scale": -2,
    "score_mod": "score * cap", "mask_mod": "return true;",
    "buffers": {"x": {"dtype": "bool", "shape": [3, null, "batch", "kv_len"], "bounds": "trusted",
                      "range": [0, 1], "sorted": true}},
    "scalars": {"cap": {"dtype": "i32", "default": -7}, "free": {"dtype": "f32"}},
    "block": [16, 256], "outputs": ["lse", "out", "max_scores", "weights"], "precise_math": true,
    "tactic": {"name": "cpu", "q_tile": 32}})");
  CHECK(spec.name == "everything");
  CHECK(spec.dtype == f16);
  CHECK(spec.head_dim == 64);
  CHECK(spec.value_head_dim() == 128);
  CHECK(spec.layout == Layout::bshd);
  CHECK(spec.key_value_layout() == Layout::bhsd);
  CHECK(spec.key_value_dtype() == bf16);
  CHECK(spec.output_dtype() == f32);
  CHECK(spec.softmax_scale() == -2);
  CHECK(spec.score_mod == "score * cap");
  CHECK(spec.mask_mod == "return true;");
  const BufferSpec& x = spec.buffers.at("x");
  CHECK(x.dtype == boolean);
  CHECK(x.shape == std::vector<BufferDim>{3, FreeDim{}, NamedDim::batch, NamedDim::kv_len});
  CHECK(x.bounds == Bounds::trusted);
  CHECK(x.range == std::array<double, 2>{0, 1});
  CHECK(x.sorted);
  CHECK(spec.scalars.at("cap") == ScalarSpec{.dtype = i32, .default_value = -7});
  CHECK(spec.scalars.at("free") == ScalarSpec{.dtype = f32, .default_value = {}});
  CHECK(spec.block == std::array<std::int64_t, 2>{16, 256});
  CHECK(spec.outputs == Outputs{.out = true, .lse = true, .max_scores = true, .weights = true});
  CHECK(spec.precise_math == true);
  CHECK(spec.tactic == TacticSpec{.name = "cpu", .parameters = {{"q_tile", 32}}});
  CHECK(spec_from_json(to_json(spec)) == spec);
}

TEST_CASE("spec: sorted contents may be promised") {
  const Spec spec = spec_from_json(R"({"dtype": "f32", "head_dim": 16, "buffers": {
    "u": {"dtype": "i32", "shape": [3], "sorted": "promised"},
    "x": {"dtype": "i32", "shape": [3], "sorted": true},
    "y": {"dtype": "i32", "shape": [3], "sorted": false}}})");
  CHECK(spec.buffers.at("u").sorted == Sorted::promised);
  CHECK(spec.buffers.at("x").sorted == Sorted::random);
  CHECK(!spec.buffers.at("y").sorted);
  CHECK(spec_from_json(to_json(spec)) == spec);
}

TEST_CASE("spec: defaults are those of the struct") {
  Spec expected;
  expected.dtype = f32;
  expected.head_dim = 16;
  const Spec spec = spec_from_json("\xEF\xBB\xBF{\"head_dim\": 16, \"dtype\": \"f32\"}");
  CHECK(spec == expected);
  CHECK(spec.value_head_dim() == 16);
  CHECK(spec.softmax_scale() == 0.25);
  CHECK(to_json(spec) == "{\n  \"dtype\": \"f32\",\n  \"head_dim\": 16\n}\n");
}

TEST_CASE("spec: to_json writes what spec_from_json reads back") {
  Spec spec = {.name = "caf\xC3\xA9 \"x\"\\", .dtype = f16, .head_dim = 256};
  spec.scale = GENERATE(0.1, 1.0, -3e-30, 1e30, 12345678.0, 1.0 / 3);
  spec.mask_mod = "// tab\there\r\nreturn \"\\n\"[0] > 1;\n";
  spec.scalars["a"] = {.dtype = i32, .default_value = -2147483648.0};
  spec.scalars["c"] = {.dtype = f32, .default_value = 3};
  spec.buffers["d"] = {.dtype = i64, .shape = {2147483647}, .range = {{-9007199254740992.0, 1e15}}};
  spec.buffers["number"] = {.dtype = f32, .shape = {}};
  spec.buffers["deep"] = {.dtype = f32, .shape = {NamedDim::batch, 2, FreeDim{}, 4, 5}};
  spec.tactic = TacticSpec{.name = "portable", .parameters = {}};
  CHECK(spec_from_json(to_json(spec)) == spec);
}

TEST_CASE("spec: the report names key, value, what is allowed and the place") {
  const Error error = refusal("{\n  \"dtype\": \"bf16\",\n  \"head_dims\": 64\n}");
  REQUIRE_THAT(error.what(),
               ContainsSubstring("error[spec]: unknown key \"head_dims\"; allowed are "
                                 "\"name\", \"dtype\", \"head_dim\""));
  REQUIRE_THAT(error.what(), ContainsSubstring("  --> my.json:3:3\n"
                                               "   |   \"head_dims\": 64\n"
                                               "   |   ^\n"
                                               "  hint: did you mean \"head_dim\"?"));
}

TEST_CASE("spec: unknown keys") {
  check_refusals({
      {R"("mask_mode": "true")", 1, "unknown key \"mask_mode\"", "\"mask_mod\""},
      {R"("dropout": 0.1)", 12, "dropout is 0.1 (a number), but must be a string",
       R"(a snippet is C++ in quotes: "dropout": "0.1")"},
      {R"("dropout_p": "0.1f")", 1, "unknown key", "\"dropout\": \"0.1f\""},
      {R"("sink": -0.5)", 9, "sink is -0.5 (a number), but must be a string", R"("sink": "-0.5")"},
      {R"("sink": [])", 9, "sink is [] (a list), but must be a string", ""},
      {R"("q_scale": 1)", 12, "q_scale is 1 (a number), but must be a string", R"("q_scale": "1")"},
      {R"("k_scale": "")", 12, "k_scale is empty", "leave k_scale out"},
      {R"("out_scale": "1.0f")", 14, "out is bf16, which is stored without one", "f8 out_dtype"},
      {R"("k_scal": "1.0f")", 1, "unknown key \"k_scal\"", "\"k_scale\""},
      {R"("attention_sinks": "1.0f")", 1, "unknown key", "\"sink\": \"sinks[h]\""},
      {R"("buffers": {"x": {"dtyp": "f32", "shape": [1]}})", 19,
       "unknown key \"dtyp\" in buffers.x; allowed are \"dtype\", \"shape\"", "\"dtype\""},
      {R"("scalars": {"x": {"dtype": "f32", "value": 1}})", 35,
       "unknown key \"value\" in scalars.x", ""},
      {R"("layout": "paged")", 11, "layout is \"paged\", which k and v alone can be",
       "\"kv_layout\": \"paged\""},
      {R"("kv_layout": "paged")", 14, "kv_layout is \"paged\", but layout is \"bhsd\"",
       "\"layout\": \"packed\""},
      {R"("kv_layout": "paged_x")", 14, "kv_layout is \"paged_x\", but layout is \"bhsd\"",
       "\"layout\": \"packed\""},
      {R"("layout": "paged_x")", 11, "layout is \"paged_x\", which k and v alone can be",
       "\"kv_layout\": \"paged_x\""},
      {R"("layout": "packed", "kv_layout": "paged_x", "kv_new": true)", 55,
       "kv_new is true, but kv_layout is \"paged_x\"", "\"paged\""},
      {R"("kv_dtype": "f8e4m3")", 13, "kv_dtype is \"f8e4m3\", and k_scale is missing", "\"1.0f\""},
      {R"("kv_dtype": "float8_e5m2")", 13, "kv_dtype is \"float8_e5m2\"", "write \"f8e5m2\""},
      {R"("out_dtype": "fp8")", 14, "out_dtype is \"fp8\"", "write \"f8e4m3\""},
      {R"("buffers": {"x": {"dtype": "float8_e5m2", "shape": [1]}})", 28, "but must be \"f32\"",
       ""},
  });
}

TEST_CASE("spec: what packed and dense layouts do not share") {
  check_refusals({
      {R"("layout": "packed", "kv_layout": "bhsd")", 34,
       "kv_layout is \"bhsd\", but layout is \"packed\"", "packed or paged"},
      {R"("kv_layout": "packed")", 14, "kv_layout is \"packed\", but layout is \"bhsd\"",
       "write \"layout\": \"packed\""},
      {R"("layout": "packed", "buffers": {"doc": {"dtype": "i32", "shape": ["batch", "kv_len"]}})",
       76, "buffers.doc.shape[1] is \"kv_len\", which differs from sequence to sequence",
       "write null, or \"total_kv\" and index with kv_token"},
      {R"("buffers": {"doc": {"dtype": "i32", "shape": ["total_q"]}})", 47,
       "buffers.doc.shape[0] is \"total_q\", which packed layouts alone have", "\"q_len\""},
      {R"("layout": "packed", "buffers": {"q_begin": {"dtype": "i32", "shape": ["batch"]}})", 33,
       "the name \"q_begin\" is what a packed call names one of its own tensors", "choose another"},
  });
}

TEST_CASE("spec: keys that occur twice or hold an escape") {
  check_refusals({
      {R"("dtype": "f16")", 1, "the key \"dtype\" occurs twice, first in line 1, column 2",
       "delete"},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [1]}, "x": {}})", 50, "\"x\" occurs twice",
       ""},
      {R"("\u0064type": "f16")", 1, "holds an escape", ""},
  });
}

TEST_CASE("spec: values of a wrong type") {
  check_refusals({
      {R"("scale": "1")", 10, "scale is \"1\" (a string), but must be a number",
       "delete the quotes"},
      {R"("v_head_dim": 64.0)", 15, "v_head_dim is 64.0, but must be a whole number", ""},
      {R"("v_head_dim": 0)", 15, "v_head_dim is 0, but must be a number from 8 to 256", ""},
      {R"("v_head_dim": [64])", 15, "v_head_dim is [64] (a list), but must be a whole number", ""},
      {R"("block": [128])", 10, "block is [128], but must be a list of two numbers", ""},
      {R"("block": 128)", 10, "block is 128, but must be a list of two numbers", ""},
      {R"("v_head_dim": "64")", 15, "must be a whole number", "delete the quotes"},
      {R"("mask_mod": null)", 13, "mask_mod is null, but must be a string", ""},
      {R"("mask_mod": true)", 13, "mask_mod is true, but must be a string",
       R"("mask_mod": "true")"},
      {R"("precise_math": 1)", 17, "must be true or false", ""},
      {R"("f32_products": true)", 17, "but must be \"ieee\" or \"tf32\"", ""},
      {R"("f32_products": "tf23")", 17, "f32_products is \"tf23\"", "tf32"},
      {R"("name": 7)", 9, "must be a string", ""},
      {R"("buffers": [])", 12, "must be an object", ""},
      {R"("buffers": {"x": "f32"})", 18, "must be an object like", ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": 4}})", 44, "list of 0 to 5 dimensions", ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [1, 1, 1, 1, 1, 1, 1]}})", 44,
       "buffers.x.shape has 6 dimensions, but must have 0 to 5", "fold"},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [[]]}})", 45,
       "buffers.x.shape[0] is [] (a list), but must be a number, null", ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [2.5]}})", 45, "whole number", ""},
      {R"("buffers": {"x": {"shape": [1]}})", 18, "buffers.x lacks the key \"dtype\"", ""},
      {R"("buffers": {"x": {"dtype": "f32"}})", 18, "buffers.x lacks the key \"shape\"", ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [1], "sorted": 1}})", 59, "true or false", ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [1], "sorted": "promise"}})", 59,
       "is \"promise\" (a string), but must be true or false, or \"promised\"", "promised"},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [], "sorted": "promised"}})", 58,
       "buffers.x has one number, which has no order to promise", "leave"},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [1], "range": [1]}})", 58, "two numbers", ""},
      {R"("scalars": {"cap": 50})", 20, "must be an object like", ""},
      {R"("scalars": {"cap": {}})", 20, "scalars.cap lacks the key \"dtype\"", ""},
      {R"("block": 128)", 10, "list of two numbers", ""},
      {R"("block": [128])", 10, "list of two numbers", ""},
      {R"("block": [128, "64"])", 16, "block[1] is \"64\" (a string)", "delete the quotes"},
      {R"("outputs": "out")", 12, "must be [\"out\"]", ""},
      {R"("tactic": 1)", 11, "must be a name", ""},
      {R"("tactic": {"q_tile": 1})", 11, "must be a name", ""},
      {R"("tactic": {"name": "cpu", "q_tile": "1"})", 37, "tactic.q_tile is \"1\"", ""},
  });
  CHECK_THAT(refusal("[]").message(), ContainsSubstring("a spec is an object, but this is a list"));
  CHECK_THAT(refusal("7").message(), ContainsSubstring("but this is a number"));
}

TEST_CASE("spec: values out of range, and names that nothing has") {
  check_refusals({
      {R"("v_head_dim": 7)", 15, "v_head_dim is 7, but must be a number from 8 to 256",
       "pad v with zeros to 8"},
      {R"("v_head_dim": 0)", 15, "must be a number from 8", ""},
      {R"("v_head_dim": -64)", 15, "v_head_dim is -64", ""},
      {R"("v_head_dim": 264)", 15, "v_head_dim is 264", "no kernel has longer rows"},
      {R"("v_head_dim": 18446744073709551615)", 15, "64 bits with a sign", ""},
      {R"("v_head_dim": 99999999999999999999999)", 15, "whole number", ""},
      {R"("block": [128, 24])", 16, "block[1] is 24, but must be a multiple of 16", "use 32"},
      {R"("block": [0, 16])", 11, "block[0] is 0", ""},
      {R"("scale": 1e300)", 10, "scale is 1e+300, but must be a finite number", ""},
      {R"("scale": 1e999)", 10, "no double can hold the number 1e999", ""},
      {R"("kv_dtype": "float16")", 13,
       "must be \"f32\", \"f16\", \"bf16\", \"f8e4m3\", \"f8e5m2\" or \"i8\"", "write \"f16\""},
      {R"("kv_dtype": "bf61")", 13, "kv_dtype is \"bf61\"", "did you mean \"bf16\"?"},
      {R"("kv_dtype": "i32")", 13, "kv_dtype is \"i32\"", ""},
      {R"("layout": "bsdh")", 11,
       "layout is \"bsdh\", but must be \"bhsd\", \"bshd\" or \"packed\"", "did you"},
      {R"("outputs": ["out", "lsee"])", 20, "outputs[1] is \"lsee\"", "\"lse\""},
      {R"("outputs": ["out", "out"])", 20, "names \"out\" twice", ""},
      {R"("outputs": ["lse"])", 12, "outputs lacks \"out\"", "add"},
      {R"("buffers": {"x": {"dtype": "f23", "shape": [1]}})", 28, "buffers.x.dtype is \"f23\"",
       "\"f32\""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [2, 0]}})", 48, "buffers.x.shape[1] is 0", ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [3000000000]}})", 45, "from 1 to 2147483647",
       ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": ["num_heads"]}})", 45,
       "is \"num_heads\", but must be \"batch\", \"num_q_heads\"", "\"num_q_heads\""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [1], "bounds": "none"}})", 59, "\"trusted\"",
       ""},
      {R"("buffers": {"x": {"dtype": "u8", "shape": [1], "range": [0, 256]}})", 61,
       "buffers.x.range[1] is 256, but must be a whole number from 0 to 255 (u8)", ""},
      {R"("buffers": {"x": {"dtype": "f32", "shape": [1], "range": [2, 1]}})", 58,
       "the least value comes first", "[1, 2]"},
      {R"("scalars": {"n": {"dtype": "i32", "default": 1.5}})", 46,
       "scalars.n.default is 1.5, but must be a whole number (i32)", "f32"},
      {R"("scalars": {"n": {"dtype": "i32", "default": 3e9}})", 46, "2147483647", ""},
      {R"("scalars": {"n": {"dtype": "f16", "default": 1}})", 28, "must be \"f32\" or \"i32\"", ""},
      {R"("name": "a\nb")", 9, "one line", ""},
      {R"("mask_mod": "")", 13, "mask_mod is empty", "leave mask_mod out"},
      {R"("tactic": "")", 11, "tactic.name is empty", ""},
      {R"("tactic": {"name": "cpu", "q_tile": -1})", 37, "tactic.q_tile is -1", ""},
  });
}

TEST_CASE("spec: names of buffers and scalars are C identifiers that mean nothing else") {
  const std::string name =
      GENERATE("int", "and", "q_idx", "score", "b", "tanh", "tanhf", "tw_x", "tilewright_x", "a__b",
               "_X", "1a", "", "a b", "INFINITY", "co_await", "import", "\xC3\xA9");
  CAPTURE(name);
  const Error error = refusal(with("\"scalars\": {\"" + name + "\": {\"dtype\": \"f32\"}}"));
  CHECK(error.code() == ErrorCode::spec);
  CHECK_THAT(error.message(), ContainsSubstring("scalars: the name \"" + name + "\""));
  REQUIRE(error.place());
  CHECK(error.place()->column == 13);
  const Error buffer =
      refusal(with("\"buffers\": {\"" + name + "\": {\"dtype\": \"f32\", \"shape\": [1]}}"));
  CHECK_THAT(buffer.message(), ContainsSubstring("buffers: the name"));
}

TEST_CASE("spec: one name cannot be a buffer and a scalar") {
  check_refusals(
      {{R"("buffers": {"x": {"dtype": "f32", "shape": [1]}}, "scalars": {"x": {"dtype": "f32"}})",
        63, "\"x\" is both a buffer and a scalar", "rename"}});
}

TEST_CASE("spec: required keys") {
  CHECK_THAT(refusal("{\"head_dim\": 64}").message(), ContainsSubstring("\"dtype\" is missing"));
  CHECK_THAT(refusal("{\"dtype\": \"f32\"}").message(),
             ContainsSubstring("\"head_dim\" is missing"));
}

TEST_CASE("spec: what is not JSON is placed and explained") {
  struct Case {
    std::string text;
    int line;
    std::string hint;
  };
  const std::vector<Case> cases = {{"", 1, "the least spec"},
                                   {"{\n  \"dtype\": \"f32\",\n}", 3, "delete the comma"},
                                   {"{\n  // no\n}", 2, "no comments"},
                                   {"{\n 'dtype': 1}", 2, "double quotes"},
                                   {"{\"scale\":\n NaN}", 2, "neither NaN"},
                                   {"{\"scale\":\n -Infinity}", 2, "neither NaN"},
                                   {"{\"mask_mod\": \"a\nb\"}", 1, "ends in its line"},
                                   {"{\"dtype\": \"f32\"", 1, ""},
                                   {"{\"dtype\" \"f32\"}", 1, ""},
                                   {"{} {}", 1, ""},
                                   {"{\"a\": 01}", 1, ""},
                                   {"{\"a\": \"\\x\"}", 1, ""}};
  for (const Case& bad : cases) {
    CAPTURE(bad.text);
    const Error error = refusal(bad.text);
    CHECK(error.code() == ErrorCode::spec);
    CHECK_THAT(error.message(), ContainsSubstring("this is not JSON"));
    CHECK_THAT(error.hint(), ContainsSubstring(bad.hint));
    REQUIRE(error.place());
    CHECK(error.place()->line == bad.line);
  }
}

TEST_CASE("spec: hostile texts are refused at once") {
  CHECK_THAT(refusal(std::string(1000000, '[')).message(),
             ContainsSubstring("nested more than 32"));
  std::string nested = with("\"name\": ");
  nested.pop_back();
  for (int i = 0; i < 200000; ++i) nested += "{\"a\":";
  CHECK_THAT(refusal(nested).message(), ContainsSubstring("nested more than 32"));
  CHECK_THAT(refusal(std::string(2 << 20, ' ')).message(), ContainsSubstring("longer than"));
  CHECK_THAT(refusal(with("\"name\": \"\xFF\"")).message(), ContainsSubstring("UTF-8"));
  CHECK_THAT(refusal(std::string("{\0}", 3)).message(), ContainsSubstring("NUL"));
  std::string many = "{";
  for (int i = 0; i < 60000; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  CHECK_THAT(refusal(many + "\"z\":1}").message(), ContainsSubstring("more than 10000 keys"));
  const Error control = refusal(with("\"\x7F\xC2\x9B" + std::string(300, 'x') + "\": 1"));
  CHECK_THAT(control.message(), ContainsSubstring("unknown key \"?"));
  CHECK(control.message().size() < 600);
}

TEST_CASE("spec: a snippet's error lies in the snippet, with a note on where that stands") {
  const Error error = refusal(with("\"mask_mod\": \"q_idx >=\\n  (kv_idx\""));
  CHECK(error.code() == ErrorCode::snippet);
  REQUIRE(error.place());
  CHECK(error.place()->file == "mask_mod");
  CHECK(error.place()->line == 2);
  CHECK(error.place()->column == 3);
  REQUIRE(error.notes().size() == 1);
  CHECK(error.notes()[0] == "mask_mod stands at my.json:2:13");
}

TEST_CASE("spec: the examples parse, and survive a round trip") {
  const auto paths = examples();
  REQUIRE(paths.size() >= 12);
  for (const auto& path : paths) {
    CAPTURE(path.string());
    const Spec spec = spec_from_file(path);
    CHECK(spec.name == path.stem().string());
    CHECK_NOTHROW(validate(spec));
    CHECK(spec_from_json(to_json(spec)) == spec);
    for (const auto& [name, scalar] : spec.scalars) CHECK(scalar.default_value);
  }
}

TEST_CASE(
    "spec: each snippet of the examples uses its buffers and scalars, and they are all used") {
  for (const auto& path : examples()) {
    const Spec spec = spec_from_file(path);
    std::vector<std::string> mentioned;
    for (const SnippetKind kind : snippet_kinds()) {
      if (snippet_text(spec, kind).empty()) continue;
      const auto names = check_snippet(kind, snippet_text(spec, kind)).names;
      mentioned.insert(mentioned.end(), names.begin(), names.end());
    }
    const auto is_used = [&](const std::string& name) {
      return std::find(mentioned.begin(), mentioned.end(), name) != mentioned.end();
    };
    CAPTURE(path.string());
    for (const auto& [name, buffer] : spec.buffers) CHECK(is_used(name));
    for (const auto& [name, scalar] : spec.scalars) CHECK(is_used(name));
  }
}

TEST_CASE("spec: a file that cannot be read is an error of that file") {
  const auto refused = [](const std::filesystem::path& path) {
    try {
      spec_from_file(path);
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::internal, "accepted");
  };
  const Error missing = refused("/nonexistent/spec.json");
  CHECK(missing.code() == ErrorCode::file);
  CHECK_THAT(missing.message(), ContainsSubstring("/nonexistent/spec.json"));
  CHECK_THAT(missing.hint(), ContainsSubstring("no such file"));
  CHECK(refused(std::filesystem::temp_directory_path()).code() == ErrorCode::file);
  CHECK(refused("/dev/zero").code() == ErrorCode::spec);
}

TEST_CASE("spec: f32_products is ieee or tf32, and stays so in JSON") {
  const std::string head = R"({"dtype": "f32", "head_dim": 64)";
  const Spec unset = spec_from_json(head + "}");
  const Spec ieee = spec_from_json(head + R"(, "f32_products": "ieee"})");
  const Spec tf32 = spec_from_json(head + R"(, "f32_products": "tf32"})");
  CHECK(unset == ieee);
  CHECK(to_json(ieee).find("f32_products") == std::string::npos);
  CHECK(tf32.f32_products == F32Products::tf32);
  CHECK(spec_from_json(to_json(tf32)) == tf32);
}

TEST_CASE("spec: f32_products goes with f32, and not with gradients") {
  Spec spec{.dtype = bf16, .head_dim = 64, .f32_products = F32Products::tf32};
  CHECK_THROWS_WITH(validate(spec), ContainsSubstring("f32_products is \"tf32\", but q is bf16"));
  spec.dtype = f32;
  CHECK_NOTHROW(validate(spec));
  spec.kv_dtype = bf16;
  CHECK_NOTHROW(validate(spec));
  spec.kv_dtype.reset();
  spec.outputs.lse = true;
  spec.gradients = {"q"};
  CHECK_THROWS_WITH(validate(spec), ContainsSubstring("the spec has gradients"));
}

TEST_CASE("spec: precise_math is true, false or not set, and stays so in JSON") {
  const std::string head = R"({"dtype": "f32", "head_dim": 64)";
  const Spec unset = spec_from_json(head + "}");
  const Spec fast = spec_from_json(head + R"(, "precise_math": false})");
  CHECK_FALSE(unset.precise_math.has_value());
  CHECK(fast.precise_math == false);
  CHECK(spec_from_json(to_json(fast)) == fast);
  CHECK(to_json(unset).find("precise_math") == std::string::npos);
}
