// Dropout in Hopper's kernels on the emulated GPU: the draws one by one, calls and gradients
// against the reference, and planted faults.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generator/tactic/tactic.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/emulated_gpu/findings.hpp"
#include "tests/emulated_gpu/hopper_backward_call.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dropout.hpp"
#include "tests/support/dropout_gradients.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

const Device& gpu() {
  static const Device device = Device::parse("cuda");
  return device;
}

void require_hopper(const Spec& spec) {
  REQUIRE(choose_tactic(spec, Target::parse("sm_90a")).name() == "hopper");
}

Spec with_dropout(std::int64_t head_dim, const std::string& fields) {
  return spec_from_json(
      R"({"scalars": {"seed": {"dtype": "i64"}, "p": {"dtype": "f32", "default": 0.3}},
                            "outputs": ["out", "lse"], "head_dim": )" +
          std::to_string(head_dim) + ", " + fields + "}",
      "dropout");
}

using Mask = bool (*)(std::int64_t q_idx, std::int64_t kv_idx);

// Rows of three q tiles; kv_offset: where it is no multiple of 4, quads begin inside those of
// tiles.
void check_shown_draws(DType dtype, std::int64_t columns, std::int64_t kv_offset,
                       const std::string& mask_mod, Mask mask) {
  Spec spec = dropout_calls::showing_spec(dtype, "bhsd", columns);
  spec.block = {128, 128};
  spec.mask_mod = mask_mod;
  require_hopper(spec);
  const Shape shape = {.batch = 1,
                       .num_q_heads = 4,
                       .num_kv_heads = 2,
                       .q_len = 300,
                       .kv_len = columns - 3,
                       .q_offset = columns - 303,
                       .kv_offset = kv_offset};
  CHECK(dropout_calls::count_wrong_draws(spec, shape, gpu(), mask) == 0);
}

constexpr Shape kSeveralTiles = {
    .batch = 1, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 203, .kv_len = 331};

std::string findings(const Spec& spec, const std::shared_ptr<const jinja::Loader>& templates) {
  return findings_of([&] {
    const auto inputs = verify::random_inputs(spec, kSeveralTiles, 7);
    return verify::check(spec, inputs.problem(), check_options(templates));
  });
}

}  // namespace

TEST_CASE("dropout on Hopper: the draws of dense calls", "[every-kind]") {
  const Mask all = [](std::int64_t, std::int64_t) { return true; };
  check_shown_draws(bf16, 64, 0, "", all);
  check_shown_draws(f16, 128, 4, "", all);
  check_shown_draws(bf16, 200, 0, "", all);
  check_shown_draws(bf16, 200, 5, "", all);
}

TEST_CASE("dropout on Hopper: the draws of masked calls") {
  for (const std::int64_t columns : {64, 256}) {
    CAPTURE(columns);
    check_shown_draws(bf16, columns, 0, "q_idx >= kv_idx",
                      [](std::int64_t q_idx, std::int64_t kv_idx) { return q_idx >= kv_idx; });
    check_shown_draws(f16, columns, 4, "abs(q_idx - kv_idx) < 40",
                      [](std::int64_t q_idx, std::int64_t kv_idx) {
                        return q_idx - kv_idx < 40 && kv_idx - q_idx < 40;
                      });
  }
}

TEST_CASE("dropout on Hopper: calls against the reference", "[every-kind]") {
  for (
      const char* fields :
      {R"x("dtype": "bf16", "dropout": "p")x",
       R"x("dtype": "f16", "dropout": "p * (h + 1) / num_q_heads", "mask_mod": "q_idx >= kv_idx",
            "score_mod": "score + 0.25f * (h + 1) * (kv_idx - q_idx)")x",
       R"x("dtype": "bf16", "dropout": "h == 2 ? 1 : 0.9f", "sink": "h - 1",
            "mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < 90", "block": [64, 128])x",
       R"x("dtype": "f16", "dropout": "h == 1 ? log(-1.0) : -p", "score_mod": "5 * tanh(score / 5)",
            "mask_mod": "kv_idx > q_idx + 80 || kv_idx % 5 == 2")x"}) {
    for (const std::int64_t head_dim : {64, 128}) {
      CAPTURE(head_dim, fields);
      const Spec spec = with_dropout(head_dim, fields);
      require_hopper(spec);
      const verify::Inputs inputs = verify::random_inputs(spec, kSeveralTiles, 7);
      dropout_calls::require_ok(
          verify::check(spec, inputs.problem(), {.attention = {.device = gpu()}}));
    }
  }
}

TEST_CASE("dropout on Hopper: weights of one byte, and k and v of one") {
  for (const char* fields :
       {R"x("dtype": "f8e4m3", "out_dtype": "bf16", "dropout": "p", "q_scale": "1", "k_scale": "1",
            "v_scale": "2")x",
        R"x("dtype": "bf16", "kv_dtype": "f8e4m3", "dropout": "p", "k_scale": "0.5", "v_scale": "2",
            "mask_mod": "q_idx >= kv_idx")x"}) {
    CAPTURE(fields);
    const Spec spec = with_dropout(64, fields);
    require_hopper(spec);
    const verify::Inputs inputs = verify::random_inputs(spec, kSeveralTiles, 7);
    dropout_calls::require_ok(
        verify::check(spec, inputs.problem(), {.attention = {.device = gpu()}}));
  }
}

TEST_CASE("dropout on Hopper: parts of q tiles add up undropped weights") {
  // Few q tiles and many kv tiles: the blocks of threads share them.
  const Spec spec = with_dropout(64, R"("dtype": "bf16", "dropout": "p")");
  require_hopper(spec);
  const Shape shape = {
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 90, .kv_len = 3001};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  dropout_calls::require_ok(
      verify::check(spec, inputs.problem(), {.attention = {.device = gpu()}}));
}

TEST_CASE("dropout on Hopper: a probability of 0 changes nothing") {
  dropout_calls::check_no_dropout(
      gpu(), R"("tactic": {"name": "hopper", "q_tile": 128}, "dtype": "bf16")");
}

TEST_CASE("dropout on Hopper: gradients against the reference", "[every-kind]") {
  for (
      const char* fields :
      {R"x("dtype": "bf16", "dropout": "p")x",
       R"x("dtype": "f16", "dropout": "p * (h + 1)", "mask_mod": "q_idx >= kv_idx && q_idx != 72")x",
       R"x("dtype": "bf16", "dropout": "h == 1 ? 1 : 0.9f", "score_mod": "5 * tanh(score / 5)",
            "mask_mod": "q_idx - kv_idx < 60", "sink": "0.5f")x"}) {
    for (const std::int64_t head_dim : {64, 128}) {
      CAPTURE(head_dim, fields);
      const Spec spec =
          with_dropout(head_dim, fields + std::string(R"(, "gradients": ["q", "k", "v"])"));
      check_on_hopper(spec, kRagged, {.q_offset = -5, .dead_rows = {}});
    }
  }
}

TEST_CASE("dropout on Hopper: gradients of packed calls and of wide heads") {
  const Spec packed = with_dropout(64, R"("dtype": "bf16", "dropout": "p", "layout": "packed",
      "mask_mod": "q_idx >= kv_idx", "gradients": ["q", "k", "v"])");
  CHECK(takes_maps(packed));
  verify::PackedLengths lengths = {.num_q_heads = 4, .num_kv_heads = 2};
  lengths.sequences = {{1, 43}, {150, 150}, {0, 9}, {35, 18}, {21, 170}};
  const verify::PackedInputs inputs = verify::random_packed_inputs(packed, lengths, 7);
  dropout_calls::check_gradients_of(packed, inputs.problem(), gpu());
  const Spec wide =
      with_dropout(192, R"("dtype": "f16", "dropout": "p", "gradients": ["q", "k", "v"])");
  check_on_hopper(wide,
                  {.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 70, .kv_len = 90});
}

TEST_CASE("dropout on Hopper: planted faults are seen") {
  const std::string attention = "cuda/attention/";
  const std::vector<Fault> faults = {
      {"draws are another row's", attention + "dropout.hpp", "first_row + inputs.q_offset,",
       "first_row + inputs.q_offset + 64,"},
      {"draws are another head's", attention + "dropout.hpp", "inputs.q_offset, inputs.h, inputs.b",
       "inputs.q_offset, inputs.h_kv, inputs.b"},
      {"every tile has the first one's draws", "cuda/hopper/tile_visits.hpp",
       "draw_tile(inputs, tile.first())", "draw_tile(inputs, 0)"},
      {"lanes do not exchange", attention + "quad_draws.hpp",
       "kept_[i] = (kept_[i] & own) | (given & ~own);", ""},
      {"weights are dropped before they are summed", "cuda/hopper/tile_visits.hpp",
       "    const bool raises = weigh(shift,",
       "    if (!masked) drop(drawn, -kInfinity, s);\n    const bool raises = weigh(shift,"},
      {"what is kept is not scaled", "cuda/store/row_ends.hpp",
       "ends.factor[i] = finish_dropout(call, q_tile, ends.factor[i]);", ""},
  };
  const Spec spec = with_dropout(64, R"("dtype": "bf16", "dropout": "0.4f")");
  require_hopper(spec);
  REQUIRE(findings(spec, default_template_loader()).empty());
  check_each_is_seen(faults, [&](const std::shared_ptr<const jinja::Loader>& templates) {
    return findings(spec, templates);
  });
}

TEST_CASE("dropout on Hopper: planted faults of gradients are seen") {
  const std::string products = "cuda/backward/dropped_products.hpp";
  const std::string elements = "cuda/hopper/backward/elements.hpp";
  const std::vector<Fault> faults = {
      {"draws are another row's", products, "first_q + inputs.q_offset()",
       "first_q + inputs.q_offset() + 1"},
      {"draws are another head's", products, "inputs.q_offset(), inputs.h,",
       "inputs.q_offset(), inputs.h_kv,"},
      {"draws are another column's", products, "first_kv + inputs.kv_offset()",
       "first_kv + inputs.kv_offset() + 4"},
      {"P for dV is not dropped", elements, "products.dropped(i, j, weight)", "weight"},
      {"dP is not dropped", elements, "products.dropped(i, j, d[i][j])", "d[i][j]"},
      {"what is kept is not scaled", products, "x * factor", "x"},
  };
  const Spec spec =
      with_dropout(128, R"("dtype": "bf16", "dropout": "0.4f", "gradients": ["q", "k", "v"])");
  for (const Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK_FALSE(is_right(fault, spec, kRagged, {}));
  }
}
