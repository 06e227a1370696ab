#pragma once

#include <memory>

#include "c/error.hpp"
#include "c/log_sink.hpp"
#include "c/pool.hpp"
#include "tilewright.hpp"

// What the C ABI's opaque handles hold.

struct tw_attention {
  // In this order: the attention ends before what it uses.
  std::unique_ptr<tilewright::capi::LogSink> log;    // null: no log
  std::unique_ptr<tilewright::capi::LentPool> pool;  // null: the library's own threads
  std::unique_ptr<tilewright::Attention> attention;
};

struct tw_bindings {
  tilewright::Bindings bindings;
};

struct tw_mask {
  tilewright::BlockMask mask;
};

struct tw_plan {
  tilewright::Plan plan;
};

struct tw_communicator {
  std::shared_ptr<tilewright::Communicator> communicator;
};

struct tw_context_parallel {
  // In this order, as above.
  std::unique_ptr<tilewright::capi::LogSink> log;
  std::unique_ptr<tilewright::capi::LentPool> pool;
  tilewright::Device device = tilewright::Device::cpu();
  std::unique_ptr<tilewright::ContextParallel> context;
};

struct tw_context_plan {
  tilewright::ContextPlan plan;
};

namespace tilewright::capi {

/// @throws Error with code usage where it is null; so do the others
inline const Attention& of(const tw_attention* handle) {
  return *required(handle, "attention").attention;
}

/// Null: no buffers, and every scalar at its default.
inline const Bindings& of(const tw_bindings* handle) {
  static const Bindings& none = *new Bindings;
  return handle ? handle->bindings : none;
}

}  // namespace tilewright::capi
