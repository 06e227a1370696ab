// Scales and sinks on the emulated GPU, against the reference.
#include "tests/support/scaled_calls.hpp"

using namespace tilewright;

namespace {

void check_with(const char* tactic, const std::string& fields) {
  Spec spec = scaled_calls::scaled_spec(fields);
  spec.tactic = TacticSpec{.name = tactic};
  CAPTURE(tactic, fields);
  spec.is_packed() ? scaled_calls::check_sequences(spec, Device::parse("cuda"))
                   : scaled_calls::check_dense(spec, Device::parse("cuda"));
}

}  // namespace

// Each call has rows for the decode kernel and rows for the other one.
TEST_CASE("scales on a GPU: pages, new rows, and scales by token", "[every-kind]") {
  const std::string fields = GENERATE(
      R"x("mask_mod": "q_idx >= kv_idx", "kv_layout": "paged", "q_scale": "of_h[h]",
          "k_scale": "of_kv(b, h_kv)", "v_scale": "-0.5", "sink": "of_h[h]")x",
      R"x("mask_mod": "q_idx >= kv_idx", "kv_layout": "paged", "kv_new": true,
          "q_scale": "of_row[q_token % 11]", "k_scale": "of_row[kv_token % 17]",
          "v_scale": "of_row[kv_token % 13]", "sink": "of_row[q_token]")x",
      R"x("score_mod": "score * of_h[h] + 1", "q_scale": "of_row[q_idx]",
          "k_scale": "of_row[kv_idx + 3]", "v_scale": "of_row[kv_idx]", "sink": "2")x");
  CAPTURE(fields);
  scaled_calls::check_sequences(scaled_calls::scaled_spec(R"("layout": "packed", )" + fields),
                                Device::parse("cuda"));
}

TEST_CASE("scales on a GPU: float32", "[every-kind]") {
  scaled_calls::check_float32(Device::parse("cuda"));
}

TEST_CASE("scales on a GPU: exact answers", "[every-kind]") {
  scaled_calls::check_exact_answers(Device::parse("cuda"));
}

TEST_CASE("scales on a GPU: Hopper's kernel and the portable one", "[every-kind]") {
  const std::string layout = GENERATE("", R"("layout": "packed", )");
  const std::string scales = GENERATE(
      R"x("q_scale": "of_h[h]", "k_scale": "of_kv(b, h_kv)", "v_scale": "0.5", "sink": "of_h[h]")x",
      R"x("q_scale": "of_row[q_idx]", "k_scale": "-0.5", "mask_mod": "q_idx >= kv_idx")x",
      R"x("score_mod": "score + of_h[h] * (kv_idx - q_idx)", "k_scale": "1.5",
          "sink": "of_row[q_idx]")x",
      R"x("score_mod": "score + of_h[h] * (kv_idx - q_idx)", "sink": "of_row[q_idx]")x");
  check_with("hopper", layout + scales);
  check_with("portable", layout + scales);
}

TEST_CASE("scales on a GPU: a sink over scores with a fixed maximum") {
  Spec spec = scaled_calls::scaled_spec(
      R"x("score_mod": "30 * tanh(score / 30)", "sink": "of_h[h] * 10 + 10")x");
  spec.dtype = bf16;
  scaled_calls::check_dense(spec, Device::parse("cuda"));
}
