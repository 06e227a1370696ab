#include "runtime/api/decode_gain.hpp"

#include <optional>

#include "runtime/call/call_split.hpp"
#include "runtime/call/few_rows.hpp"
#include "runtime/call/split_parts.hpp"
#include "runtime/cuda/driver.hpp"

namespace tilewright {
namespace {

std::optional<cuda::DeviceFacts> hopper_of(const Device& device) {
  if (device.kind() == Device::Kind::cpu) return {};
  const cuda::DeviceFacts gpu = cuda::device_facts(cuda::Driver::get(), device.index());
  if (gpu.compute_capability != 90) return {};
  return gpu;
}

}  // namespace

bool gains_from_decode(const Spec& spec, const Shape& shape, const Device& device) {
  if (spec.is_packed()) return false;
  if (has_few_rows(spec, shape)) return true;
  const std::optional<cuda::DeviceFacts> gpu = hopper_of(device);
  return gpu &&
         split_of_call(spec, Target::parse(gpu->target()), gpu->multiprocessors, shape).parts > 1;
}

bool has_few_q_tiles(const Shape& shape, const Device& device) {
  const std::optional<cuda::DeviceFacts> gpu = hopper_of(device);
  if (!gpu) return false;
  const SplitLaunch launch = {.multiprocessors = gpu->multiprocessors,
                              .q_tile = 128,
                              .kv_tile = 128,
                              .value_dim = 128,
                              .work_side = 128};
  return split_parts(launch, dense_q_tiles(launch, shape), shape.kv_len) > 1;
}

}  // namespace tilewright
