// tw_backward: one row over two columns of equal weight, by hand.
#include <array>
#include <cmath>

#include "tests/c/calls.hpp"

namespace tilewright::c_abi {

TEST_CASE("C: gradients of q, k, v and a scalar") {
  const auto made = attention(
      R"({"dtype": "f32", "head_dim": 16, "score_mod": "score + gain * kv_idx", "outputs": ["out", "lse"],
          "scalars": {"gain": {"dtype": "f32", "default": 0}}, "gradients": ["v", "gain"]})");
  std::array<float, 16> q = {}, out = {}, dout;
  std::array<float, 32> k = {}, v, dv = {};
  dout.fill(1.0f);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = i < 16 ? 1.0f : 3.0f;
  float lse = 0, d_gain = 0;
  const std::int64_t row[] = {1, 1, 1, 16}, rows[] = {1, 1, 2, 16}, of_lse[] = {1, 1, 1},
                     one[] = {1};
  auto forward = sized<tw_call>();
  forward.q = tw_tensor_contiguous(q.data(), TW_F32, 4, row);
  forward.k = tw_tensor_contiguous(k.data(), TW_F32, 4, rows);
  forward.v = tw_tensor_contiguous(v.data(), TW_F32, 4, rows);
  forward.out = tw_tensor_contiguous(out.data(), TW_F32, 4, row);
  forward.lse = tw_tensor_contiguous(&lse, TW_F32, 3, of_lse);
  succeed(tw_forward, made.get(), &forward);

  auto call = sized<tw_backward_call>();
  call.q = forward.q;
  call.k = forward.k;
  call.v = forward.v;
  call.out = forward.out;
  call.lse = forward.lse;
  call.dout = tw_tensor_contiguous(dout.data(), TW_F32, 4, row);
  call.dv = tw_tensor_contiguous(dv.data(), TW_F32, 4, rows);
  const tw_buffer gain = {"gain", tw_tensor_contiguous(&d_gain, TW_F32, 1, one)};
  call.gradients = &gain;
  call.gradient_count = 1;
  succeed(tw_backward, made.get(), &call);
  for (const float x : dv) CHECK(std::abs(x - 0.5f) < 1e-6f);
  CHECK(std::abs(d_gain - 8.0f) < 1e-4f);  // half of dout . (v[1] - out) * 1

  auto shape = sized<tw_shape>();
  shape.batch = shape.num_q_heads = shape.num_kv_heads = shape.q_len = 1;
  shape.kv_len = 2;
  std::int64_t bytes = -1;
  succeed(tw_backward_workspace_size, made.get(), &shape, nullptr, 1, &bytes);
  CHECK(bytes == 0);

  call.gradient_count = 0;
  const ErrorHandle missing = fail(TW_TENSOR, tw_backward, made.get(), &call);
  CHECK_THAT(tw_error_message(missing.get()), Catch::Matchers::ContainsSubstring("d_gain"));
  const tw_buffer twice[] = {gain, gain};
  call.gradients = twice;
  call.gradient_count = 2;
  fail(TW_USAGE, tw_backward, made.get(), &call);
  const auto plain = attention(R"({"dtype": "f32", "head_dim": 16})");
  fail(TW_USAGE, tw_backward_workspace_size, plain.get(), &shape, nullptr, 0, &bytes);
}

}  // namespace tilewright::c_abi
