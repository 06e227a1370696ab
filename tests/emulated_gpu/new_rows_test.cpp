// kv_new on the emulated GPU: the bits of an append and a call without it.
#include "tests/support/new_rows.hpp"

namespace tilewright {
using namespace new_rows;

TEST_CASE("new rows on a GPU: the bits of append and a paged call", "[every-kind]") {
  const Device gpu = Device::parse("cuda");
  check_against_append(append_spec(f16, f16), gpu, 16, TableForm::rows);
  check_against_append(append_spec(f32, f32), gpu, 3, TableForm::flat_with_ends);
}

}  // namespace tilewright
