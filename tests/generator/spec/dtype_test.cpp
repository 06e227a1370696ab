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
  CHECK(size_of(f64) == 8);
  CHECK(size_of(i16) == 2);
  CHECK(size_of(u16) == 2);
  CHECK(size_of(u32) == 4);
  for (DType dtype : {f8e4m3, f8e5m2, i8}) {
    CHECK(size_of(dtype) == 1);
    CHECK(is_quantised(dtype));
    CHECK(is_floating(dtype) == (dtype != i8));
    CHECK(is_float8(dtype) == (dtype != i8));
  }
  CHECK_FALSE(is_quantised(u8));
  CHECK_FALSE(is_float8(f16));
  CHECK(is_floating(bf16));
  CHECK(is_floating(f64));
  for (DType dtype : kAllDTypes) CHECK(is_wide_integer(dtype) == (dtype == i64 || dtype == u32));
  CHECK_FALSE(is_floating(i32));
  CHECK_FALSE(is_floating(boolean));
}
