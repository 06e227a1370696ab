// tw_append: two rows by their slots.
#include <array>

#include "tests/c/calls.hpp"

namespace tilewright::c_abi {

TEST_CASE("C: new rows go to their slots") {
  tw_options options = {};
  options.struct_size = sizeof options;
  options.device = "cpu";
  options.append = 1;
  const char* const spec =
      R"({"dtype": "f32", "head_dim": 16, "layout": "packed", "kv_layout": "paged"})";
  const auto made = make<AttentionHandle>(tw_attention_create, spec, &options);
  std::array<float, 32> k_new, v_new;
  k_new.fill(1.0f);
  v_new.fill(2.0f);
  std::array<float, 64> k = {}, v = {};
  std::array<std::int32_t, 2> slots = {2, -1};
  const std::int64_t of_new[] = {2, 1, 16}, of_pool[] = {2, 2, 1, 16}, of_slots[] = {2};
  tw_new_rows rows = {};
  rows.struct_size = sizeof rows;
  rows.k_new = tw_tensor_contiguous(k_new.data(), TW_F32, 3, of_new);
  rows.v_new = tw_tensor_contiguous(v_new.data(), TW_F32, 3, of_new);
  rows.k = tw_tensor_contiguous(k.data(), TW_F32, 4, of_pool);
  rows.v = tw_tensor_contiguous(v.data(), TW_F32, 4, of_pool);
  rows.slots = tw_tensor_contiguous(slots.data(), TW_I32, 1, of_slots);
  succeed(tw_append, made.get(), &rows);
  for (std::size_t i = 0; i < k.size(); ++i) {
    CHECK(k[i] == (i / 16 == 2 ? 1.0f : 0.0f));
    CHECK(v[i] == (i / 16 == 2 ? 2.0f : 0.0f));
  }
  rows.slots = {};
  const ErrorHandle neither = fail(TW_USAGE, tw_append, made.get(), &rows);
  CHECK_THAT(tw_error_message(neither.get()),
             Catch::Matchers::ContainsSubstring("neither slots nor a plan"));
  fail(TW_USAGE, tw_append, made.get(), nullptr);
}

}  // namespace tilewright::c_abi
