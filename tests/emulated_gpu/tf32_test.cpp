// Products in TF32 on the emulated GPU, whose tensor cores drop the bits that a real one drops.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright {
using namespace verify;

namespace {

Spec tf32_spec(std::int64_t head_dim) {
  return {.dtype = f32,
          .head_dim = head_dim,
          .mask_mod = "q_idx >= kv_idx",
          .outputs = {.lse = true},
          .f32_products = F32Products::tf32};
}

constexpr Shape kShape{
    .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 150, .kv_len = 213};

Report checked(const Spec& spec, const Problem& problem,
               std::shared_ptr<const jinja::Loader> templates = {}) {
  CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.attention.kernels.templates = std::move(templates);
  return check(spec, problem, options);
}

void require_right(const Spec& spec, const Problem& problem) {
  CAPTURE(spec.head_dim, spec.value_head_dim());
  const Report report = checked(spec, problem);
  std::string reasons;
  for (const std::string& reason : report.reasons()) reasons += reason + "\n";
  INFO(reasons);
  REQUIRE(report.ok);
}

}  // namespace

TEST_CASE("tf32 on a GPU: dense calls of all widths", "[every-kind]") {
  for (const std::int64_t head_dim : {16, 40, 64, 128, 200, 256}) {
    const Spec spec = tf32_spec(head_dim);
    require_right(spec, random_inputs(spec, kShape, 5).problem());
  }
  Spec mixed = tf32_spec(72);
  mixed.v_head_dim = 136;
  mixed.kv_dtype = bf16;
  mixed.score_mod = "score + 0.1f * (kv_idx - q_idx)";
  require_right(mixed, random_inputs(mixed, kShape, 5).problem());
}

TEST_CASE("tf32 on a GPU: packed and paged calls", "[every-kind]") {
  for (const Layout kv_layout : {Layout::packed, Layout::paged}) {
    Spec spec = tf32_spec(64);
    spec.layout = Layout::packed;
    spec.kv_layout = kv_layout;
    const PackedLengths lengths{
        .num_q_heads = 4,
        .num_kv_heads = 2,
        .sequences = {{1, 133}, {70, 200}, {0, 5}, {33, 33}},
        .pages = {.page_size = kv_layout == Layout::paged ? std::int64_t{16} : 0}};
    require_right(spec, random_packed_inputs(spec, lengths, 5).problem());
  }
}

TEST_CASE("tf32 on a GPU: tensors at any address", "[every-kind]") {
  const Spec spec = tf32_spec(64);
  CheckOptions options;
  options.attention.device = Device::parse("cuda");
  const Checker checker(spec, options);
  CHECK(
      checker.check(random_inputs(spec, kShape, 5).problem(), {.row_padding = 1, .offset = 1}).ok);
}

TEST_CASE("tf32 on a GPU: planted faults are seen") {
  const std::string products = "cuda/portable/tf32.hpp", loads = "cuda/portable/load_tf32.hpp";
  const std::vector<test::Fault> faults = {
      {"Q is cut off where it is to be rounded", loads, "round_tile<kQTile, kHeadDim>(tile)", ""},
      {"K is cut off", loads, "round_tile<kKvTile, kHeadDim>(tile)", ""},
      {"V is cut off", loads, "round_tile<kKvTile, kValueDim>(tile)", ""},
      {"P is cut off", products,
       "a[0] = to_tf32(upper[2 * step]);\n      a[1] = to_tf32(lower[2 * step]);\n"
       "      a[2] = to_tf32(upper[2 * step + 1]);\n      a[3] = to_tf32(lower[2 * step + 1]);",
       "for (int k = 0; k < 4; ++k) a[k] = __float_as_uint((k % 2 ? lower : upper)[2 * step + k / "
       "2]);"},
      {"rows of V in the order of a plain product", products, "lane() % 4 * 2 + next",
       "lane() % 4 + 4 * next"},
      {"columns of V of another chunk", products, "lane() / 16)", "lane() / 8 % 2)"},
      {"a step's rows of V", products, "step * 8 * FloatValueTile::kRowBytes",
       "step * 4 * FloatValueTile::kRowBytes"}};
  // Without a mask each row has many keys. What is cut off is too small: where all values are above
  // 0, a sum does not take that back.
  Spec spec = tf32_spec(64);
  spec.mask_mod.clear();
  Inputs inputs = random_inputs(spec, kShape, 5);
  auto* const v = static_cast<float*>(inputs.v.data());
  std::transform(v, v + inputs.v.numel(), v, [](float x) { return 1 + std::fabs(x) / 8; });
  REQUIRE(checked(spec, inputs.problem()).ok);
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    CHECK_FALSE(checked(spec, inputs.problem(), std::make_shared<test::FaultyTemplates>(fault)).ok);
  }
}

}  // namespace tilewright
