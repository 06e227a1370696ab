// Block masks through the C ABI: made, built again, from lists, sliced, in files.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/c/calls.hpp"

using namespace tilewright::c_abi;
using Catch::Matchers::ContainsSubstring;

namespace {

const char* const kDocuments = R"({
  "dtype": "f32", "head_dim": 32, "mask_mod": "doc[q_idx] == doc[kv_idx]", "block": [16, 16],
  "buffers": {"doc": {"dtype": "i32", "shape": ["kv_len"]}}})";
const char* const kCausal =
    R"({"dtype": "f32", "head_dim": 32, "mask_mod": "q_idx >= kv_idx", "block": [16, 16]})";

tw_mask_info info_of(const MaskHandle& mask) {
  auto info = sized<tw_mask_info>();
  succeed(tw_mask_describe, mask.get(), &info);
  return info;
}

MaskHandle causal_mask(const AttentionHandle& made) {
  const tw_shape sizes = shape(1, 64, 64);
  const auto options = sized<tw_mask_options>();
  return make<MaskHandle>(tw_mask_create, made.get(), &sizes, nullptr, &options);
}

}  // namespace

TEST_CASE("C: a mask says what it holds") {
  const tw_mask_info info = info_of(causal_mask(attention(kCausal)));
  CHECK((info.batch == 1 && info.heads == 1 && info.q_blocks == 4 && info.kv_blocks == 4));
  CHECK((info.block[0] == 16 && info.block[1] == 16));
  CHECK((info.partial_tiles == 4 && info.full_tiles == 6 && info.empty_tiles == 6));
  CHECK(info.density == 10.0 / 16);
}

TEST_CASE("C: a mask is built again after its buffer has changed") {
  const AttentionHandle made = attention(kDocuments);
  std::vector<std::int32_t> doc(64, 0);
  const tw_buffer buffer = {"doc", tensor(doc, {64})};
  const auto bindings =
      make<BindingsHandle>(tw_bind, made.get(), &buffer, size_t{1}, nullptr, size_t{0});
  const tw_shape sizes = shape(1, 64, 64);
  const auto mask = make<MaskHandle>(tw_mask_create, made.get(), &sizes, bindings.get(), nullptr);
  CHECK(info_of(mask).full_tiles == 16);
  for (std::size_t i = 32; i < doc.size(); ++i) doc[i] = 1;
  succeed(tw_mask_rebuild, made.get(), mask.get(), &sizes, bindings.get(), nullptr);
  CHECK(info_of(mask).full_tiles == 8);
}

TEST_CASE("C: masks from CSR and from FlexAttention's lists equal the mask that is computed") {
  const AttentionHandle made = attention(kCausal);
  const tw_shape sizes = shape(1, 64, 64);
  std::vector<std::int64_t> rows = {0, 1, 3, 6, 10}, columns = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3};
  const tw_tensor crow = tensor(rows, {5}), col = tensor(columns, {10});
  const auto by_csr = make<MaskHandle>(tw_mask_from_csr, made.get(), &sizes, nullptr, &crow, &col);
  CHECK(info_of(by_csr).partial_tiles == 10);

  std::vector<std::int32_t> count = {1, 1, 1, 1}, diagonal = {0, 1, 2, 3};
  std::vector<std::int32_t> full_count = {0, 1, 2, 3};
  std::vector<std::int32_t> full = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2};
  auto lists = sized<tw_flex_lists>();
  lists.kv_num_blocks = tensor(count, {1, 1, 4});
  lists.kv_indices = tensor(diagonal, {1, 1, 4, 1});
  lists.full_kv_num_blocks = tensor(full_count, {1, 1, 4});
  lists.full_kv_indices = tensor(full, {1, 1, 4, 3});
  const auto by_flex = make<MaskHandle>(tw_mask_from_flex, made.get(), &sizes, nullptr, &lists);
  CHECK((info_of(by_flex).partial_tiles == 4 && info_of(by_flex).full_tiles == 6));

  columns[1] = 9;
  const ErrorHandle error = fail(TW_BLOCK_MASK, [&](tw_error** to) {
    tw_mask* mask = nullptr;
    const tw_status status = tw_mask_from_csr(made.get(), &sizes, nullptr, &crow, &col, &mask, to);
    CHECK(mask == nullptr);
    return status;
  });
  CHECK_THAT(tw_error_message(error.get()), ContainsSubstring("9"));
}

TEST_CASE("C: a spec without mask_mod takes lists where the options say so") {
  tw_options options = cpu_options();
  options.takes_block_mask = 1;
  const AttentionHandle made =
      attention(R"({"dtype": "f32", "head_dim": 32, "block": [16, 16]})", options);
  const tw_shape sizes = shape(1, 32, 32);
  std::vector<std::int32_t> rows = {0, 1, 2}, columns = {0, 1};
  const tw_tensor crow = tensor(rows, {3}), col = tensor(columns, {2});
  const auto mask = make<MaskHandle>(tw_mask_from_csr, made.get(), &sizes, nullptr, &crow, &col);
  CHECK(info_of(mask).full_tiles == 2);

  options.masks_only = 1;
  options.takes_block_mask = 0;
  const AttentionHandle looks = attention(kCausal, options);
  const tw_call call = sized<tw_call>();
  const ErrorHandle error = fail(TW_USAGE, tw_forward, looks.get(), &call);
  CHECK_THAT(tw_error_report(error.get()), ContainsSubstring("masks_only"));
}

TEST_CASE("C: slices of a mask, and its file") {
  const MaskHandle mask = causal_mask(attention(kCausal));
  const auto* const whole = mask.get();
  const auto slice =
      make<MaskHandle>(tw_mask_slice_rows, whole, int64_t{32}, int64_t{16}, int64_t{-1});
  CHECK((info_of(slice).q_blocks == 1 && info_of(slice).density == 0.75));
  const auto shorter =
      make<MaskHandle>(tw_mask_slice_rows, whole, int64_t{32}, int64_t{16}, int64_t{48});
  CHECK(info_of(shorter).kv_blocks == 3);

  const std::string path = std::filesystem::temp_directory_path() /
                           ("tilewright_c_mask_" + std::to_string(getpid()) + ".safetensors");
  succeed(tw_mask_save, whole, path.c_str());
  const auto loaded = make<MaskHandle>(tw_mask_load, path.c_str());
  CHECK(info_of(loaded).full_tiles == info_of(mask).full_tiles);
  std::filesystem::remove(path);
}
