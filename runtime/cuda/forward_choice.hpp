#pragma once

#include "../../templates/abi/cuda_forward.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// Which forward kernel serves a call, and how it scales scores.
struct ForwardChoice {
  const Kernel& kernel;
  abi::cuda::Scaling scaling;

  bool takes_maps() const { return kernel.launch.kv_box_rows > 0; }
};

/// Kernels that take tensor maps leave what is rare to the others: strides that the copy engine
/// refuses, and scales, factors of score_mod and rows of one key that do not suit them.
ForwardChoice choose_forward(const LaunchScope& on, const ForwardCall& call,
                             const Bindings& bindings);

/// The same kernel's twin that splits q tiles, for a choice that takes maps.
ForwardChoice split_twin(const LaunchScope& on, const ForwardChoice& choice);

/// Likewise the twin that keeps k and v of short sequences.
ForwardChoice resident_twin(const LaunchScope& on, const ForwardChoice& choice);

/// The scaling of a call whose kernel takes no tensor maps.
abi::cuda::Scaling plain_scaling(const Spec& spec, const ForwardCall& call);

}  // namespace tilewright::cuda
