// Kernels that write to what they are only to read.

#include <chrono>
#include <memory>

#include "fuzz/workers.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using verify::fuzz::Failure;

namespace {

const Shape kShape{.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 20, .kv_len = 33};
const Spec kPlain{.dtype = bf16, .head_dim = 64, .tactic = TacticSpec{"portable", {}}};

// One thread does it when its rows are stored, so that no result shows it.
std::shared_ptr<const jinja::Loader> templates_with(const std::string& statement) {
  const std::string place = "store_rows(arguments, call, head.q_tile, ends, out);";
  return std::make_shared<const test::FaultyTemplates>(
      test::Fault{statement, "cuda/portable/forward.hpp", place,
                  place + " if (threadIdx.x == 0 && blockIdx.x == 0) " + statement});
}

verify::fuzz::Outcome outcome_of(const std::string& statement) {
  verify::fuzz::FuzzCase fuzz_case;
  fuzz_case.spec = kPlain;
  fuzz_case.target = "cuda";
  fuzz_case.shape = kShape;
  verify::fuzz::RunOptions options;
  options.kernels.templates = templates_with(statement);
  options.beside_cpu = false;
  return run_isolated(fuzz_case, options, std::chrono::seconds(100));
}

}  // namespace

TEST_CASE("emulated GPU: fuzz finds a kernel that writes to an input or beside it") {
  CHECK(outcome_of("{}").message == "");
  for (const std::string written : {"q.data)[0]", "k.data)[-2]", "v.data)[2 * 33 * 64 + 1]"}) {
    const auto outcome = outcome_of("((unsigned char*)arguments." + written + " ^= 1;");
    CAPTURE(written, outcome.message);
    CHECK(outcome.failure == Failure::input_changed);
    CHECK_THAT(outcome.message, ContainsSubstring(written.substr(0, 1) + " was written to"));
  }
}

TEST_CASE("emulated GPU: check finds a kernel that writes to an input") {
  verify::CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.attention.kernels.templates =
      templates_with("((unsigned char*)arguments.q.data)[3] ^= 1;");
  options.interpretations = Toolchain();
  const auto inputs = verify::random_inputs(kPlain, kShape, 7);
  const verify::Report report = verify::check(kPlain, inputs.problem(), options);
  CHECK_FALSE(report.ok);
  CHECK(report.verdict.ok);
  CHECK(report.damage == "q was written to on the GPU, at byte 3");
}
