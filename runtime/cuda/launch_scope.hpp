#pragma once

#include <cstdint>

#include "arguments.hpp"
#include "kernel_set.hpp"
#include "launch.hpp"
#include "score_factors.hpp"

namespace tilewright::cuda {

/// What an Attention's launches read besides a call.
struct LaunchFacts {
  const Driver& driver;
  int ordinal;  ///< of the GPU
  const Spec& spec;
  KernelSet variants;
  ScoreFactors factors;
  std::int64_t plan_work_side = 0;  ///< rows of q of an entry of a plan's work
};

/// While it lives, a CUDA context is current in the calling thread, and the Attention's kernels are
/// loaded into it.
struct LaunchScope {
  /// @throws Error as ContextScope and ContextKernels
  LaunchScope(const LaunchFacts& of, const Modules& loaded)
      : facts(of),
        driver(of.driver),
        spec(of.spec),
        context(of.driver, of.ordinal),
        modules(loaded),
        kernels(loaded.in(context)) {}

  const LaunchFacts& facts;
  const Driver& driver;
  const Spec& spec;
  ContextScope context;
  const Modules& modules;
  const ContextKernels& kernels;  ///< of the context
};

}  // namespace tilewright::cuda
