// Plans on the emulated GPU whose spec promises sorted buffers.
#include "tests/support/promised_order.hpp"

#include <cstdint>

#include "runtime/call/plan_map.hpp"

namespace tilewright {
using namespace packed_calls;

TEST_CASE("promised order on a GPU: a plan finds each element that breaks it") {
  const Device device = Device::parse("cuda");
  check_finds_unsorted<std::int32_t>(i32, device);
  check_finds_unsorted<std::int64_t>(DType::i64, device);
  check_finds_unsorted<std::uint8_t>(boolean, device);
  check_finds_unsorted<std::int8_t>(DType::i8, device);
  check_finds_unsorted<std::int16_t>(i16, device);
  check_finds_unsorted<std::uint16_t>(u16, device);
  check_finds_unsorted<std::uint32_t>(u32, device);
}

TEST_CASE("promised order on a GPU: a plan names what it clamped first") {
  check_counts_beside_lengths(Device::parse("cuda"));
}

TEST_CASE("promised order on a GPU: a plan's tiles are those of the CPU's", "[every-kind]") {
  Tensor documents = Tensor::zeros(i32, {400});
  for (int i = 0; i < 400; ++i) static_cast<int*>(documents.data())[i] = (i + 20) / 45;
  Spec spec = promised_spec(i32, {NamedDim::total_kv}, "x[q_token] == x[kv_token]");
  spec.block = {16, 16};
  const PromisedPlan on_cpu(spec, documents, Device::cpu());
  const PromisedPlan on_gpu(spec, documents, Device::parse("cuda"));
  const PlanMap::Counts a = PlanMap(on_cpu.plan, spec.block).counts();
  const PlanMap::Counts b = PlanMap(on_gpu.plan, spec.block).counts();
  CHECK(a.full == b.full);
  CHECK(a.partial == b.partial);
  CHECK(b.full > 0);
}

}  // namespace tilewright
