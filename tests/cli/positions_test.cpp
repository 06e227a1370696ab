// run and check of packed specs with --mask: lists over positions in each form of file.
#include <string>
#include <vector>

#include "runtime/api/safetensors.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/position_lists.hpp"

using namespace tilewright;
using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kPacked = R"json({
  "name": "packed", "dtype": "f32", "head_dim": 16, "layout": "packed", "block": [64, 64],
  "mask_mod": "q_idx >= kv_idx", "outputs": ["out", "lse"]})json";
constexpr const char* kDense = R"json({
  "name": "dense", "dtype": "f32", "head_dim": 16, "block": [64, 64],
  "mask_mod": "q_idx >= kv_idx"})json";
constexpr const char* kInputs = "random:4,2/70:300,1:130,90:40";

void require_ended(const Ended& ended, int status, const std::string& words = {}) {
  CAPTURE(ended.out, ended.err);
  REQUIRE(ended.status == status);
  CHECK_THAT(ended.err, ContainsSubstring(words));
}

std::string write_csr(const Folder& folder, int blocks) {
  const packed_calls::SparseLists lists({.block = 64, .local = 1, .vertical = 3, .step = 1}, 4,
                                        blocks);
  write_safetensors(folder.path("csr"), {{"crow", lists.crow.view()}, {"col", lists.col.view()}});
  return folder.path("csr");
}

Ended make_dense_lists(const Folder& folder, const std::string& q_offset) {
  return on_cpu({"mask", folder.write("d.json", kDense), "--q-len", "300", "--kv-len", "300",
                 "--q-offset", q_offset, "--outputs", folder.path("own"), "--flex",
                 folder.path("flex")});
}

}  // namespace

TEST_CASE("cli positions: --mask of a packed run and check is a CSR, which says its length") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked), csr = write_csr(folder, 5);
  const Ended ran = on_cpu(
      {"run", spec, "--inputs", kInputs, "--mask", csr, "--outputs", folder.path("out"), "--json"});
  require_ended(ran, 0);
  CHECK(ran.json()["mask"]["path"] == "lists");
  CHECK(ran.json()["mask"]["full"] == 0);
  const Ended checked = on_cpu({"check", spec, "--inputs", kInputs, "--mask", csr, "--json"});
  require_ended(checked, 0);
  CHECK(checked.json()["mask"]["wrong_tiles"] == 0);
  // The result is the lists': without them it is another.
  const std::string out = folder.path("out"), again = folder.path("again");
  require_ended(on_cpu({"check", spec, "--inputs", kInputs, "--expect", out}), 1);
  require_ended(on_cpu({"check", spec, "--inputs", kInputs, "--mask", csr, "--expect", out,
                        "--outputs", again}),
                0);
}

TEST_CASE("cli positions: a dense spec's own lists and FlexAttention's serve") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  require_ended(make_dense_lists(folder, "0"), 0);
  for (const std::string& file : {folder.path("own"), folder.path("flex")}) {
    const Ended checked = on_cpu({"check", spec, "--inputs", kInputs, "--mask", file, "--json"});
    require_ended(checked, 0);
    CHECK(checked.json()["mask"]["tiles"] > 0);
  }
}

TEST_CASE("cli positions: files that do not fit are status 2 with what to do") {
  const Folder folder;
  const std::string spec = folder.write("s.json", kPacked);
  const auto run = [&](const std::string& mask) {
    return on_cpu(
        {"run", spec, "--inputs", kInputs, "--mask", mask, "--outputs", folder.path("out")});
  };
  require_ended(run(write_csr(folder, 4)), 2,
                "sequence 0 has rows up to position 299, but the positions' lists have 256 rows");
  require_ended(run(folder.path("none")), 2, "none");
  write_safetensors(folder.path("other"), {{"x", Tensor::zeros(f32, {1}).view()}});
  require_ended(run(folder.path("other")), 2, "holds no block mask");
  require_ended(make_dense_lists(folder, "64"), 0);
  require_ended(run(folder.path("own")), 2, "were built with q_offset 64");
  require_ended(on_cpu({"check", folder.path("d.json"), "--inputs", "random:1,1,1,64,64", "--mask",
                        write_csr(folder, 5)}),
                2, "check takes --mask for packed specs alone");
}
