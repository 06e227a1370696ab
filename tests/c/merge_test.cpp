// tw_merge: two parts of one row each, by hand.
#include <array>
#include <cmath>

#include "tests/c/calls.hpp"

namespace tilewright::c_abi {

TEST_CASE("C: parts of the columns are merged by their lse") {
  tw_options options = {};
  options.struct_size = sizeof options;
  options.device = "cpu";
  options.merge = 1;
  const char* const spec = R"({"dtype": "f32", "head_dim": 16, "outputs": ["out", "lse"]})";
  const auto made = make<AttentionHandle>(tw_attention_create, spec, &options);
  std::array<float, 16> first, second, out = {};
  first.fill(1.0f);
  second.fill(5.0f);
  float first_lse = std::log(3.0f), second_lse = 0.0f, lse = -9.0f;
  const std::int64_t of_out[] = {1, 1, 1, 16}, of_lse[] = {1, 1, 1};
  const auto view = [&](float* data) { return tw_tensor_contiguous(data, TW_F32, 4, of_out); };
  const auto lse_view = [&](float* data) { return tw_tensor_contiguous(data, TW_F32, 3, of_lse); };
  const tw_part parts[] = {{view(first.data()), lse_view(&first_lse)},
                           {view(second.data()), lse_view(&second_lse)}};
  const tw_tensor to = view(out.data()), lse_to = lse_view(&lse);
  succeed(tw_merge, made.get(), parts, std::size_t{2}, &to, &lse_to, nullptr);
  for (const float x : out) CHECK(std::fabs(x - 2.0f) < 1e-6f);
  CHECK(std::fabs(lse - std::log(4.0f)) < 1e-6f);
  succeed(tw_merge, made.get(), parts, std::size_t{2}, &to, nullptr, nullptr);

  const ErrorHandle one =
      fail(TW_USAGE, tw_merge, made.get(), parts, std::size_t{1}, &to, nullptr, nullptr);
  CHECK_THAT(tw_error_message(one.get()), Catch::Matchers::ContainsSubstring("1 part;"));
  fail(TW_USAGE, tw_merge, made.get(), nullptr, std::size_t{2}, &to, nullptr, nullptr);
  fail(TW_USAGE, tw_merge, made.get(), parts, std::size_t{2}, nullptr, nullptr, nullptr);
}

}  // namespace tilewright::c_abi
