// The ends of rows on the emulated GPU's portable kernel: out and lse, where a thread has fewer
// rows than lanes share a row, as many, or more.
#include <string>

#include "generator/spec/spec_json.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;

TEST_CASE("row ends: every row's lse is stored, however many rows a thread has", "[every-kind]") {
  const std::string rows = GENERATE(R"("q_tile": 64, "warps": 4)", R"("q_tile": 64, "warps": 2)",
                                    R"("q_tile": 48, "warps": 1)", R"("q_tile": 64, "warps": 1)");
  const std::string dtype = GENERATE("f16", "f32");
  const std::string products = dtype == "f32" ? R"(, "f32_products": "tf32")" : "";
  CAPTURE(rows, dtype);
  const Spec spec = spec_from_json(
      R"({"head_dim": 32, "outputs": ["out", "lse"], "block": [192, 64], "dtype": ")" + dtype +
          R"(", "tactic": {"name": "portable", )" + rows + "}" + products + "}",
      "row_ends");
  const verify::Inputs inputs = verify::random_inputs(
      spec, {.num_q_heads = 1, .num_kv_heads = 1, .q_len = 75, .kv_len = 40}, 5);
  const verify::Report report =
      verify::check(spec, inputs.problem(), {.attention = {.device = Device::parse("cuda")}});
  CHECK(report.reasons().empty());
}
