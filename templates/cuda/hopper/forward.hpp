#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/hopper/consumer.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/planner.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "kernel/configuration.hpp"
#include "kernel/kv_boxes.hpp"
#include "kernel/prepared_tiles.hpp"
#include "kernel/producer.hpp"
#include "kernel/tile_runs.hpp"

// The roles of a block of threads.

namespace tw_kernel {

TW_INLINE void forward(const ForwardArguments& arguments, const TensorMaps& maps,
                       const SnippetArguments& call, unsigned char* shared_memory) {
  const Shared shared = {shared_address(shared_memory),
                         reinterpret_cast<Control*>(shared_memory + kControlOffset)};
  if (threadIdx.x == 0) make_pipeline(shared);
  __syncthreads();  // the barriers are there
  // From one lane, so that the compiler knows it to be the same for the whole warp.
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x / kWarpgroup), 0);
  if (warpgroup == 0) {
    decrease_registers<kProducerRegisters>();
    if (Loader::takes_part()) Producer(arguments, maps, call, shared).run();
    else if (Planner::takes_part()) Planner(arguments, call, shared).run();  // of another warp
    else if (Preparer::takes_part()) Preparer(shared).run();                 // of others
  } else if (kPreparingGroups > 0 && warpgroup > kConsumers) {
    decrease_registers<kPreparerRegisters>();
    Preparer(shared).run();
  } else {
    increase_registers<kConsumerRegisters>();
    Consumer<Runs>(arguments, maps, call, shared, warpgroup - 1).run();
  }
}

}  // namespace tw_kernel
