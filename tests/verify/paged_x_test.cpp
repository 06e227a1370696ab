// Calls over pages of paged_x on a CPU, against the reference and against other pages.
#include "tests/support/x_pages.hpp"

namespace tilewright {

TEST_CASE("paged_x: calls are right, and have the bits of other pages") {
  for (const x_pages::Case& one : x_pages::cases()) {
    x_pages::check_right(one, Device::cpu());
    x_pages::check_equal_bits(one, Device::cpu());
  }
}

TEST_CASE("paged_x: pools hold the new rows that other pools hold") {
  x_pages::check_append(f16, f16, Device::cpu());
  x_pages::check_append(bf16, f8e4m3, Device::cpu());
  x_pages::check_append(f32, f32, Device::cpu());
}

TEST_CASE("paged_x: pools are made and addressed as the layout says") {
  const x_pages::Case one = x_pages::cases()[1];
  const verify::PackedInputs inputs = verify::random_packed_inputs(one.spec, one.lengths, 5);
  const Tensor k = Tensor::copy_of(inputs.inputs.k);
  CHECK(k.shape().size() == 5);
  CHECK(k.shape()[2] == 3);
  CHECK(k.shape()[4] == 8);
  CHECK(inputs.inputs.v.shape().size() == 4);
  const verify::Pool pool(k.view(), true);
  CHECK(pool.heads() == 2);
  CHECK(pool.page_size() == 16);
  CHECK(pool.width() == 24);
  CHECK(pool.at(1, 2, 1, 19) == (((1 * 2 + 1) * 3 + 2) * 16 + 2) * 8 + 3);
}

}  // namespace tilewright
