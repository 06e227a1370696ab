#include <cstring>

#include "base/file_io.hpp"
#include "runtime/api/mask_file.hpp"
#include "runtime/api/safetensors.hpp"
#include "tests/cli/command.hpp"
#include "tests/cli/specs.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const char* const kTiny = R"json({
  "name": "tiny", "dtype": "f32", "head_dim": 16, "block": [16, 16],
  "mask_mod": "q_idx >= kv_idx", "score_mod": "score + 0.5 * (kv_idx - q_idx) * (h + 1)"})json";

const char* const kUnmasked = R"json({
  "dtype": "f32", "head_dim": 16, "block": [16, 16], "score_mod": "score * 2"})json";

std::vector<std::string> mask(const std::string& spec, std::vector<std::string> arguments) {
  std::vector<std::string> words = {"mask", spec, "--q-len", "64", "--kv-len", "64"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

void require_done(const Ended& ended) {
  INFO(ended.err);
  REQUIRE(ended.status == 0);
}

void require_refused(const Ended& ended, const std::string& words) {
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring(words));
}

// A file with lists as i64 tensors of the given shapes.
struct List {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> values;
};

std::string write_lists(const Folder& folder, const std::string& name,
                        const std::vector<List>& lists) {
  std::map<std::string, TensorView> tensors;
  for (const List& list : lists) {
    tensors.emplace(list.name, TensorView::contiguous(static_cast<const void*>(list.values.data()),
                                                      i64, list.shape));
  }
  write_safetensors(folder.path(name), tensors);
  return folder.path(name);
}

}  // namespace

TEST_CASE("cli: mask draws pictures of every format") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kTiny);
  const std::string svg = folder.path("m.svg"), png = folder.path("m.PNG");
  require_done(start(mask(spec, {"--picture", svg})));
  REQUIRE_THAT(read_text_file(svg), ContainsSubstring("kept, in a partial tile"));
  require_done(start(mask(spec, {"--picture", svg, "--tiles"})));
  REQUIRE_THAT(read_text_file(svg), ContainsSubstring("partial: mask_mod decides"));
  require_done(start(mask(spec, {"--picture", svg, "--scores", "--q-heads", "3"})));
  REQUIRE_THAT(read_text_file(svg), ContainsSubstring(">head 2: "));
  REQUIRE_THAT(read_text_file(svg), ContainsSubstring(">-93.5</text>"));
  require_done(start(mask(spec, {"--picture", svg, "--scores", "--q-heads", "3", "--h", "1"})));
  REQUIRE_THAT(read_text_file(svg), !ContainsSubstring(">head 2: "));
  REQUIRE_THAT(read_text_file(svg), ContainsSubstring(">-62</text>"));
  require_done(start(mask(spec, {"--picture", png})));
  REQUIRE(read_text_file(png).starts_with("\x89PNG\r\n\x1a\n"));
}

TEST_CASE("cli: mask draws the scores of a spec without a mask") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kUnmasked);
  require_done(start(mask(spec, {"--picture", folder.path("m.svg"), "--scores", "--score", "3"})));
  REQUIRE_THAT(read_text_file(folder.path("m.svg")), ContainsSubstring(">6</text>"));
  require_refused(start(mask(spec, {"--picture", folder.path("m.svg")})), "no mask_mod");
  require_refused(start(mask(spec, {})), "name lists with --mask FILE");
}

TEST_CASE("cli: mask refuses pictures that make no sense") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const std::string svg = folder.path("m.svg");
  require_refused(start(mask(spec, {"--picture", folder.path("m.jpg")})), "no known format");
  require_refused(start(mask(spec, {"--scores"})), "belong to a drawing");
  require_refused(start(mask(spec, {"--picture", "x.svg", "--score", "2"})), "--scores");
  require_refused(start(mask(spec, {"--picture", svg, "--scores"})), "no score_mod");
  require_refused(start(mask(spec, {"--picture", svg, "--h", "1"})),
                  "--h 1 is not there: --q-heads is 1");
  REQUIRE(folder.names() == std::vector<std::string>{"s.json"});
}

TEST_CASE("cli: a mask that was written is what run takes, and another call refuses it") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kTiny);
  const std::string lists = folder.path("mask.safetensors");
  require_done(start(mask(spec, {"--outputs", lists})));
  REQUIRE(read_block_mask(lists).partial_tiles() == 4);
  const auto run = [&](const std::string& sizes, const std::string& name,
                       std::vector<std::string> more) {
    std::vector<std::string> words = {"run", spec,        "--inputs",
                                      sizes, "--outputs", folder.path(name)};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  };
  require_done(run("random:2,2,1,64,64", "built", {}));
  require_done(run("random:2,2,1,64,64", "read", {"--mask", lists}));
  REQUIRE(read_text_file(folder.path("built")) == read_text_file(folder.path("read")));
  require_refused(run("random:1,1,1,64,65", "x", {"--mask", lists}),
                  "built for kv_len 64, but this call has 65");
  require_refused(run("random:1,1,1,64,64", "x", {"--mask", spec}), "no valid safetensors file");
  require_refused(run("random:1,1,1,64,64", "x", {"--mask", folder.path("built")}),
                  "holds no block mask");
}

TEST_CASE("cli: lists of FlexAttention go out and come in") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kTiny);
  const std::string flex = folder.path("flex.safetensors");
  require_done(start(mask(spec, {"--flex", flex, "--outputs", folder.path("a")})));
  REQUIRE(read_safetensors(flex).tensors.at("kv_indices").describe() == "i32 [1, 1, 4, 4]");
  const Ended read = start(mask(spec, {"--mask", flex, "--outputs", folder.path("b"), "--json"}));
  require_done(read);
  REQUIRE(read.json()["path"] == "lists");
  REQUIRE(read_block_mask(folder.path("a")) == read_block_mask(folder.path("b")));
}

TEST_CASE("cli: a CSR is partial with a mask_mod, full without, and a wrong one is named") {
  const Folder folder;
  const std::string with = folder.write("w.json", kTiny);
  const std::string without = folder.write("u.json", kUnmasked);
  const std::string csr =
      write_lists(folder, "csr", {{"crow", {5}, {0, 1, 2, 3, 5}}, {"col", {5}, {0, 1, 2, 0, 3}}});
  const auto counts = [&](const std::string& spec) {
    return start(mask(spec, {"--mask", csr, "--json"})).json();
  };
  REQUIRE(counts(with)["partial"] == 5);
  REQUIRE(counts(without)["full"] == 5);
  require_done(start({"run", without, "--inputs", "random:1,2,2,64,64", "--mask", csr, "--outputs",
                      folder.path("out")}));
  const std::string wrong =
      write_lists(folder, "bad", {{"crow", {5}, {0, 1, 2, 3, 5}}, {"col", {5}, {0, 1, 2, 3, 0}}});
  require_refused(start(mask(with, {"--mask", wrong})), "col[4] is 0 after 3, position 1 of row 3");
  const std::string half = write_lists(folder, "half", {{"crow", {5}, {0, 1, 2, 3, 5}}});
  require_refused(start(mask(with, {"--mask", half})), "holds no tensor \"col\"");
}

TEST_CASE("cli: mask takes no --seed next to lists, but for what a drawing shows") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kTiny);
  const std::string lists = folder.path("mask.safetensors");
  require_done(start(mask(spec, {"--seed", "3", "--outputs", lists})));
  require_refused(start(mask(spec, {"--mask", lists, "--seed", "3"})),
                  "--seed is of random buffers, and --mask gives the lists");
  require_refused(
      start(mask(spec, {"--mask", lists, "--seed", "3", "--picture", folder.path("m.txt")})),
      "--seed is of random buffers");
  require_done(
      start(mask(spec, {"--mask", lists, "--seed", "3", "--picture", folder.path("m.svg")})));
}

TEST_CASE("cli: mask needs no memory for q, k and v") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  // A q of 8 TiB, and lists that all batches and heads share.
  const Ended ended = start({"mask", spec, "--q-len", "4096", "--kv-len", "4096", "--q-heads",
                             "4096", "--batch", "8192", "--json"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  CHECK(ended.json().at("heads") == 1);
}
