// Dense calls through the C ABI give what the C++ API gives, bit by bit.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "tests/c/calls.hpp"

using namespace tilewright;
using namespace tilewright::c_abi;

namespace {

constexpr std::int64_t kHeads = 4, kRows = 150, kDim = 32;

const char* const kAlibi = R"json({
  "dtype": "f32", "head_dim": 32, "outputs": ["out", "lse"],
  "score_mod": "score + slopes[h] * (kv_idx - q_idx)",
  "mask_mod": "0 <= q_idx - kv_idx && q_idx - kv_idx < window",
  "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}},
  "scalars": {"window": {"dtype": "i32", "default": 64}}})json";

struct Tensors {
  std::vector<float> q = numbers(kHeads * kRows * kDim, 1), k = numbers(kHeads * kRows * kDim, 2),
                     v = numbers(kHeads * kRows * kDim, 3);
  std::vector<float> out = std::vector<float>(q.size()), lse = std::vector<float>(kHeads * kRows);
  std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
};

tw_call call_of(Tensors& x) {
  auto call = sized<tw_call>();
  call.q = tensor(x.q, {1, kHeads, kRows, kDim});
  call.k = tensor(x.k, {1, kHeads, kRows, kDim});
  call.v = tensor(x.v, {1, kHeads, kRows, kDim});
  call.out = tensor(x.out, {1, kHeads, kRows, kDim});
  call.lse = tensor(x.lse, {1, kHeads, kRows});
  return call;
}

ForwardTensors views_of(Tensors& x) {
  const auto view = [](std::vector<float>& values) {
    return TensorView::contiguous(values.data(), f32, {1, kHeads, kRows, kDim});
  };
  return {.q = view(x.q),
          .k = view(x.k),
          .v = view(x.v),
          .out = view(x.out),
          .lse = TensorView::contiguous(x.lse.data(), f32, {1, kHeads, kRows})};
}

bool same(const Tensors& a, const Tensors& b) {
  const auto equal = [](const std::vector<float>& x, const std::vector<float>& y) {
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  return equal(a.out, b.out) && equal(a.lse, b.lse);
}

}  // namespace

TEST_CASE("C: a call with buffers, scalars, mask, offsets and scale equals the C++ call") {
  Tensors by_c, by_cpp;
  const Shape sizes = {.num_q_heads = kHeads,
                       .num_kv_heads = kHeads,
                       .q_len = kRows,
                       .kv_len = kRows,
                       .q_offset = 20,
                       .kv_offset = -3};
  const Attention expected(spec_from_json(kAlibi), {.device = Device::cpu()});
  const Bindings bound = expected.bind(
      {.buffers = {{"slopes", TensorView::contiguous(by_cpp.slopes.data(), f32, {kHeads})}},
       .scalars = {{"window", 70}}});
  expected.forward(views_of(by_cpp), expected.block_mask(sizes, bound), bound,
                   {.q_offset = 20, .kv_offset = -3, .scale = 0.3});

  const AttentionHandle made = attention(kAlibi);
  const tw_buffer slopes = {"slopes", tensor(by_c.slopes, {kHeads})};
  const tw_scalar window = {"window", 70};
  const auto bindings =
      make<BindingsHandle>(tw_bind, made.get(), &slopes, size_t{1}, &window, size_t{1});
  tw_shape shape_of_call = shape(kHeads, kRows, kRows);
  shape_of_call.q_offset = 20;
  shape_of_call.kv_offset = -3;
  const auto mask =
      make<MaskHandle>(tw_mask_create, made.get(), &shape_of_call, bindings.get(), nullptr);
  tw_call call = call_of(by_c);
  call.mask = mask.get();
  call.bindings = bindings.get();
  call.q_offset = 20;
  call.kv_offset = -3;
  call.has_scale = 1;
  call.scale = 0.3;
  succeed(tw_forward, made.get(), &call);
  CHECK(same(by_c, by_cpp));

  call.scale = 0;  // is a scale
  succeed(tw_forward, made.get(), &call);
  CHECK_FALSE(same(by_c, by_cpp));

  call.q_offset = 0;  // the mask was built for 20
  fail(TW_BLOCK_MASK, tw_forward, made.get(), &call);
}

TEST_CASE("C: a spec without mask_mod needs neither mask nor bindings") {
  const std::string spec = R"({"dtype": "f32", "head_dim": 32, "outputs": ["out", "lse"]})";
  Tensors by_c, by_cpp;
  Attention(spec_from_json(spec), {.device = Device::cpu()}).forward(views_of(by_cpp));
  const AttentionHandle made = attention(spec);
  const tw_call call = call_of(by_c);
  succeed(tw_forward, made.get(), &call);
  CHECK(same(by_c, by_cpp));

  tw_call incomplete = call;
  incomplete.lse = {};
  const ErrorHandle error = fail(TW_TENSOR, tw_forward, made.get(), &incomplete);
  CHECK_THAT(tw_error_message(error.get()), Catch::Matchers::ContainsSubstring("lse"));
}

TEST_CASE("C: memory that the device does not read is refused") {
  Tensors x;
  const AttentionHandle made =
      attention(R"({"dtype": "f32", "head_dim": 32, "outputs": ["out", "lse"]})");
  for (const std::int32_t type : {TW_CPU, TW_CUDA_HOST, TW_CUDA_MANAGED}) {
    tw_call call = call_of(x);
    call.k.device_type = type;
    succeed(tw_forward, made.get(), &call);
  }
  tw_call call = call_of(x);
  call.k.device_type = TW_CUDA;
  call.k.device_id = 3;
  const ErrorHandle on_gpu = fail(TW_TENSOR, tw_forward, made.get(), &call);
  CHECK(std::string(tw_error_message(on_gpu.get())) == "k lies on cuda:3, and cpu reads it");
  call.k.device_type = 10;
  const ErrorHandle elsewhere = fail(TW_TENSOR, tw_forward, made.get(), &call);
  CHECK_THAT(tw_error_message(elsewhere.get()), Catch::Matchers::ContainsSubstring("type 10"));
  call = call_of(x);
  call.q.dtype = 256;  // f32 where 8 bits of it are looked at
  const ErrorHandle unknown = fail(TW_TENSOR, tw_forward, made.get(), &call);
  CHECK(std::string(tw_error_message(unknown.get())) == "q has dtype 256, which is none");
}

TEST_CASE("C: texts, output shapes and workspace of an attention") {
  const AttentionHandle made = attention(kAlibi);
  CHECK(spec_from_json(text(tw_attention_spec, made.get())) == spec_from_json(kAlibi));
  CHECK(tw_attention_has_mask_mod(made.get()) == 1);
  CHECK(tw_attention_has_mask_mod(attention(R"({"dtype": "f32", "head_dim": 32})").get()) == 0);
  CHECK(tw_attention_has_mask_mod(nullptr) == 0);
  CHECK(text(tw_attention_device, made.get()) == "cpu");
  CHECK_THAT(text(tw_attention_target, made.get()), Catch::Matchers::StartsWith("cpu"));
  CHECK_THAT(text(tw_attention_builds, made.get()),
             Catch::Matchers::ContainsSubstring(R"("kernel":"forward_masked_lse")"));
  std::size_t size = 3;
  std::string small(3, '?');
  CHECK(tw_attention_device(made.get(), small.data(), &size) == TW_USAGE);
  CHECK((size == 4 && small == "???"));

  const tw_shape sizes = shape(kHeads, 5, 7);
  tw_tensor out = {}, lse = {};
  succeed(tw_output_shape, made.get(), &sizes, &out, &lse);
  CHECK((out.rank == 4 && out.dtype == TW_F32 && out.shape[2] == 5 && out.strides[2] == kDim));
  CHECK((lse.rank == 3 && lse.shape[1] == kHeads && lse.data == nullptr));
  std::int64_t bytes = -1;
  succeed(tw_workspace_size, made.get(), &sizes, &bytes);
  CHECK(bytes == 0);
  succeed(tw_attention_prepare, made.get());
}
