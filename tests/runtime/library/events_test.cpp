#include <stdexcept>
#include <string>
#include <vector>

#include "cache/store.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("events: a sink receives them, and what it throws is dropped") {
  std::string all;
  AttentionOptions options{.device = Device::cpu()};
  options.kernels.store = std::make_shared<cache::Store>(cache::Store::Options{});
  options.kernels.events = [&](EventLevel level, std::string_view line) {
    all += (level == EventLevel::info ? "info " : "debug ") + std::string(line) + "\n";
    throw std::runtime_error("a sink threw this");
  };
  const Spec spec = {.name = "plain", .dtype = f32, .head_dim = 16, .score_mod = "score * 3.0f"};
  const Attention attention(spec, options);
  CHECK_THAT(all, ContainsSubstring("info kernel spec=\"plain\" kernel=forward target=cpu "
                                    "source=built key="));
  CHECK_THAT(all, ContainsSubstring("info attention spec=\"plain\" device=cpu target=cpu tactic="));
  CHECK_THAT(all, ContainsSubstring("debug no_fast_path spec=\"plain\" path=score_slope why="));
}
