#pragma once

#include <string_view>
#include <vector>

#include "../../generator/render/kernel_source.hpp"
#include "../../generator/snippet/spec_facts.hpp"
#include "../api/attention.hpp"

namespace tilewright::cuda {

/// The entry point of forward and decode binaries.
inline constexpr std::string_view kForwardEntry = "tilewright_forward";

/// The kernels that an Attention has, by their variants. A launch finds its kernel by variant and
/// entry point in ContextKernels.
struct KernelSet {
  KernelSet(const SpecFacts& facts, const AttentionOptions& options);

  KernelVariant forward;   ///< what calls with aligned tensors launch
  KernelVariant split;     ///< twin of `forward`, where `splits` and the target has it
  KernelVariant resident;  ///< twin of `forward`, where `keeps_kv` and the target has it
  KernelVariant decode;    ///< likewise, where `decodes`
  KernelVariant weights;   ///< likewise, where the spec's outputs name weights
  KernelVariant backward;  ///< likewise, where the spec has gradients
  KernelVariant deterministic_backward;  ///< twin of `backward`, where the target has it
  bool decodes;
  bool splits;
  bool keeps_kv;                   ///< calls of short sequences may keep k and v in shared memory
  std::vector<KernelVariant> all;  ///< what has to be built
};

inline constexpr KernelVariant kMaskLists{.role = KernelRole::mask_lists};
inline constexpr KernelVariant kMerge{.role = KernelRole::merge};
inline constexpr KernelVariant kAppend{.role = KernelRole::append};
inline constexpr KernelVariant kQuantise{.role = KernelRole::quantise};

/// The variant for tensors whose bases or strides are no multiples of 16 bytes.
KernelVariant unaligned(KernelVariant variant);

/// The variant for the tensors of a call: itself or the unaligned one.
KernelVariant variant_for(const KernelVariant& variant, bool is_aligned);

}  // namespace tilewright::cuda
