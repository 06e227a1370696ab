#include "verify/guarded_tensor.hpp"

#include <array>
#include <cmath>
#include <cstdint>

#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

constexpr std::array<std::int64_t, 3> kShape = {2, 3, 5};

}  // namespace

TEST_CASE("guarded tensor: elements and guards are NaN at first, in every floating dtype") {
  for (const DType dtype : {f32, f16, bf16}) {
    const GuardedTensor tensor(dtype, kShape, {.row_padding = 3, .offset = 1});
    CHECK_FALSE(tensor.damage());
    for (const std::int64_t index : {-1, 0, 4, 5, 7, 100}) {
      CHECK(std::isnan(read_element(tensor.view().data, dtype, index)));
    }
  }
}

TEST_CASE("guarded tensor: writing the elements is no damage, writing anything else is") {
  GuardedTensor tensor(f16, kShape, {.row_padding = 3});
  const TensorView& view = tensor.view();
  CHECK(view.strides[1] == 8);
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t i = 0; i < 5; ++i) write_element(view.data, f16, row * 8 + i, 1);
  }
  CHECK_FALSE(tensor.damage());
  write_element(view.data, f16, 5, 1);
  write_element(view.data, f16, 6, std::nan(""));  // NaN, but not the guard's
  write_element(view.data, f16, -1, 1);
  write_element(view.data, f16, 5 * 8 + 5, 1);
  CHECK(tensor.damage() ==
        "1 elements before its start, 2 between its rows and 1 after its end were overwritten");
}

TEST_CASE("guarded tensor: the offset moves the start off its 64-byte boundary") {
  const GuardedTensor aligned(bf16, kShape);
  const GuardedTensor moved(bf16, kShape, {.offset = 3});
  CHECK(reinterpret_cast<std::uintptr_t>(aligned.view().data) % 64 == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(moved.view().data) % 64 == 6);
}

TEST_CASE("guarded tensor: a copy holds the elements of any strides") {
  Tensor source = Tensor::zeros(i32, {6});
  for (std::int64_t i = 0; i < 6; ++i) write_element(source.data(), i32, i, double(i));
  TensorView transposed = source.view();
  transposed.rank = 2;
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  const GuardedTensor copy = GuardedTensor::copy_of(transposed, {.row_padding = 1});
  CHECK_FALSE(copy.damage());
  CHECK(read_element(copy.view().data, i32, 0) == 0);
  CHECK(read_element(copy.view().data, i32, 1) == 3);
  CHECK(read_element(copy.view().data, i32, 3) == 1);
  CHECK(read_element(copy.view().data, i32, 7) == 5);
}
