#pragma once

#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/backward/plan_writer.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/hopper_backward_columns.hpp"

// What planners have in common, however they find the tiles of rows that a block's columns meet.

namespace tw_kernel {

class PlannerBase {
 public:
  __forceinline__ PlannerBase(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                              const Shared& shared)
      : arguments_(arguments), call_(call), writer_(shared) {}

 protected:
  // Query heads that share a head of columns.
  __forceinline__ int heads_of_group() const { return call_.num_q_heads / call_.num_kv_heads; }

  // After the last tile.
  __forceinline__ void put_end() { writer_.put({KvTile::none()}); }

  const HopperBackwardArguments& arguments_;
  const SnippetArguments& call_;
  PlanWriter writer_;
};

}  // namespace tw_kernel
