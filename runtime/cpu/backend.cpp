#include "runtime/cpu/backend.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/compile/cpu_identity.hpp"
#include "runtime/cpu/append_kernel.hpp"
#include "runtime/cpu/backward.hpp"
#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/mask_kernel.hpp"
#include "runtime/cpu/merge_kernel.hpp"
#include "runtime/cpu/packed_backward.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/cpu/quantise_kernel.hpp"

namespace tilewright::cpu {
namespace {

std::vector<KernelVariant> kernels_needed(const SpecFacts& facts, const AttentionOptions& options) {
  const Spec& spec = facts.spec;
  std::vector<KernelVariant> ids;
  if (!spec.mask_mod.empty()) ids.push_back(mask_kernel(facts));
  if (!options.masks_only)
    ids.push_back(forward_kernel(spec, Target::host_cpu(), options.takes_block_mask));
  if (options.merge) ids.push_back({.role = KernelRole::merge});
  if (options.append) ids.push_back({.role = KernelRole::append});
  if (options.quantise) ids.push_back({.role = KernelRole::quantise});
  if (!options.masks_only && spec.outputs.weights)
    ids.push_back(weights_kernel(spec, options.takes_block_mask));
  if (!options.masks_only && !spec.gradients.empty())
    ids.push_back(backward_kernel(spec, options.takes_block_mask));
  return ids;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const SpecFacts& facts, const AttentionOptions& options)
      : spec_(facts.spec),
        target_(
            bundled_target(facts, cpu_targets(), kernels_needed(facts, options), options.kernels)
                .value_or(Target::host_cpu())),
        threads_(options.threads ? *options.threads
                                 : static_cast<Executor&>(ThreadPool::shared())) {
    const auto kernels =
        load_kernels(facts, target_, kernels_needed(facts, options), options.kernels);
    for (const std::shared_ptr<const LoadedKernel>& kernel : kernels) {
      take(kernel);
    }
  }

  const Target& target() const override { return target_; }

  std::vector<KernelBuild> builds() const override {
    std::vector<KernelBuild> builds;
    if (forward_) builds.push_back(forward_->build());
    if (weights_) builds.push_back(weights_->build());
    if (backward_) builds.push_back(backward_->build());
    if (packed_backward_) builds.push_back(packed_backward_->build());
    if (mask_) builds.push_back(mask_->build());
    if (merge_) builds.push_back(merge_->build());
    if (append_) builds.push_back(append_->build());
    if (quantise_) builds.push_back(quantise_->build());
    return builds;
  }

  BlockMask block_mask(MaskFingerprint fingerprint, const Shape& shape, const Bindings& bindings,
                       const BlockMaskOptions& options) const override {
    BlockMask mask = mask_->run(std::move(fingerprint), shape, bindings.cpu_arguments(), threads_);
    if (options.transposed) mask.transposed();
    return mask;
  }

  void rebuild(BlockMask& mask, const Shape& shape, const Bindings& bindings,
               Stream) const override {
    const bool has_transposed = mask.has_transposed();
    mask.take_tiles(mask_->run(mask.fingerprint(), shape, bindings.cpu_arguments(), threads_));
    if (has_transposed) mask.transposed();
  }

  std::int64_t plan_row_side() const override { return spec_.block[0]; }

  void build(PlanState& plan, const Bindings& bindings, Stream) const override {
    plan.read = [memory = plan.memory](void* to, std::size_t offset, std::size_t bytes) {
      std::memcpy(to, memory + offset, bytes);
    };
    plan.tiles_evaluated =
        build_plan(plan, mask_ ? &*mask_ : nullptr, bindings.cpu_arguments(), threads_);
  }

  void forward(const ForwardCall& call, const PlanState& plan,
               const Bindings& bindings) const override {
    forward_->run(spec_, call, plan, bindings.cpu_arguments(), threads_);
  }

  void forward(const ForwardCall& call, const BlockMask* mask,
               const Bindings& bindings) const override {
    run(*forward_, call, mask, bindings);
    if (weights_) run(*weights_, call, mask, bindings);
  }

  void append(const abi::AppendArguments& call, const PlanState* plan, const Bindings& bindings,
              Stream) const override {
    append_->run(call, plan, bindings.cpu_arguments(), threads_);
  }

  void quantise(const QuantiseCall& call, const PlanState* plan, const Bindings& bindings,
                Stream) const override {
    quantise_->run(call, plan, bindings.cpu_arguments(), threads_);
  }

  void merge(const abi::MergeArguments& call, Stream) const override {
    merge_->run(call, threads_);
  }

  void backward(const BackwardCall& call, const BlockMask* mask,
                const Bindings& bindings) const override {
    backward_->run(call, mask, spec_, bindings, threads_);
  }

  std::int64_t column_side() const override {
    return packed_backward_ ? packed_backward_->column_side() : 0;
  }

  void backward(const BackwardCall& call, const PlanState& plan,
                const Bindings& bindings) const override {
    packed_backward_->run(spec_, call, plan, bindings.cpu_arguments(), threads_);
  }

 private:
  void run(const ForwardKernel& kernel, const ForwardCall& call, const BlockMask* mask,
           const Bindings& bindings) const {
    if (mask) return kernel.run(call, *mask, bindings.cpu_arguments(), threads_);
    kernel.run(call, bindings.cpu_arguments(), threads_);
  }

  void take(const std::shared_ptr<const LoadedKernel>& kernel) {
    switch (kernel->source.variant.role) {
      case KernelRole::forward:
        forward_.emplace(kernel, "tilewright_forward");
        break;
      case KernelRole::weights:
        weights_.emplace(kernel, "tilewright_weights");
        break;
      case KernelRole::backward:
        spec_.is_packed() ? void(packed_backward_.emplace(kernel))
                          : void(backward_.emplace(kernel));
        break;
      case KernelRole::merge:
        merge_.emplace(kernel);
        break;
      case KernelRole::append:
        append_.emplace(kernel);
        break;
      case KernelRole::quantise:
        quantise_.emplace(kernel);
        break;
      default:
        mask_.emplace(kernel);
    }
  }

  Spec spec_;
  Target target_;
  Executor& threads_;
  std::optional<ForwardKernel> forward_;
  std::optional<ForwardKernel> weights_;
  std::optional<BackwardKernel> backward_;               // of dense calls
  std::optional<PackedBackwardKernel> packed_backward_;  // of packed ones
  std::optional<MaskKernel> mask_;
  std::optional<MergeKernel> merge_;
  std::optional<AppendKernel> append_;
  std::optional<QuantiseKernel> quantise_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Spec& spec, const AttentionOptions& options) {
  return std::make_unique<CpuBackend>(SpecFacts(spec), options);
}

}  // namespace tilewright::cpu
