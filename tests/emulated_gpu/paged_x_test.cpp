// Calls over pages of paged_x on the emulated GPU: the portable kernel on tensor cores and in
// float32.
#include "tests/support/x_pages.hpp"

namespace tilewright {

TEST_CASE("paged_x on a GPU: calls are right, and have the bits of other pages", "[every-kind]") {
  for (const x_pages::Case& one : x_pages::cases()) {
    x_pages::check_right(one, Device::parse("cuda"));
    x_pages::check_equal_bits(one, Device::parse("cuda"));
  }
}

TEST_CASE("paged_x on a GPU: pools hold the new rows that other pools hold") {
  x_pages::check_append(f16, f16, Device::parse("cuda"));
  x_pages::check_append(bf16, f8e4m3, Device::parse("cuda"));
  x_pages::check_append(f32, f32, Device::parse("cuda"));
}

}  // namespace tilewright
