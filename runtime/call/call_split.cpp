#include "runtime/call/call_split.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "runtime/call/few_rows.hpp"
#include "runtime/call/split_parts.hpp"
#include "templates/abi/plan.hpp"

namespace tilewright {
namespace {

SplitLaunch launch_of(const SpecFacts& facts, const Target& target, std::int64_t multiprocessors) {
  const Spec& spec = facts.spec;
  KernelVariant kernel = forward_kernel(spec, target);
  if (!has_split_kernel(facts, target, kernel)) return {};
  kernel.split = true;
  const Tactic tactic = choose_tactic(facts, target, kernel);
  SplitLaunch launch = {.multiprocessors = multiprocessors,
                        .q_tile = tactic.hopper()->q_tile,
                        .kv_tile = tactic.hopper()->kv_tile,
                        .value_dim = spec.value_head_dim()};
  launch.work_side = spec.is_packed() ? plan_work_side(facts, target)
                                      : dense_work_side(spec, kernel, launch.q_tile);
  return launch;
}

QTiles q_tiles_of(const SpecFacts& facts, const Target& target, const SplitLaunch& launch,
                  const Shape& shape) {
  if (!facts.spec.is_packed()) return dense_q_tiles(launch, shape);
  const PackedShape packed = {.batch = shape.batch,
                              .num_q_heads = shape.num_q_heads,
                              .num_kv_heads = shape.num_kv_heads,
                              .total_q = shape.batch * shape.q_len};
  validate(packed);
  const std::int64_t side = plan_row_side(facts, target);
  const std::int64_t rows =
      abi::tile_map_rows(packed.total_q, packed.batch, static_cast<int>(side), false);
  return packed_q_tiles(launch, packed, side, rows);
}

}  // namespace

std::string CallSplit::q_tiles_text() const {
  return (may_have_fewer ? "at most " : "") + counted(q_tiles, "q tile");
}

CallSplit split_of_call(const Spec& spec, const Target& target, std::int64_t multiprocessors,
                        const Shape& shape) {
  const SpecFacts facts(spec);
  CallSplit split = {.multiprocessors = multiprocessors, .may_have_fewer = spec.is_packed()};
  const SplitLaunch launch = launch_of(facts, target, multiprocessors);
  if (launch.q_tile == 0) {
    split.why_not = fmt::format("{} has no kernel of this spec that splits q tiles", target.name());
    return split;
  }
  if (are_decoded(spec, shape)) {
    split.why_not = "the call has so few rows that the kernel for decoding serves it";
    return split;
  }
  const QTiles q_tiles = q_tiles_of(facts, target, launch, shape);
  split.q_tiles = q_tiles.most;
  split.parts = split_parts(launch, q_tiles, shape.kv_len);
  if (split.parts > 1) return split;
  split.why_not = !has_room_for_parts(launch, q_tiles, 2)
                      ? fmt::format("it has {}, enough for {}", split.q_tiles_text(),
                                    counted(multiprocessors, "multiprocessor"))
                      : fmt::format(
                            "splits of {} would gain less than an eighth of the "
                            "time of {} on {}",
                            counted(shape.kv_len, "column"), split.q_tiles_text(),
                            counted(multiprocessors, "multiprocessor"));
  return split;
}

}  // namespace tilewright
