#include "runtime/api/tensor.hpp"

#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

ErrorCode code_of(DType dtype, const std::vector<std::int64_t>& shape) {
  try {
    Tensor::zeros(dtype, shape);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

}  // namespace

TEST_CASE("tensor: a contiguous view is row-major") {
  const TensorView view = TensorView::contiguous(static_cast<void*>(nullptr), f16, {2, 8, 127, 64});
  CHECK(view.rank == 4);
  CHECK(view.strides[0] == 8 * 127 * 64);
  CHECK(view.strides[2] == 64);
  CHECK(view.strides[3] == 1);
  CHECK(view.numel() == 2 * 8 * 127 * 64);
  CHECK(view.bytes() == 2 * view.numel());
  CHECK(view.is_contiguous());
  CHECK(view.describe() == "f16 [2, 8, 127, 64]");
}

TEST_CASE("tensor: strides of extents 1 do not matter to contiguity, others do") {
  TensorView view = TensorView::contiguous(static_cast<void*>(nullptr), f32, {2, 1, 3});
  view.strides[1] = 99;
  CHECK(view.is_contiguous());
  view.strides[2] = 2;
  CHECK_FALSE(view.is_contiguous());
  view.strides[2] = 1;
  view.strides[0] = 0;
  CHECK_FALSE(view.is_contiguous());
  view.shape[2] = 0;
  CHECK(view.is_contiguous());
}

TEST_CASE("tensor: rank 0 is one element") {
  const Tensor scalar = Tensor::zeros(i64, {});
  CHECK(scalar.numel() == 1);
  CHECK(scalar.bytes() == 8);
  CHECK(scalar.describe() == "i64 []");
}

TEST_CASE("tensor: zeros is zero and aligned to 64 bytes") {
  for (std::int64_t n : {1, 63, 64, 65, 1000, 1 << 20}) {
    const Tensor tensor = Tensor::zeros(u8, {n});
    REQUIRE(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
    const auto* bytes = static_cast<const unsigned char*>(tensor.data());
    REQUIRE(std::accumulate(bytes, bytes + n, 0) == 0);
  }
}

TEST_CASE("tensor: sizes beyond 64 bits, negative extents and rank 6 are refused") {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK(code_of(f32, {huge / 2}) == ErrorCode::tensor);
  CHECK(code_of(u8, {std::int64_t{1} << 32, std::int64_t{1} << 31}) == ErrorCode::tensor);
  CHECK(code_of(f32, {2, -1}) == ErrorCode::tensor);
  CHECK(code_of(f32, {0, huge, huge}) == ErrorCode::tensor);
  CHECK(code_of(f32, {1, 1, 1, 1, 1, 1}) == ErrorCode::tensor);
  REQUIRE_THROWS_WITH(Tensor::zeros(f32, {2, -1}), ContainsSubstring("f32 [2, -1]"));
}

// The sanitizers end the process instead of returning null.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST_CASE("tensor: memory that the system does not have is an error of code memory") {
  CHECK(code_of(u8, {std::numeric_limits<std::int64_t>::max() - 4096}) == ErrorCode::memory);
  CHECK(code_of(u8, {std::numeric_limits<std::int64_t>::max()}) == ErrorCode::memory);
}

#endif

TEST_CASE("tensor: a copy gathers strided and broadcast elements") {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0f);
  TensorView transposed = TensorView::contiguous(values.data(), f32, {4, 3});
  transposed.strides = {1, 4};
  const Tensor copy = Tensor::copy_of(transposed);
  const auto* copied = static_cast<const float*>(copy.data());
  CHECK(std::vector<float>(copied, copied + 12) ==
        std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});

  TensorView broadcast = TensorView::contiguous(values.data(), f32, {2, 3});
  broadcast.strides = {0, 1};
  const Tensor repeated = Tensor::copy_of(broadcast);
  const auto* rows = static_cast<const float*>(repeated.data());
  CHECK(std::vector<float>(rows, rows + 6) == std::vector<float>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("tensor: what makes a view unreadable is said, and its description is safe") {
  std::vector<float> values(12);
  const TensorView good = TensorView::contiguous(values.data(), f32, {4, 3});
  CHECK(good.fault().empty());
  const auto fault_of = [&](auto change) {
    TensorView view = good;
    change(view);
    CHECK_FALSE(view.describe().empty());
    if (!view.fault().empty()) CHECK_THROWS_AS(Tensor::copy_of(view), Error);
    return view.fault();
  };
  const std::int64_t far = std::int64_t{1} << 60;
  CHECK_THAT(fault_of([](TensorView& v) { v.rank = -1; }), ContainsSubstring("has rank -1"));
  CHECK_THAT(fault_of([](TensorView& v) { v.rank = 6; }), ContainsSubstring("has rank 6"));
  CHECK_THAT(fault_of([](TensorView& v) { v.dtype = static_cast<DType>(99); }),
             ContainsSubstring("dtype 99"));
  CHECK_THAT(fault_of([](TensorView& v) { v.shape[1] = -3; }), ContainsSubstring("extent -3"));
  CHECK(fault_of([](TensorView& v) { v.data = nullptr; }) == "has no data");
  CHECK(fault_of([](TensorView& v) {
          v.data = nullptr;
          v.shape[0] = 0;
        }).empty());
  CHECK_THAT(fault_of([](TensorView& v) { v.data = static_cast<char*>(v.data) + 2; }),
             ContainsSubstring("multiple of its element's size"));
  CHECK_THAT(fault_of([&](TensorView& v) {
               v.shape = {far, far};
               v.strides = {0, 0};
             }),
             ContainsSubstring("more bytes than 64 bits can count"));
  CHECK_THAT(fault_of([&](TensorView& v) { v.strides[0] = -far; }),
             ContainsSubstring("in dimension 0, further than 64 bits can count"));
}

TEST_CASE("tensor: a tensor that was moved from is empty") {
  Tensor first = Tensor::zeros(f32, {3});
  const void* memory = first.data();
  const Tensor second = std::move(first);
  CHECK(second.data() == memory);
  CHECK(first.data() == nullptr);
  CHECK(first.numel() == 0);
}

TEST_CASE("tensor: shapes are compared by rank and extents alone") {
  const Tensor a = Tensor::zeros(f32, {2, 3});
  const Tensor b = Tensor::zeros(i64, {2, 3});
  const Tensor c = Tensor::zeros(f32, {2, 3, 1});
  CHECK(a.view().has_shape_of(b));
  CHECK_FALSE(a.view().has_shape_of(c));
}
