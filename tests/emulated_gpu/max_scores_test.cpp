// The output max_scores of each kernel for GPUs, on the emulated one.
#include "tests/support/max_scores.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/refusal.hpp"

using namespace tilewright;

namespace {

const Device& gpu() {
  static const Device device = Device::parse("cuda");
  return device;
}

}  // namespace

TEST_CASE("max_scores on a GPU: Hopper's kernel and the portable one") {
  const std::string tactic = GENERATE("hopper", "portable");
  for (const std::string& fields : max_scores::dense_fields()) {
    CAPTURE(tactic, fields);
    Spec spec = max_scores::spec_of(R"("dtype": "bf16", )" + fields);
    spec.tactic = TacticSpec{.name = tactic};
    max_scores::check_dense(spec, gpu());
  }
}

TEST_CASE("max_scores on a GPU: float32") {
  for (const std::string& fields : max_scores::dense_fields()) {
    CAPTURE(fields);
    max_scores::check_dense(max_scores::spec_of(R"("dtype": "f32", )" + fields), gpu());
  }
}

// Weights of 8 bits have an exponent of their own.
TEST_CASE("max_scores on a GPU: f8e4m3") {
  const std::string tactic = GENERATE("hopper", "portable");
  for (const std::string mask : {"", R"x(, "mask_mod": "q_idx >= kv_idx && kv_idx % 3 != 1")x"}) {
    CAPTURE(tactic, mask);
    Spec spec = max_scores::spec_of(
        R"("dtype": "f8e4m3", "out_dtype": "bf16", "outputs": ["out", "lse", "max_scores"],
           "q_scale": "0.75f", "k_scale": "0.5f", "v_scale": "of_h[h_kv]")" +
        mask);
    spec.tactic = TacticSpec{.name = tactic};
    max_scores::check_dense(spec, gpu());
  }
}

TEST_CASE("max_scores on a GPU: dense calls with few rows") {
  std::vector<std::string> all = max_scores::dense_fields();
  all.emplace_back(R"x("outputs": ["out", "lse", "max_scores"], "kv_dtype": "f8e4m3",
      "k_scale": "0.5f", "v_scale": "of_h[h_kv]", "mask_mod": "q_idx >= kv_idx")x");
  for (const std::string& fields : all) {
    CAPTURE(fields);
    max_scores::check_few_rows(max_scores::spec_of(R"("dtype": "f16", )" + fields), gpu());
  }
}

TEST_CASE("max_scores on a GPU: a workspace that overlaps them is refused") {
  const Spec spec = max_scores::spec_of(R"("dtype": "f16", "outputs": ["out", "max_scores"])");
  const Shape shape = {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 3, .kv_len = 700};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  const verify::Problem problem = inputs.problem();
  const verify::Outputs outputs(spec, shape);
  const Attention attention(spec, {.device = gpu(), .decode = true});
  const std::int64_t bytes = attention.workspace_size(shape);
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes) + 256);
  const auto after = reinterpret_cast<std::uintptr_t>(memory.data()) % 256;
  std::byte* const begin = memory.data() + (256 - after) % 256;
  const ForwardOptions options = {
      .workspace = TensorView::contiguous(static_cast<void*>(begin), DType::u8, {bytes})};
  ForwardTensors tensors = outputs.tensors(problem);
  attention.forward(tensors, attention.bind(problem.snippet), options);
  tensors.max_scores = TensorView::contiguous(static_cast<void*>(begin), f32, {2, 4, 3});
  CHECK_THAT(
      test::refusal([&] { attention.forward(tensors, attention.bind(problem.snippet), options); }),
      Catch::Matchers::ContainsSubstring("the workspace overlaps max_scores"));
}

TEST_CASE("max_scores on a GPU: planted faults are seen") {
  struct Planted {
    test::Fault fault;
    std::string fields;
  };
  const std::string store = "cuda/store/max_scores.hpp", finish = "cuda/decode/finish_item.hpp";
  const std::vector<Planted> faults = {
      {{"0 where nothing is kept", store, "sum == 0.0f ? -kInfinity :", "sum == 0.0f ? 0.0f :"},
       R"x("mask_mod": "kv_idx > q_idx + 10")x"},
      {{"in units of exp2", finish, "end.max * (to_log2 * kLn2)", "end.max * to_log2"},
       R"x("score_mod": "score + of_h[h]")x"},
      {{"the rows of head 0", finish,
        "store_max_score(arguments, q_tile.lse_begin(call, q_tile.b, h)",
        "store_max_score(arguments, q_tile.lse_begin(call, q_tile.b, 0)"},
       R"x("score_mod": "score + of_h[h]")x"}};
  for (const Planted& planted : faults) {
    CAPTURE(planted.fault.what);
    const Spec spec = max_scores::spec_of(R"("dtype": "f16", "outputs": ["out", "max_scores"], )" +
                                          planted.fields);
    AttentionOptions options{.device = gpu(), .decode = true};
    options.kernels.templates = std::make_shared<test::FaultyTemplates>(planted.fault);
    const Shape shape = {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 3, .kv_len = 12};
    const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
    CHECK(!verify::check(spec, inputs.problem(), {.attention = options}).ok);
  }
}

TEST_CASE("max_scores on a GPU: packed and paged sequences, decoded and not") {
  for (const std::string& fields : max_scores::sequence_fields()) {
    CAPTURE(fields);
    max_scores::check_sequences(max_scores::spec_of(R"("dtype": "f16", )" + fields), gpu());
  }
}
