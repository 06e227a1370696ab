#pragma once

#include "cuda/hopper/backward/dq_sums.hpp"
#include "cuda/hopper/backward/gather.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/loader.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_consumer.hpp"
#include "kernel/hopper_backward_planner.hpp"
#include "kernel/hopper_backward_turns.hpp"

// The roles of a block of threads.

namespace tw_kernel {

TW_INLINE void produce(const HopperBackwardArguments& arguments, const BackwardMaps& maps,
                       const SnippetArguments& call, const Shared& shared, const OwnColumns& own, int warp) {
  if (warp == 0) {
    Loader(arguments, maps, call, shared, own).run();
  } else if (warp <= kConsumers) {
    if constexpr (kIsWide) {
      keep_turns(arguments, call, shared, own, warp - 1);
    } else {
      DqAdder(arguments, call, shared, warp - 1).run(own);
    }
  } else if (Planner::kTakesWarp || lane() == 0) {
    Planner(arguments, call, shared).run(own);
  }
}

TW_INLINE void backward(const HopperBackwardArguments& arguments, const BackwardMaps& maps,
                        const SnippetArguments& call, const GradientSums& sums,
                        unsigned char* shared_memory) {
  const Shared shared = {shared_address(shared_memory),
                         reinterpret_cast<Control*>(shared_memory + kControlOffset)};
  const int number = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) make_pipeline(shared);
  share_own_columns(arguments, call, number, shared.control->columns);
  __syncthreads();  // the barriers are there
  const OwnColumns own = find_own_columns(arguments, call, number, shared.control->columns);
  if (!own.exists()) return;
  // From one lane, so that the compiler knows it to be the same for the whole warp.
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  if (warp < kWarpgroup / 32) {
    decrease_registers<kProducerRegisters>();
    produce(arguments, maps, call, shared, own, warp);
  } else {
    increase_registers<kConsumerRegisters>();
    consume(arguments, maps, call, sums, shared, own, warp / 4 - 1);
  }
}

}  // namespace tw_kernel
