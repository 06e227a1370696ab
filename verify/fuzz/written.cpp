#include "verify/fuzz/written.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tilewright::verify::fuzz {
namespace {

std::array<std::int64_t, 4> out_shape(const FuzzCase& c) {
  const Shape& shape = c.shape;
  const std::int64_t width = c.spec.value_head_dim();
  return c.spec.layout == Layout::bhsd
             ? std::array{shape.batch, shape.num_q_heads, shape.q_len, width}
             : std::array{shape.batch, shape.q_len, shape.num_q_heads, width};
}

}  // namespace

Written::Written(const FuzzCase& fuzz_case)
    : out(fuzz_case.spec.output_dtype(), out_shape(fuzz_case), fuzz_case.out),
      layout(fuzz_case.spec.layout) {
  const Shape& shape = fuzz_case.shape;
  if (!fuzz_case.spec.outputs.lse) return;
  lse.emplace(DType::f32, std::array{shape.batch, shape.num_q_heads, shape.q_len});
}

AttentionValues Written::values() const {
  AttentionValues values{.out = read_values(out.view(), layout), .lse = {}};
  if (lse) values.lse = read_lse(lse->view());
  return values;
}

std::string Written::damage() const {
  if (const auto found = out.damage()) return "out was written to: " + *found;
  if (!lse) return {};
  const auto found = lse->damage();
  return found ? "lse was written to: " + *found : std::string();
}

// A double holds each number of the dtypes that are written, so equal doubles are equal bytes.
bool same_bits(const Values& a, const Values& b) {
  return std::equal(
      a.data.begin(), a.data.end(), b.data.begin(), b.data.end(), [](double x, double y) {
        const bool are_equal = std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
        return are_equal || (std::isnan(x) && std::isnan(y));
      });
}

}  // namespace tilewright::verify::fuzz
