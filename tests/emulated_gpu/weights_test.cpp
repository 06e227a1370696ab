// The output weights of its kernel for GPUs, on the emulated one.
#include "tests/support/weights.hpp"

#include <memory>

#include "tests/emulated_gpu/faulty_templates.hpp"

using namespace tilewright;

namespace {

const Device& gpu() {
  static const Device device = Device::parse("cuda");
  return device;
}

Spec spec_in(const std::string& dtype, const std::string& fields) {
  return weights::spec_of("\"dtype\": \"" + dtype + "\", " + fields);
}

}  // namespace

TEST_CASE("weights on a GPU: after Hopper's kernel and the portable one") {
  const std::string tactic = GENERATE("hopper", "portable");
  for (const std::string& fields : weights::dense_fields()) {
    CAPTURE(tactic, fields);
    Spec spec = spec_in("bf16", fields);
    if (tactic == "hopper") spec.block = {128, 128};
    spec.tactic = TacticSpec{.name = tactic};
    weights::check_dense(spec, gpu());
  }
}

TEST_CASE("weights on a GPU: rows that are stored by four columns and by two") {
  const Shape shape = {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 75, .kv_len = 148};
  const std::string masked = R"x("mask_mod": "q_idx >= kv_idx && kv_idx % 3 != 1")x";
  weights::check_dense(spec_in("bf16", masked), gpu(), shape);
  weights::check_dense(spec_in("f16", R"("out_dtype": "f32")"), gpu(), shape);
}

TEST_CASE("weights on a GPU: float32, padded rows, and tensors of one byte") {
  for (const std::string& fields : weights::dense_fields()) {
    CAPTURE(fields);
    weights::check_dense(spec_in("f32", fields), gpu());
  }
  const std::string masked = R"x("mask_mod": "q_idx >= kv_idx && kv_idx % 3 != 1")x";
  for (const std::string dtype : {"f32", "bf16"})
    weights::check_padded(spec_in(dtype, masked), gpu());
  weights::check_dense(spec_in("bf16", R"("kv_dtype": "f8e4m3", "out_dtype": "f32",
                                          "k_scale": "of_h[h_kv]", "v_scale": "2")"),
                       gpu());
}

TEST_CASE("weights on a GPU: unaligned tensors, and few rows after the decode kernel",
          "[every-kind]") {
  const Spec spec = spec_in("f16", R"x("mask_mod": "q_idx + 90 >= kv_idx")x");
  const verify::Checker checker(spec, {.attention = {.device = gpu(), .decode = true}});
  for (const std::int64_t padding : {0, 1}) {
    CAPTURE(padding);
    const Shape shape = {
        .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 3, .kv_len = 130};
    const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
    const verify::Report report = checker.check(inputs.problem(), {.row_padding = padding});
    for (const std::string& reason : report.reasons()) UNSCOPED_INFO(reason);
    CHECK(report.ok);
    CHECK(report.verdict.weights_bound > 0);
  }
}

TEST_CASE("weights on a GPU: planted faults are seen") {
  struct Planted {
    test::Fault fault;
    std::string fields;
  };
  const std::string file = "cuda/portable/weights.hpp";
  const std::string masked = R"x("mask_mod": "q_idx >= kv_idx && kv_idx % 3 != 1")x";
  const std::vector<Planted> faults = {
      {{"tiles that no list has keep what they hold", file, "if (kMasked) weights.clear();", ""},
       masked},
      {{"dropped elements weigh what they would", file, "if (kHasMaskMod && tile.partial()) drop(",
        "if (false) drop("},
       masked},
      {{"the lse of the tile's first row", file, "rows[min(q_tile.first_row + row_of(i),",
        "rows[min(q_tile.first_row,"},
       R"("scale": 1)"},
      {{"in units of exp2", file, "exp2((y - lse) * kLog2E)", "exp2(y - lse)"}, R"("scale": 1)"},
      {{"rows of the next head", file,
        "q_tile.lse_begin(call, q_tile.b, q_tile.h) + q_tile.first_row;",
        "q_tile.lse_begin(call, q_tile.b, 0) + q_tile.first_row;"},
       R"("scale": 1)"},
      {{"lanes keep the columns that they give", file, "is_odd ? left : right, 1)",
        "is_odd ? right : left, 1)"},
       R"("scale": 1)"},
      {{"K of the tile before", file, "load_ahead(1);", ""}, R"("scale": 1)"}};
  for (const Planted& planted : faults) {
    CAPTURE(planted.fault.what);
    AttentionOptions options{.device = gpu()};
    options.kernels.templates = std::make_shared<test::FaultyTemplates>(planted.fault);
    const Shape shape = {
        .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 40, .kv_len = 200};
    CHECK(!weights::report_of(spec_in("bf16", planted.fields), options, shape).ok);
  }
}
