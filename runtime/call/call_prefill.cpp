#include "runtime/call/call_prefill.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/resident_tactic.hpp"
#include "runtime/call/few_rows.hpp"
#include "runtime/call/resident_items.hpp"

namespace tilewright {
namespace {

ResidentLaunch launch_of(const SpecFacts& facts, const Target& target, KernelVariant kernel,
                         std::int64_t multiprocessors) {
  if (!has_resident_kernel(facts, target, kernel)) return {};
  kernel.resident = true;
  const Tactic tactic = choose_tactic(facts, target, kernel);
  return {.multiprocessors = multiprocessors,
          .kv_rows = tactic.hopper()->stages * tactic.hopper()->kv_tile};
}

std::string why_kept(const Shape& shape, std::int64_t heads, std::int64_t multiprocessors) {
  if (forced_resident()) return "TILEWRIGHT_RESIDENT is on";
  return fmt::format("{}, each k and v of a sequence for {}, fill {}",
                     counted(shape.batch * shape.num_q_heads / heads, "item"),
                     counted(heads, "query head"), counted(multiprocessors, "multiprocessor"));
}

std::string why_not_kept(const Shape& shape, const ResidentLaunch& launch) {
  if (shape.kv_len > launch.kv_rows) {
    return fmt::format("its sequences have {}, and shared memory holds k and v of {}",
                       counted(shape.kv_len, "column"), launch.kv_rows);
  }
  if (forced_resident()) return "TILEWRIGHT_RESIDENT is off";
  return fmt::format(
      "{} of a sequence and a query head, or fewer of more heads, would leave more than a fifth of "
      "{} idle",
      counted(shape.batch * shape.num_q_heads, "item"),
      counted(launch.multiprocessors, "multiprocessor"));
}

}  // namespace

CallPrefill prefill_of_call(const Spec& spec, const Target& target, const Shape& shape,
                            const CallSplit& split) {
  if (!target.is_cpu() && are_decoded(spec, shape)) {
    return {.why = "the call has so few rows that the kernel for decoding serves it"};
  }
  const SpecFacts facts(spec);
  KernelVariant kernel = forward_kernel(spec, target);
  if (split.parts > 1) {
    kernel.split = true;
    return {.kernel = kernel.name(), .why = "its q tiles are split"};
  }
  const ResidentLaunch launch = launch_of(facts, target, kernel, split.multiprocessors);
  if (launch.kv_rows == 0) {
    return {.kernel = kernel.name(),
            .why = fmt::format("{} has no kernel of this spec that keeps k and v in shared memory",
                               target.name())};
  }
  const std::int64_t heads = resident_heads(launch, {.batch = shape.batch,
                                                     .num_q_heads = shape.num_q_heads,
                                                     .num_kv_heads = shape.num_kv_heads,
                                                     .max_kv_len = shape.kv_len});
  if (heads == 0) return {.kernel = kernel.name(), .why = why_not_kept(shape, launch)};
  kernel.resident = true;
  return {.kernel = kernel.name(),
          .why = why_kept(shape, heads, split.multiprocessors),
          .keeps_kv = true};
}

}  // namespace tilewright
