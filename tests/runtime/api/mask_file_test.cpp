#include "runtime/api/mask_file.hpp"

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "runtime/api/safetensors.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

BlockMask example() {
  const MaskFingerprint fingerprint{.source = {.mask_mod = "kv_idx < limit && \"\\\"\" != x",
                                               .block = {128, 64},
                                               .scalars = {{"limit", 2}, {"other", 5}}},
                                    .shape = {.batch = 1,
                                              .num_q_heads = 2,
                                              .num_kv_heads = 1,
                                              .q_len = 300,
                                              .kv_len = 100,
                                              .q_offset = -7,
                                              .kv_offset = 9},
                                    .scalars = {0.1f, -std::numeric_limits<double>::infinity()}};
  return BlockMask(fingerprint,
                   {.row_offsets = {0, 1, 2, 2, 2, 2, 3},
                    .indices = {0, 1, 1},
                    .full_row_offsets = {0, 1, 1, 1, 1, 1, 2},
                    .full_indices = {1, 0}},
                   "exact", 12);
}

struct Scratch {
  TemporaryDirectory folder{"tilewright-mask-file-test"};
  std::filesystem::path path = folder.path() / "mask.safetensors";
};

std::string refusal(const std::filesystem::path& path) {
  try {
    read_block_mask(path);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::file);
    CHECK_THAT(error.what(), ContainsSubstring(path.filename().native()));
    CHECK(!error.hint().empty());
    return error.what();
  }
  return "accepted";
}

// Rewrites the file with a text of its header replaced by one of the same length.
void edit(const std::filesystem::path& path, const std::string& from, const std::string& to) {
  std::string bytes = read_text_file(path);
  const std::size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(from.size() == to.size());
  bytes.replace(at, from.size(), to);
  write_text_file(path, bytes);
}

std::string refusal_after(const std::string& from, const std::string& to) {
  const Scratch scratch;
  write_block_mask(scratch.path, example());
  edit(scratch.path, from, to);
  return refusal(scratch.path);
}

}  // namespace

TEST_CASE("mask file: what is read is what was written") {
  const Scratch scratch;
  write_block_mask(scratch.path, example());
  const BlockMask mask = read_block_mask(scratch.path);
  CHECK(mask == example());
  CHECK(mask.fingerprint() == example().fingerprint());
  CHECK(mask.path() == "exact");
  CHECK(mask.tiles_evaluated() == 12);
  const TensorFile file = read_safetensors(scratch.path);
  CHECK(file.tensors.at("row_offsets").describe() == "i64 [7]");
  CHECK(file.tensors.at("full_indices").describe() == "i32 [2]");
}

TEST_CASE("mask file: a mask without tiles and with a scalar that is NaN survives too") {
  const Scratch scratch;
  MaskFingerprint fingerprint = example().fingerprint();
  fingerprint.shape.num_q_heads = 1;
  fingerprint.scalars[0] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::int64_t> none(4);
  const BlockMask empty(fingerprint, {none, {}, none, {}}, "exact", 6);
  write_block_mask(scratch.path, empty);
  CHECK(read_block_mask(scratch.path) == empty);
}

TEST_CASE("mask file: what contradicts itself is refused with what is wrong") {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"tilewright_block_mask", "tilewright_black_mask",
       "its metadata has no \"tilewright_block_mask\""},
      {R"(\"version\":1)", R"(\"version\":2)", "it is of version 2"},
      {R"(\"q_len\":300)", R"(\"q_len\":500)", "7 row offsets, but 8 rows of tiles"},
      {R"(\"kv_len\":100)", R"(\"kv_len\":050)", "no JSON object"},
      {R"(\"kv_len\":100)", R"(\"kv_len\": 50)",
       "partial list is wrong: row 1 holds kv block 1; there are 1"},
      {R"(\"kv_len\":100)", R"(\"kv_len\":-10)", "kv_len is -10"},
      {R"(\"kv_len\")", R"(\"kv_lan\")", "has no \"kv_len\""},
      {R"([128,64])", R"([128,60])", "\"block\" is [128,60], not two multiples of 16"},
      {R"(\"batch\":1)", R"(\"batch\":0)", "batch is 0"},
      {R"(\"-inf\")", R"(\"-ing\")", "\"value\" is \"-ing\", not a number"},
      {R"(\"path\":\"exact\")", R"(\"path\":123456789)", "\"path\" is 123456789, not a text"},
      {R"({"dtype":"I32")", R"({"dtype":"F32")", "is f32 ["},
  };
  for (const Case& one : cases) {
    CHECK_THAT(refusal_after(one.from, one.to), ContainsSubstring(one.message));
  }
}

TEST_CASE("mask file: damaged lists are refused with their first bad entry") {
  const Scratch scratch;
  write_block_mask(scratch.path, example());
  std::string bytes = read_text_file(scratch.path);
  const std::string untouched = bytes;
  // The file ends in full_indices (2 x i32) and indices (3 x i32), in this order.
  bytes[bytes.size() - 4] = 9;
  write_text_file(scratch.path, bytes);
  CHECK_THAT(refusal(scratch.path), ContainsSubstring("list is wrong: row 5 holds kv block 9"));
  write_text_file(scratch.path, untouched.substr(0, untouched.size() - 4));
  CHECK_THAT(refusal(scratch.path), ContainsSubstring("no valid safetensors file"));
}

TEST_CASE("mask file: sizes whose product exceeds any integer are refused") {
  const Scratch scratch;
  const std::vector<std::int64_t> offsets(1);
  const TensorView row_offsets =
      TensorView::contiguous(static_cast<const void*>(offsets.data()), i64, {1});
  const TensorView none =
      TensorView::contiguous(static_cast<const void*>(offsets.data()), i32, {0});
  write_safetensors(
      scratch.path,
      {{"row_offsets", row_offsets},
       {"full_row_offsets", row_offsets},
       {"indices", none},
       {"full_indices", none}},
      {{"tilewright_block_mask",
        R"({"version":1,"mask_mod":"true","block":[16,16],"batch":2147483647,)"
        R"("num_q_heads":2147483647,"num_kv_heads":1,"q_len":2147482623,"kv_len":1,"q_offset":0,)"
        R"("kv_offset":0,"scalars":[],"path":"exact","tiles_evaluated":0})"}});
  CHECK_THAT(refusal(scratch.path), ContainsSubstring("1 row offsets, but"));
}
