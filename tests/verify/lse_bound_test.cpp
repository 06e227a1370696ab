// How near f32 kernels come to the bound of lse, over many calls: verify/judge.hpp derives it.
//
//     verify_tests "[.lse]"        20,000 calls; TILEWRIGHT_TEST_DEVICE=cuda: 5,000 on a GPU

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/test_seed.hpp"
#include "verify/check.hpp"
#include "verify/random.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

Device device_under_test() {
  const char* name = std::getenv("TILEWRIGHT_TEST_DEVICE");
  return Device::parse(name && *name ? name : "cpu");
}

struct Variant {
  std::int64_t head_dim;
  const char* score_mod;
};

constexpr std::array kVariants = {Variant{16, ""}, Variant{64, "20 * tanh(score / 20)"},
                                  Variant{128, "score - 0.1 * (q_idx - kv_idx)"},
                                  Variant{224, "score + tanh(score * 0.5)"},
                                  Variant{256, "score * 1.5 + 0.75"}};

// Few keys in most calls: then |lse| may be small where scores are large.
Shape random_shape(Random& random) {
  return {.batch = 1,
          .num_q_heads = 2,
          .num_kv_heads = random.integer(1, 2),
          .q_len = random.integer(1, 40),
          .kv_len = random.integer(0, 3) == 0 ? random.integer(1, 200) : random.integer(1, 12),
          .q_offset = random.integer(-50, 50),
          .kv_offset = random.integer(-50, 50)};
}

struct Worst {
  double share = 0;
  double error = 0;
  std::string reasons;
};

Worst worst_of(std::int64_t calls) {
  Worst worst;
  Random random(test_seed(), "lse");
  const auto of_variant = calls / static_cast<std::int64_t>(kVariants.size());
  for (const Variant& variant : kVariants) {
    const Spec spec{.dtype = f32,
                    .head_dim = variant.head_dim,
                    .score_mod = variant.score_mod,
                    .outputs = {.lse = true}};
    CheckOptions options;
    options.attention.device = device_under_test();
    options.check_undefined = false;
    const Checker checker(spec, options);
    for (std::int64_t i = 0; i < of_variant; ++i) {
      const std::uint64_t seed = random.next() >> 11;
      const Inputs inputs =
          random_inputs(spec, random_shape(random), seed, {.q_factor = i % 2 == 0 ? 4.0 : 1.0});
      Problem problem = inputs.problem();
      if (i % 3 != 0) problem.scale = 0.05 + 0.25 * random.uniform();
      const Report report = checker.check(problem);
      const Verdict& verdict = report.verdict;
      for (const std::string& reason : report.verdict.reasons) {
        if (reason.starts_with("lse")) worst.reasons += fmt::format("seed {}: {}\n", seed, reason);
      }
      worst.share = std::max(worst.share, verdict.lse_error / verdict.lse_bound);
      worst.error = std::max(worst.error, verdict.lse_error);
    }
  }
  fmt::print("lse of {} calls: the worst came to {:.2f} of its bound, {:.2g} off\n", calls,
             worst.share, worst.error);
  return worst;
}

}  // namespace

TEST_CASE("lse bound: a sample of f32 calls stays below it") {
  CHECK(worst_of(100).reasons == "");
}

TEST_CASE("lse bound: f32 calls stay below it", "[.lse]") {
  const bool on_gpu = device_under_test().kind() == Device::Kind::cuda;
  CHECK(worst_of(on_gpu ? 5000 : 20'000).reasons == "");
}
