// Attention::append on the emulated GPU: what pools hold after it.
#include "tests/support/appended_rows.hpp"

namespace tilewright {
using namespace appended_rows;

namespace {

Attention appending(DType dtype, DType kv_dtype) {
  return Attention(append_spec(dtype, kv_dtype), {.device = Device::parse("cuda"), .append = true});
}

}  // namespace

TEST_CASE("append on a GPU: pools hold the new rows, and the rest is unchanged") {
  const Attention in_f16 = appending(f16, f16), mixed = appending(f32, bf16);
  check_append(in_f16, 16, TableForm::rows);
  check_append(in_f16, 3, TableForm::flat_with_ends);
  check_append(mixed, 140, TableForm::none);
}

TEST_CASE("append on a GPU: rows of absent pages are skipped", "[every-kind]") {
  check_absent_pages(appending(f32, f32));
}

}  // namespace tilewright
