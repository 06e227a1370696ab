// Attention::append of specs with k_scale and v_scale on a CPU.
#include "tests/support/scaled_rows.hpp"

namespace tilewright {
using namespace scaled_rows;

TEST_CASE("append: new rows are divided by their scales, rounded and clamped") {
  const auto check = [](DType dtype, DType kv_dtype, bool by_column, std::int64_t page_size,
                        TableForm form) {
    const Spec spec = scaled_spec(dtype, kv_dtype, by_column);
    check_scaled_append(Attention(spec, {.device = Device::cpu(), .append = true}), page_size,
                        form);
  };
  check(f16, f8e4m3, false, 16, TableForm::rows);
  check(bf16, f8e5m2, false, 3, TableForm::flat_with_ends);
  check(f32, i8, true, 140, TableForm::none);
  check(f16, f16, true, 17, TableForm::rows);
}

}  // namespace tilewright
