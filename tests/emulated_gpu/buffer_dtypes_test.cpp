#include "tests/support/buffer_dtypes.hpp"

using namespace tilewright;

TEST_CASE("emulated GPU: numbers of each dtype are read as they lie") {
  check_reads_each_dtype(Device::parse("cuda"));
}
