#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "c/gradients.hpp"
#include "c/handles.hpp"
#include "c/inputs.hpp"
#include "c/options.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"
#include "c/transport.hpp"

namespace tilewright::capi {
namespace {

const ContextParallel& context_of(const tw_context_parallel* handle) {
  return *required(handle, "context").context;
}

const ContextPlan& context_plan_of(const tw_context_plan* handle) {
  return required(handle, "plan").plan;
}

Sharding sharding_of(std::int32_t sharding) {
  if (sharding == TW_SHARDING_AUTOMATIC) return Sharding::automatic;
  if (sharding == TW_SHARDING_CONTIGUOUS) return Sharding::contiguous;
  if (sharding == TW_SHARDING_ZIGZAG) return Sharding::zigzag;
  throw Error(
      ErrorCode::usage, "sharding is " + std::to_string(sharding),
      "give TW_SHARDING_AUTOMATIC (0), TW_SHARDING_CONTIGUOUS (1) or TW_SHARDING_ZIGZAG (2)");
}

std::vector<std::int64_t> lengths_of(const std::int64_t* lengths, int ranks) {
  if (!lengths) return {};
  return {lengths, lengths + ranks};
}

ContextPlanOptions context_plan_options(const tw_context_plan_options& options, int ranks) {
  require_zero(options.reserved, "tw_context_plan_options");
  return {.sharding = sharding_of(options.sharding),
          .q_lengths = lengths_of(options.q_lengths, ranks),
          .kv_lengths = lengths_of(options.kv_lengths, ranks),
          .stream = options.stream};
}

// The plan decides the rest of a call.
template <typename Call>
ContextCallOptions context_options(const Call& call) {
  if (call.mask || call.plan || call.q_offset != 0 || call.kv_offset != 0) {
    throw Error(ErrorCode::usage,
                "a call of context parallel was given mask, plan, q_offset or kv_offset",
                "leave them 0: the context's plan has the masks, and its shape the offsets");
  }
  return common_options<ContextCallOptions>(call);
}

void context_forward(const tw_context_parallel& handle, const ContextPlan& plan,
                     const tw_call& call) {
  require_zero(call.reserved, "tw_call");
  handle.context->forward(tensors_of(call, handle.device), plan, of(call.bindings),
                          context_options(call));
}

void context_backward(const tw_context_parallel& handle, const ContextPlan& plan,
                      const tw_backward_call& call) {
  ContextCallOptions options = context_options(call);
  options.deterministic = call.deterministic != 0;
  handle.context->backward(tensors_of(call, handle.device), plan, of(call.bindings),
                           gradients_of(call, handle.device), options);
}

std::vector<std::int64_t> numbers_of(const std::int64_t* numbers, std::int64_t count) {
  if (!numbers) return {};
  return {numbers, numbers + count};
}

SharedSequences sequences_of(const tw_shared_sequences* given) {
  const Sized whole(&required(given, "whole"), "tw_shared_sequences");
  if (whole->batch < 0 || whole->batch > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::tensor, "batch is " + std::to_string(whole->batch),
                "give the number of sequences");
  }
  required(whole->q_begin, "q_begin");
  return {.num_q_heads = whole->num_q_heads,
          .num_kv_heads = whole->num_kv_heads,
          .q_begin = numbers_of(whole->q_begin, whole->batch + 1),
          .kv_begin = numbers_of(whole->kv_begin, whole->batch + 1),
          .q_offset = numbers_of(whole->q_offset, whole->batch),
          .kv_offset = numbers_of(whole->kv_offset, whole->batch)};
}

tw_shard c_shard(const Shard& shard) {
  return {shard.q_begin, shard.q_len, shard.kv_begin, shard.kv_len};
}

void list_shards(const ContextPlan& plan, tw_shard* to, std::size_t& count) {
  const std::vector<Shard> shards = plan.shards();
  const std::size_t room = count;
  count = shards.size();
  if (!to) return;
  if (room < count) {
    throw Error(ErrorCode::usage,
                "there is room for " + std::to_string(room) + " shards, and the rank has " +
                    std::to_string(count),
                "ask for their number first, with NULL for shards");
  }
  std::transform(shards.begin(), shards.end(), to, c_shard);
}

tw_context_plan_info context_info(const ContextParallel& context, const ContextPlan& plan) {
  tw_context_plan_info info = {};
  info.sharding = plan.sharding() == Sharding::zigzag ? TW_SHARDING_ZIGZAG : TW_SHARDING_CONTIGUOUS;
  for (const Shard& shard : plan.shards()) {
    if (info.shard_count < 2) info.shards[info.shard_count] = c_shard(shard);
    ++info.shard_count;
  }
  info.q_rows = plan.q_rows();
  info.kv_rows = plan.kv_rows();
  info.workspace_bytes = context.workspace_size(plan);
  if (!context.spec().gradients.empty()) {
    info.backward_workspace_bytes = context.workspace_size(plan, Pass::backward);
    info.deterministic_workspace_bytes = context.workspace_size(plan, Pass::backward, true);
  }
  const ContextTraffic traffic = plan.traffic();
  info.bytes_sent = traffic.bytes_sent;
  info.bytes_received = traffic.bytes_received;
  info.backward_bytes_sent = traffic.backward_bytes_sent;
  info.backward_bytes_received = traffic.backward_bytes_received;
  info.bytes_of_full_ring = traffic.bytes_of_full_ring;
  return info;
}

}  // namespace
}  // namespace tilewright::capi

using namespace tilewright;
using namespace tilewright::capi;

extern "C" {

tw_status tw_communicator_from_nccl(void* nccl_comm, const char* device, int64_t timeout_ms,
                                    tw_communicator** communicator, tw_error** error) {
  return guarded(communicator, error, [&] {
    if (!nccl_comm) refuse_null("nccl_comm");
    NcclOptions options;
    if (timeout_ms > 0) options.timeout = std::chrono::milliseconds(timeout_ms);
    return new tw_communicator{
        nccl_communicator(nccl_comm, Device::parse(&required(device, "device")), options)};
  });
}

tw_status tw_communicator_from_transport(const tw_transport* transport,
                                         tw_communicator** communicator, tw_error** error) {
  return guarded(communicator, error, [&] {
    const Sized given(&required(transport, "transport"), "tw_transport");
    return new tw_communicator{std::make_shared<Transport>(*given)};
  });
}

void tw_communicator_destroy(tw_communicator* communicator) {
  delete communicator;
}

tw_status tw_context_parallel_create(const char* spec_json, const tw_communicator* communicator,
                                     const tw_options* options, tw_context_parallel** context,
                                     tw_error** error) {
  return guarded(context, error, [&] {
    required(spec_json, "spec_json");
    required(communicator, "communicator");
    const Sized given(options, "tw_options");
    auto made = std::make_unique<tw_context_parallel>();
    AttentionOptions own = attention_options(*given, made->log, made->pool);
    made->device = own.device;
    made->context = std::make_unique<ContextParallel>(spec_from_json(spec_json),
                                                      communicator->communicator, std::move(own));
    return made.release();
  });
}

void tw_context_parallel_destroy(tw_context_parallel* context) {
  delete context;
}

tw_status tw_context_parallel_bind(const tw_context_parallel* context, const tw_shape* whole,
                                   const tw_buffer* buffers, size_t buffer_count,
                                   const tw_scalar* scalars, size_t scalar_count,
                                   tw_bindings** bindings, tw_error** error) {
  return guarded(bindings, error, [&] {
    const ContextParallel& on = context_of(context);
    return new tw_bindings{on.bind(
        shape_of(whole), inputs_of(context->device, buffers, buffer_count, scalars, scalar_count))};
  });
}

tw_status tw_context_plan_create(const tw_context_parallel* context, const tw_shape* whole,
                                 const tw_bindings* bindings,
                                 const tw_context_plan_options* options, tw_context_plan** plan,
                                 tw_error** error) {
  return guarded(plan, error, [&] {
    const ContextParallel& on = context_of(context);
    const Sized given(options, "tw_context_plan_options");
    return new tw_context_plan{on.plan(shape_of(whole), of(bindings),
                                       context_plan_options(*given, on.communicator().size()))};
  });
}

tw_status tw_context_parallel_bind_packed(const tw_context_parallel* context,
                                          const tw_shared_sequences* whole,
                                          const tw_buffer* buffers, size_t buffer_count,
                                          const tw_scalar* scalars, size_t scalar_count,
                                          tw_bindings** bindings, tw_error** error) {
  return guarded(bindings, error, [&] {
    const ContextParallel& on = context_of(context);
    return new tw_bindings{
        on.bind(sequences_of(whole),
                inputs_of(context->device, buffers, buffer_count, scalars, scalar_count))};
  });
}

tw_status tw_context_plan_create_packed(const tw_context_parallel* context,
                                        const tw_shared_sequences* whole,
                                        const tw_bindings* bindings,
                                        const tw_context_plan_options* options,
                                        tw_context_plan** plan, tw_error** error) {
  return guarded(plan, error, [&] {
    const ContextParallel& on = context_of(context);
    const Sized given(options, "tw_context_plan_options");
    return new tw_context_plan{on.plan(sequences_of(whole), of(bindings),
                                       context_plan_options(*given, on.communicator().size()))};
  });
}

tw_status tw_context_plan_shards(const tw_context_plan* plan, tw_shard* shards, size_t* count,
                                 tw_error** error) {
  return guarded(error, [&] {
    if (!count) refuse_null("count");
    list_shards(context_plan_of(plan), shards, *count);
  });
}

tw_status tw_context_plan_describe(const tw_context_parallel* context, const tw_context_plan* plan,
                                   tw_context_plan_info* info, tw_error** error) {
  return guarded(error, [&] {
    fill_sized(info, context_info(context_of(context), context_plan_of(plan)),
               "tw_context_plan_info");
  });
}

void tw_context_plan_destroy(tw_context_plan* plan) {
  delete plan;
}

tw_status tw_context_parallel_forward(const tw_context_parallel* context,
                                      const tw_context_plan* plan, const tw_call* call,
                                      tw_error** error) {
  return guarded(error, [&] {
    const Sized given(&required(call, "call"), "tw_call");
    context_forward(required(context, "context"), context_plan_of(plan), *given);
  });
}

tw_status tw_context_parallel_backward(const tw_context_parallel* context,
                                       const tw_context_plan* plan, const tw_backward_call* call,
                                       tw_error** error) {
  return guarded(error, [&] {
    const Sized given(&required(call, "call"), "tw_backward_call");
    context_backward(required(context, "context"), context_plan_of(plan), *given);
  });
}

tw_status tw_context_parallel_wait(const tw_context_parallel* context, void* stream,
                                   tw_error** error) {
  return guarded(error, [&] { context_of(context).wait(stream); });
}

}  // extern "C"
