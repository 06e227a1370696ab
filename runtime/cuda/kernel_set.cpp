#include "runtime/cuda/kernel_set.hpp"

#include "generator/tactic/decode_tactic.hpp"

namespace tilewright::cuda {
namespace {

Target any_gpu() {
  return Target::parse("sm_80");
}

// Packed kernels have a tile map instead of a block mask.
KernelVariant decode_kernel(const Spec& spec, bool takes_block_mask) {
  return {.masked = !spec.is_packed() && (takes_block_mask || !spec.mask_mod.empty()),
          .rows = KernelRows::decode,
          .lse = spec.outputs.lse};
}

// Whether calls may split q tiles: packed ones have room in their plans.
bool may_split(const Spec& spec, const AttentionOptions& options) {
  return !options.masks_only && (spec.is_packed() || options.decode);
}

KernelVariant split_twin(KernelVariant variant) {
  variant.split = true;
  return variant;
}

KernelVariant resident_twin(KernelVariant variant) {
  variant.resident = true;
  return variant;
}

KernelVariant deterministic_twin(KernelVariant variant) {
  variant.deterministic = true;
  return variant;
}

bool has_decode(const Spec& spec, const AttentionOptions& options) {
  return has_decode_kernel(spec) && !options.masks_only && (spec.is_packed() || options.decode);
}

}  // namespace

KernelSet::KernelSet(const SpecFacts& facts, const AttentionOptions& options)
    : forward(forward_kernel(facts.spec, any_gpu(), options.takes_block_mask)),
      split(split_twin(forward)),
      resident(resident_twin(forward)),
      decode(decode_kernel(facts.spec, options.takes_block_mask)),
      weights(weights_kernel(facts.spec, options.takes_block_mask)),
      backward(backward_kernel(facts.spec, options.takes_block_mask)),
      deterministic_backward(deterministic_twin(backward)),
      decodes(has_decode(facts.spec, options)),
      splits(may_split(facts.spec, options)),
      keeps_kv(facts.spec.is_packed() && !options.masks_only) {
  const Spec& spec = facts.spec;
  const auto add = [this](const KernelVariant& variant) {
    all.insert(all.end(), {variant, unaligned(variant)});
  };
  if (!options.masks_only) add(forward);
  if (decodes) add(decode);
  if (splits) all.push_back(split);
  if (keeps_kv) all.push_back(resident);
  if (spec.is_packed()) {
    all.push_back(mask_kernel(facts));
  } else if (!spec.mask_mod.empty()) {
    all.insert(all.end(), {kMaskLists, mask_kernel(facts)});
  }
  if (!options.masks_only && spec.outputs.weights) add(weights);
  if (!options.masks_only && !spec.gradients.empty()) {
    add(backward);
    all.push_back(deterministic_backward);
  }
  if (options.merge) all.push_back(kMerge);
  if (options.append) all.push_back(kAppend);
  if (options.quantise) all.push_back(kQuantise);
}

KernelVariant unaligned(KernelVariant variant) {
  variant.aligned = false;
  return variant;
}

KernelVariant variant_for(const KernelVariant& variant, bool is_aligned) {
  return is_aligned ? variant : unaligned(variant);
}

}  // namespace tilewright::cuda
