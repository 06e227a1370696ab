// Attention::quantise on the emulated GPU: what it stores.
#include "tests/support/quantised.hpp"

namespace tilewright {
using namespace quantised;

TEST_CASE("quantise on a GPU: dense tensors, packed ones and pools") {
  const Device device = Device::parse("cuda");
  check_dense(device);
  check_strides(device);
  check_shape(device);
  check_packed(device);
  check_paged(device, 16, TableForm::rows, false);
  check_paged(device, 3, TableForm::flat_with_ends, true);
}

}  // namespace tilewright
