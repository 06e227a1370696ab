// tw_quantise: k by its scale, with and without the shape of a call.
#include <array>

#include "tests/c/calls.hpp"

namespace tilewright::c_abi {

TEST_CASE("C: k is stored as numbers of one byte") {
  tw_options options = {};
  options.struct_size = sizeof options;
  options.device = "cpu";
  options.masks_only = 1;
  options.quantise = 1;
  const char* const spec = R"x({"dtype": "bf16", "head_dim": 16, "kv_dtype": "i8",
                               "k_scale": "0.5f", "v_scale": "1.0f * (1 + kv_idx)"})x";
  const auto made = make<AttentionHandle>(tw_attention_create, spec, &options);
  std::array<float, 32> from;
  from.fill(6.0f);
  from[1] = 1e9f;
  std::array<std::int8_t, 32> to = {};
  const std::int64_t sizes[] = {1, 1, 2, 16};
  tw_quantised call = {};
  call.struct_size = sizeof call;
  call.from = tw_tensor_contiguous(from.data(), TW_F32, 4, sizes);
  call.to = tw_tensor_contiguous(to.data(), TW_I8, 4, sizes);
  call.operand = TW_OPERAND_K;
  succeed(tw_quantise, made.get(), &call);
  for (std::size_t i = 0; i < to.size(); ++i) CHECK(to[i] == (i == 1 ? 127 : 12));

  tw_shape shape = {};
  shape.struct_size = sizeof shape;
  shape.batch = shape.num_q_heads = shape.num_kv_heads = shape.q_len = 1;
  shape.kv_len = 2;
  shape.kv_offset = 1;
  call.shape = &shape;
  call.operand = TW_OPERAND_V;
  succeed(tw_quantise, made.get(), &call);
  for (std::size_t i = 2; i < to.size(); ++i) CHECK(to[i] == (i < 16 ? 3 : 2));

  call.operand = 3;
  const ErrorHandle unknown = fail(TW_USAGE, tw_quantise, made.get(), &call);
  CHECK_THAT(tw_error_message(unknown.get()), Catch::Matchers::ContainsSubstring("operand is 3"));
  call.operand = TW_OPERAND_Q;
  fail(TW_USAGE, tw_quantise, made.get(), &call);
  fail(TW_USAGE, tw_quantise, made.get(), nullptr);
}

}  // namespace tilewright::c_abi
