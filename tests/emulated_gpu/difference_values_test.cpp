// Hopper's kernels with a score_mod whose warps find values once for each difference of indices,
// both ways.
#include <string>
#include <utility>
#include <vector>

#include "generator/tactic/hopper_backward_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"
#include "tests/emulated_gpu/hopper_backward_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

const std::string kCausal = "q_idx >= kv_idx";
const std::string kClamped = "bias(h, clamp(kv_idx - q_idx, -40, 40) + 40)";
const std::string kBuckets = R"(int n = q_idx - kv_idx;
int a = abs(n);
float large = 8.0 + log(float(max(a, 1)) / 8.0) / log(16.0) * 8.0;
int bucket = (n < 0 ? 16 : 0) + (a < 8 ? a : min(int(large), 15));
return score + bias(h, bucket);)";

Spec spec_of(DType dtype, std::int64_t head_dim, std::string score_mod, std::string mask_mod = "") {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .score_mod = std::move(score_mod),
          .mask_mod = std::move(mask_mod),
          .buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::num_q_heads, 81}}},
                      {"other", {.dtype = bf16, .shape = {FreeDim{}}}}},
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v"}};
}

// Blocks of threads have several q tiles each, heads share k and v, and the last tiles are short.
constexpr Shape kHeads{
    .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 270, .kv_len = 309};

void check_values(const Spec& spec, const Shape& shape, CallOptions options = {}) {
  const SpecFacts facts(spec);
  const Target target = Target::parse("sm_90a");
  const KernelVariant forward = forward_kernel(spec, target);
  const auto tactic = default_hopper_tactic(facts, target, forward);
  REQUIRE(tactic);
  CHECK(difference_bytes(facts, target, forward, *tactic).has_value());
  CHECK(hopper_backward_tactic(facts, target, backward_kernel(spec)).value().difference_bytes > 0);
  check_on_hopper(spec, shape, std::move(options));
}

}  // namespace

TEST_CASE("emulated GPU: values by the difference of indices on Hopper", "[every-kind]") {
  check_values(spec_of(bf16, 128, "score + " + kClamped), kHeads);
  check_values(spec_of(f16, 64, "score + " + kClamped, kCausal), kHeads);
  check_values(spec_of(bf16, 64, kBuckets), kHeads, {.q_offset = 7});
  check_values(spec_of(bf16, 128, kBuckets, kCausal), kRagged,
               {.q_offset = -5, .dead_rows = {0, 1, 2, 3, 4}});
}

TEST_CASE("emulated GPU: values by the difference of indices with what else score_mod has") {
  const std::string window = "kv_idx <= q_idx && q_idx - kv_idx < 90";
  check_values(spec_of(bf16, 64, "20.0 * tanh((score + " + kClamped + ") / 20.0)"), kRagged);
  check_values(spec_of(bf16, 128, "score * 0.5 + " + kClamped + " + other[kv_idx]", window),
               kRagged);
  check_values(spec_of(f16, 64, "score + " + kClamped + " - 2.0 * other[abs(q_idx - kv_idx)]"),
               kRagged);
  check_values(
      spec_of(bf16, 128, "score + other[q_idx + 2 * 3 - kv_idx] + bias(h, q_idx + kv_idx)"),
      kRagged);
}

TEST_CASE("emulated GPU: values by the difference of indices with head dims above 128") {
  Spec spec = spec_of(bf16, 192, "score + " + kClamped, kCausal);
  spec.v_head_dim = 128;
  check_values(spec, kRagged);
  check_values(spec_of(bf16, 192, "score + " + kClamped), kRagged);
}

TEST_CASE("emulated GPU: values by the difference of indices and the gradient of their table") {
  Spec spec = spec_of(bf16, 128, "score + " + kClamped);
  spec.gradients.emplace_back("bias");
  check_values(spec, kHeads);
  spec.head_dim = 64;
  spec.mask_mod = kCausal;
  check_values(spec, kHeads);
}

TEST_CASE("emulated GPU: planted faults of values by the difference of indices are seen") {
  const std::string file = "cuda/hopper/difference_values.hpp";
  const std::string forward = "cuda/hopper/q_tile_scores.hpp";
  const std::string backward = "cuda/hopper/backward/consumer_base.hpp";
  const Spec spec = spec_of(bf16, 64, "score + 4.0 * " + kClamped);
  const std::vector<Fault> faults = {
      {"a tile's values overwrite those that are still read", file,
       "    __syncwarp();  // all lanes have read the values of the tile before\n", ""},
      {"values overwrite rows of out that are still to be sent", file,
       "    if (kDifferencesLieInOut) wait_until_stores_read();\n", ""},
      {"values are read before all are there", file, "    __syncwarp();  // all are there\n", ""},
      {"lanes of even rows read the place before", file, "kCopyBytes + 4 : 0", "kCopyBytes : 0"},
      {"the second copy is not written", file,
       "      store_shared(values_ + kCopyBytes + place_of(lane, i) * 4 + 4, found[i]);\n", ""},
      {"row 1 has the values of row 0", file, "      of_row_[1] = of_row_[0];\n", ""},
      {"the last place has no value", file, "place < kDifferencePlaces ?",
       "place < kDifferencePlaces - 1 ?"},
      {"rows of forward are one off", forward, "/ 32 * 16 + 15", "/ 32 * 16 + 14"},
      {"columns of backward are one off", backward, "/ 32 * 16 + 15", "/ 32 * 16 + 14"},
      {"forward takes the first tile's values for all", forward, "first + place", "place"},
      {"backward takes the first tile's values for all", backward, "first_row + place", "place"}};
  for (const Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK_FALSE(is_right(fault, spec, kHeads, {}));
  }
}
