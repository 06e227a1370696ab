// run, check and mask of specs whose k and v are in pages.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/api/safetensors.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kCausal = R"json({
  "dtype": "f32", "head_dim": 16, "layout": "packed", "kv_layout": "paged",
  "mask_mod": "q_idx >= kv_idx", "outputs": ["out", "lse"]})json";

Tensor ints(DType dtype, std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::i64) static_cast<std::int64_t*>(tensor.data())[i] = values[i];
    if (dtype == DType::i32) {
      static_cast<std::int32_t*>(tensor.data())[i] = static_cast<std::int32_t>(values[i]);
    }
  }
  return tensor;
}

// One sequence of 3 rows and 6 columns in pages of 4 rows; `entry` is the second of its pages.
struct File {
  Tensor q = Tensor::zeros(DType::f32, {3, 2, 16}), k = Tensor::zeros(DType::f32, {3, 4, 1, 16});
  Tensor q_begin = ints(DType::i64, {2}, {0, 3}), kv_len = ints(DType::i64, {1}, {6});
  Tensor page_table;
  std::map<std::string, TensorView> tensors;

  explicit File(std::int64_t entry) : page_table(ints(DType::i64, {1, 3}, {2, entry, 99})) {
    tensors = {{"q", q},           {"k", k},
               {"v", k},           {"q_begin", q_begin},
               {"kv_len", kv_len}, {"page_table", page_table}};
  }
};

}  // namespace

TEST_CASE("cli paged: new rows beside pages, random and from a file") {
  const Folder folder;
  const std::string spec = folder.write("s.json", R"json({
    "dtype": "f32", "head_dim": 16, "layout": "packed", "kv_layout": "paged", "kv_new": true,
    "mask_mod": "q_idx >= kv_idx", "outputs": ["out", "lse"]})json");
  const Ended random =
      on_cpu({"check", spec, "--inputs", "random:4,2/1:52,5:18,0:9,7:3,20:20/page=16"});
  CAPTURE(random.out, random.err);
  CHECK(random.status == 0);

  // Its context of 3 columns needs one page: the second entry names none, and is not looked at.
  File file(1 << 30);
  const Tensor rows = Tensor::zeros(DType::f32, {3, 1, 16});
  const std::string lacking = folder.path("lacking.safetensors");
  write_safetensors(lacking, file.tensors);
  CHECK_THAT(on_cpu({"check", spec, "--inputs", lacking}).err,
             ContainsSubstring("holds no tensor \"k_new\""));
  file.tensors["k_new"] = file.tensors["v_new"] = rows;
  const std::string inputs = folder.path("new.safetensors");
  write_safetensors(inputs, file.tensors);
  const Ended given =
      on_cpu({"run", spec, "--inputs", inputs, "--outputs", folder.path("out.safetensors")});
  CAPTURE(given.out, given.err);
  CHECK(given.status == 0);
}

TEST_CASE("cli paged: check of random pages in all forms") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  for (const char* const inputs :
       {"random:4,2/1:70,5:18,33:63/page=16", "random:4,2/1:70,5:18/page=3/flat/ctx=7",
        "random:4,2/1:70,5:18/page=80/static", "random:4,2/1:70,5:18x2/page=16/pages=40"}) {
    const Ended ended = on_cpu({"check", spec, "--inputs", inputs, "--json"});
    CAPTURE(inputs, ended.out, ended.err);
    CHECK(ended.status == 0);
  }
  const Ended shared = on_cpu(
      {"check", spec, "--inputs", "random:4,2/1:70,5:50/page=16", "--shared", "32", "--json"});
  CHECK(shared.status == 0);
}

TEST_CASE("cli paged: pages of a file, and a table that names no page") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const auto run = [&](std::int64_t entry) {
    const File file(entry);
    write_safetensors(folder.path("in.safetensors"), file.tensors);
    return on_cpu({"run", spec, "--inputs", folder.path("in.safetensors"), "--outputs",
                   folder.path("out.safetensors")});
  };
  CHECK(run(0).status == 0);
  CHECK(run(-1).status == 0);
  const Ended refused = run(3);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("page_table(0, 1) is 3, but the pool has 3 pages"));
  CHECK_THAT(refused.err, ContainsSubstring("write -1 for a freed page"));
}

TEST_CASE("cli paged: mistakes in --inputs say what to write") {
  const Folder folder;
  const std::string paged = folder.write("s.json", kCausal);
  const std::string packed = folder.write("p.json", R"json({
    "dtype": "f32", "head_dim": 16, "layout": "packed"})json");
  const auto error_of = [&](const std::string& spec, const char* inputs) {
    const Ended ended = on_cpu({"check", spec, "--inputs", inputs});
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK_THAT(error_of(paged, "random:4,2/1:70"), ContainsSubstring("has no /page=N"));
  CHECK_THAT(error_of(packed, "random:4,2/1:70/page=16"),
             ContainsSubstring("but the spec's kv_layout is \"packed\""));
  CHECK_THAT(error_of(paged, "random:4,2/1:70/flat"), ContainsSubstring("no /page=N"));
  CHECK_THAT(error_of(paged, "random:4,2/1:70/page=16/pages=5"),
             ContainsSubstring("write /pages=6 or more"));
  CHECK_THAT(error_of(paged, "random:4,2/1:70/page=16/static"),
             ContainsSubstring("has 70 columns, and its one page has 16 rows"));
  CHECK_THAT(error_of(paged, "random:4,2/1:70/page=16/sttic"), ContainsSubstring("unknown part"));
}

TEST_CASE("cli paged: --shared is refused where no random table could share pages") {
  const Folder folder;
  const std::string paged = folder.write("s.json", kCausal);
  const std::string packed = folder.write("p.json", R"json({
    "dtype": "f32", "head_dim": 16, "layout": "packed"})json");
  const File file(0);
  write_safetensors(folder.path("in.safetensors"), file.tensors);
  const auto error_of = [&](const std::string& spec, const std::string& inputs) {
    const Ended ended = on_cpu({"check", spec, "--inputs", inputs, "--shared", "32"});
    CHECK(ended.status == 2);
    return ended.err;
  };
  CHECK_THAT(error_of(paged, "random:4,2/1:70/page=80/static"),
             ContainsSubstring("--shared needs a page_table, and /static gives none"));
  CHECK_THAT(error_of(paged, folder.path("in.safetensors")),
             ContainsSubstring("and --inputs is a file"));
  CHECK_THAT(error_of(packed, "random:4,2/1:70"),
             ContainsSubstring("k and v of the spec are not in pages"));
}

TEST_CASE("cli paged: mask shows one sequence") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Ended ended = on_cpu({"mask", spec, "--q-len", "5", "--kv-len", "300", "--json"});
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
}

TEST_CASE("cli paged: bench measures a call with pages") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kCausal);
  const Ended ended = on_cpu({"bench", "--spec", spec, "--inputs", "random:2,1/40:70,1:33/page=16",
                              "--budget-ms", "1", "--json"});
  CAPTURE(ended.out, ended.err);
  CHECK(ended.status == 0);
}
