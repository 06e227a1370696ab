#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Attention made(Layout layout, bool lse = true) {
  Spec spec = {.dtype = f16, .head_dim = 32, .v_head_dim = 16, .layout = layout};
  spec.out_dtype = f32;
  spec.outputs.lse = lse;
  return Attention(spec, {.device = Device::cpu()});
}

std::vector<std::int64_t> extents(const TensorView& view) {
  return {view.extents().begin(), view.extents().end()};
}

}  // namespace

TEST_CASE("output shapes: what a call writes, in the spec's layout and dtype") {
  const Shape shape = {.batch = 2, .num_q_heads = 6, .num_kv_heads = 3, .q_len = 5, .kv_len = 7};
  const OutputShapes bhsd = made(Layout::bhsd).output_shapes(shape);
  CHECK(bhsd.out.describe() == "f32 [2, 6, 5, 16]");
  CHECK(bhsd.out.is_contiguous());
  CHECK(bhsd.out.data == nullptr);
  REQUIRE(bhsd.lse);
  CHECK(bhsd.lse->describe() == "f32 [2, 6, 5]");
  CHECK(extents(made(Layout::bshd).output_shapes(shape).out) ==
        std::vector<std::int64_t>{2, 5, 6, 16});
  CHECK_FALSE(made(Layout::bhsd, false).output_shapes(shape).lse);

  const PackedShape packed = {
      .batch = 3, .num_q_heads = 4, .num_kv_heads = 2, .total_q = 11, .total_kv = 20};
  const OutputShapes of_rows = made(Layout::packed).output_shapes(packed);
  CHECK(of_rows.out.describe() == "f32 [11, 4, 16]");
  REQUIRE(of_rows.lse);
  CHECK(of_rows.lse->describe() == "f32 [4, 11]");
}

TEST_CASE("output shapes: the other kind of shape, and wrong ones, are refused") {
  CHECK_THROWS_WITH(made(Layout::packed).output_shapes(Shape{.q_len = 4, .kv_len = 4}),
                    ContainsSubstring("give a PackedShape"));
  CHECK_THROWS_WITH(made(Layout::bhsd).output_shapes(PackedShape{.total_q = 4, .total_kv = 4}),
                    ContainsSubstring("give a Shape"));
  CHECK_THROWS_AS(made(Layout::bhsd).output_shapes(Shape{.q_len = 0, .kv_len = 4}), Error);
}
