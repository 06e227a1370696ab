#include "generator/spec/dtype.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright;

TEST_CASE("dtype: names read back") {
  for (DType dtype : kAllDTypes) CHECK(dtype_from_string(to_string(dtype)) == dtype);
  CHECK_FALSE(dtype_from_string("float"));
  CHECK_FALSE(dtype_from_string(""));
  CHECK_FALSE(dtype_from_string("F32"));
}

TEST_CASE("dtype: sizes and kinds") {
  CHECK(size_of(f32) == 4);
  CHECK(size_of(f16) == 2);
  CHECK(size_of(bf16) == 2);
  CHECK(size_of(i32) == 4);
  CHECK(size_of(i64) == 8);
  CHECK(size_of(u8) == 1);
  CHECK(size_of(boolean) == 1);
  CHECK(is_floating(bf16));
  CHECK_FALSE(is_floating(i32));
  CHECK_FALSE(is_floating(boolean));
}
