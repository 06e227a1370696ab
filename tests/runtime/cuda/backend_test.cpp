// What of the CUDA backend can be tested without a GPU.
#include <cstring>

#include "base/error.hpp"
#include "runtime/cuda/arguments.hpp"
#include "runtime/cuda/targets.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

cuda::DeviceFacts gpu(int compute_capability) {
  cuda::DeviceFacts facts;
  facts.name = "test";
  facts.compute_capability = compute_capability;
  return facts;
}

Spec spec_with_buffers(int count) {
  Spec spec{.dtype = f16, .head_dim = 64, .score_mod = "score"};
  for (int i = 0; i < count; ++i) {
    spec.buffers["x" + std::to_string(100 + i)] = {.dtype = f32,
                                                   .shape = {NamedDim::num_q_heads, FreeDim{}}};
  }
  return spec;
}

template <typename Body>
std::string report_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("CUDA arguments: bindings are laid out as the kernels' struct is") {
  Spec spec = spec_with_buffers(2);
  spec.scalars["cap"] = {.dtype = DType::f32, .default_value = 50.0};
  spec.scalars["window"] = {.dtype = DType::i32, .default_value = 7.0};
  float first[6] = {};
  float second[1] = {};
  const Bindings bindings(spec, {.buffers = {{"x100", TensorView::contiguous(first, f32, {2, 3})},
                                             {"x101", TensorView::contiguous(second, f32, {1, 1})}},
                                 .scalars = {}});
  cuda::SnippetParameter parameter(bindings.cuda_arguments(), {.batch = 2,
                                                               .num_q_heads = 4,
                                                               .num_kv_heads = 1,
                                                               .q_len = 5,
                                                               .kv_len = 6,
                                                               .q_offset = -3,
                                                               .kv_offset = 9});
  abi::cuda::SnippetArguments<2, 2> arguments;
  std::memcpy(&arguments, parameter.data(), sizeof arguments);
  REQUIRE(arguments.batch == 2);
  REQUIRE(arguments.num_q_heads == 4);
  REQUIRE(arguments.num_kv_heads == 1);
  REQUIRE(arguments.q_len == 5);
  REQUIRE(arguments.kv_len == 6);
  REQUIRE(arguments.q_offset == -3);
  REQUIRE(arguments.kv_offset == 9);
  REQUIRE(arguments.buffers[0].data == first);
  REQUIRE(arguments.buffers[0].size[1] == 3);
  REQUIRE(arguments.buffers[0].stride[0] == 3);
  REQUIRE(arguments.buffers[1].data == second);
  REQUIRE(arguments.buffers[1].stride[1] == 0);
  REQUIRE(arguments.scalars[0].as_f32 == 50.0f);
  REQUIRE(arguments.scalars[1].as_i32 == 7);
}

TEST_CASE("CUDA arguments: a buffer of five dimensions gives all buffers room for five") {
  Spec spec{.dtype = f32, .head_dim = 16};
  spec.buffers["deep"] = {f32, {2, 3, 4, 5, FreeDim{}}};
  spec.buffers["gain"] = {f32, {}};
  spec.scalars["cap"] = {.dtype = f32, .default_value = 50};
  std::vector<float> deep(2 * 3 * 4 * 5 * 6);
  float gain = 1;
  const Bindings bindings(
      spec, {.buffers = {{"deep", TensorView::contiguous(deep.data(), f32, {2, 3, 4, 5, 6})},
                         {"gain", TensorView::contiguous(&gain, f32, {})}}});
  cuda::SnippetParameter parameter(bindings.cuda_arguments(), {.q_len = 11, .kv_len = 12});
  abi::cuda::SnippetArguments<2, 1, 5> arguments;
  std::memcpy(&arguments, parameter.data(), sizeof arguments);
  REQUIRE(arguments.buffers[0].data == deep.data());
  REQUIRE(arguments.buffers[0].size[4] == 6);
  REQUIRE(arguments.buffers[0].stride[0] == 360);
  REQUIRE(arguments.buffers[1].data == &gain);
  REQUIRE(arguments.scalars[0].as_f32 == 50.0f);
}

TEST_CASE("CUDA arguments: without buffers and scalars there is still a header") {
  const Bindings bindings;
  cuda::SnippetParameter parameter(bindings.cuda_arguments(), {.q_len = 11, .kv_len = 12});
  abi::cuda::SnippetArguments<0, 0> arguments;
  std::memcpy(&arguments, parameter.data(), sizeof arguments);
  REQUIRE(arguments.q_len == 11);
  REQUIRE(arguments.kv_len == 12);
}

TEST_CASE("CUDA arguments: a buffer that is strided too far is refused, one of size 1 is not") {
  const Spec spec = spec_with_buffers(1);
  float data[1] = {};
  TensorView view = TensorView::contiguous(data, f32, {1, 2});
  for (const std::int64_t stride : {std::int64_t{1} << 29, -(std::int64_t{1} << 29) - 1}) {
    view.strides[1] = stride;
    REQUIRE_THAT(report_of([&] {
                   cuda::require_strides(spec, Bindings(spec, {.buffers = {{"x100", view}}}));
                 }),
                 ContainsSubstring("\"x100\"") && ContainsSubstring("below 2^31 bytes"));
  }
  view.shape[1] = 1;
  REQUIRE_NOTHROW(cuda::require_strides(spec, Bindings(spec, {.buffers = {{"x100", view}}})));
}

TEST_CASE("CUDA arguments: one stride or base off 16 bytes asks for the unaligned kernel") {
  const Spec spec{.dtype = f16, .head_dim = 64};
  alignas(16) static char memory[64];
  const auto call_with = [&](std::int64_t row_stride, int offset) {
    const ResolvedTensor tensor{memory, 4096, 1024, 64};
    ForwardCall call;
    call.q = call.k = call.v = call.out = tensor;
    call.out.row_stride = row_stride;
    call.k.data = memory + offset;
    return call;
  };
  REQUIRE(cuda::is_aligned(spec, call_with(64, 0)));
  REQUIRE(cuda::is_aligned(spec, call_with(8, 16)));
  REQUIRE_FALSE(cuda::is_aligned(spec, call_with(68, 0)));
  REQUIRE_FALSE(cuda::is_aligned(spec, call_with(64, 2)));
}

TEST_CASE("CUDA target: a GPU's own, the nearest older of its generation, or none") {
  const std::vector<int> known = {80, 86, 89, 90, 100, 120};
  REQUIRE(cuda::target_for(gpu(80), known).name() == "sm_80");
  REQUIRE(cuda::target_for(gpu(90), known).name() == "sm_90a");
  REQUIRE(cuda::target_for(gpu(100), known).name() == "sm_100a");
  REQUIRE(cuda::target_for(gpu(87), known).name() == "sm_86");
  REQUIRE(cuda::target_for(gpu(103), known).name() == "sm_100");
  REQUIRE_THAT(report_of([&] { cuda::target_for(gpu(130), known); }),
               ContainsSubstring("sm_130") && ContainsSubstring("newer NVRTC"));
}

TEST_CASE("CUDA driver: one that is older than NVRTC is refused with what to do") {
  REQUIRE_NOTHROW(cuda::require_driver_for_nvrtc(13000, 13, 2));
  REQUIRE_NOTHROW(cuda::require_driver_for_nvrtc(13000, 12, 4));
  REQUIRE_THAT(report_of([] { cuda::require_driver_for_nvrtc(12040, 13, 0); }),
               ContainsSubstring("CUDA 12.4") && ContainsSubstring("NVRTC 13.0") &&
                   ContainsSubstring("TILEWRIGHT_NVRTC"));
}

TEST_CASE("CUDA device: where there is no driver, it is refused and auto is the CPU") {
  if (cuda::Driver::find()) return;
  REQUIRE_THAT(report_of([] { Device::parse("cuda"); }),
               ContainsSubstring("error[device]") && ContainsSubstring("no NVIDIA driver"));
  REQUIRE_THAT(report_of([] { Device::parse("cuda:3"); }), ContainsSubstring("\"cuda:3\""));
  REQUIRE(Device::automatic() == Device::cpu());
  REQUIRE(!cuda::why_not_available().empty());
}

TEST_CASE("CUDA device: a name that is none is a usage error") {
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999", "cudda"}) {
    REQUIRE_THAT(report_of([&] { Device::parse(name); }), ContainsSubstring("error[usage]"));
  }
}
