// Buffers that the spec promises to be sorted, on the CPU.
#include "tests/support/promised_order.hpp"

#include <cstdint>

namespace tilewright {
using namespace packed_calls;

TEST_CASE("promised order: a plan finds each element that breaks it") {
  const Device device = Device::cpu();
  check_finds_unsorted<std::int32_t>(i32, device);
  check_finds_unsorted<std::int64_t>(DType::i64, device);
  check_finds_unsorted<std::uint8_t>(u8, device);
  check_finds_unsorted<std::uint8_t>(boolean, device);
  check_finds_unsorted<std::int8_t>(DType::i8, device);
  check_finds_unsorted<std::int16_t>(i16, device);
  check_finds_unsorted<std::uint16_t>(u16, device);
  check_finds_unsorted<std::uint32_t>(u32, device);
}

TEST_CASE("promised order: a plan names what it clamped first") {
  check_counts_beside_lengths(Device::cpu());
}

TEST_CASE("promised order: integers of 64 bits are compared with all bits, bools as truths") {
  constexpr std::int64_t kWide = std::int64_t{1} << 60;
  Tensor wide = Tensor::zeros(DType::i64, {400});
  auto* const numbers = static_cast<std::int64_t*>(wide.data());
  for (int i = 0; i < 400; ++i) numbers[i] = kWide + 1;
  numbers[399] = kWide;
  const PromisedPlan with_wide(
      promised_spec(DType::i64, {NamedDim::total_kv}, "x[kv_token] - x[q_token] >= 0"), wide,
      Device::cpu());
  CHECK(with_wide.plan.report().text() ==
        "x[399] is 1152921504606846976 after 1152921504606846977, but the spec promises that it is "
        "sorted");

  Tensor truths = Tensor::zeros(boolean, {400});
  static_cast<unsigned char*>(truths.data())[398] = 255;
  static_cast<unsigned char*>(truths.data())[399] = 1;
  const PromisedPlan with_truths(promised_spec(boolean, {NamedDim::total_kv}, "!x[kv_token]"),
                                 truths, Device::cpu());
  CHECK(with_truths.plan.report().count == 0);
}

TEST_CASE("promised order: a tensor of stride 0 has one row, and a row alone may fall behind it") {
  Tensor x = Tensor::zeros(i32, {400});
  static_cast<int*>(x.data())[0] = 1;
  TensorView broadcast = TensorView::contiguous(x.data(), i32, {3, 400});
  broadcast.strides[0] = 0;
  const Spec spec = promised_spec(i32, {FreeDim{}, NamedDim::total_kv}, "x(2, kv_token) == 0");
  const PromisedPlan made(spec, broadcast, Device::cpu());
  CHECK(made.plan.report().text() ==
        "x(0, 1) is 0 after 1, but the spec promises that it is sorted");
}

TEST_CASE("promised order: a plan looks at what its proofs read alone") {
  Tensor x = Tensor::zeros(i32, {400});
  static_cast<int*>(x.data())[0] = 1;
  Spec spec = promised_spec(i32, {NamedDim::total_kv}, "q_idx >= kv_idx");
  spec.score_mod = "score + x[kv_token]";
  CHECK(PromisedPlan(spec, x, Device::cpu()).plan.report().count == 0);
  spec.mask_mod = "q_idx >= kv_idx && x[kv_token] < 1";
  CHECK(PromisedPlan(spec, x, Device::cpu()).plan.report().count == 1);
  spec.buffers["x"].sorted = true;
  CHECK(PromisedPlan(spec, x, Device::cpu()).plan.report().count == 0);
}

}  // namespace tilewright
