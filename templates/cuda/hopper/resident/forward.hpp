#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/resident/consumer.hpp"
#include "cuda/hopper/resident/kv_producer.hpp"
#include "cuda/hopper/resident/pipeline.hpp"
#include "cuda/hopper/resident/q_producer.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "kernel/configuration.hpp"

// The roles of a block of threads in which K and V stay.

namespace tw_kernel {

// Of one thread of each warp.
TW_INLINE void bring_items(const ForwardArguments& arguments, const TensorMaps& maps, const SnippetArguments& call,
                           const Shared& shared, int warp) {
  if (warp == 0) {
    ResidentKvProducer(arguments, maps, call, shared).run();
  } else if (warp <= kConsumers) {
    ResidentQProducer(arguments, maps, call, shared, warp - 1).run();
  }
}

TW_INLINE void forward(const ForwardArguments& arguments, const TensorMaps& maps, const SnippetArguments& call,
                       unsigned char* shared_memory) {
  const Shared shared = {shared_address(shared_memory), reinterpret_cast<Control*>(shared_memory + kControlOffset)};
  if (threadIdx.x == 0) make_pipeline(shared);
  __syncthreads();  // the barriers are there
  // From one lane, so that the compiler knows it to be the same for the whole warp.
  const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 32), 0);
  const int warpgroup = warp / (kWarpgroup / 32);
  if (warpgroup == 0) {
    decrease_registers<kProducerRegisters>();
    if (lane() == 0) bring_items(arguments, maps, call, shared, warp);
  } else {
    increase_registers<kConsumerRegisters>();
    ResidentConsumer(arguments, maps, call, shared, warpgroup - 1).run();
  }
}

}  // namespace tw_kernel
