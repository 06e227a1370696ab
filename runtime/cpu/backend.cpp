#include "runtime/cpu/backend.hpp"

#include <optional>
#include <utility>

#include "runtime/cpu/kernels.hpp"

namespace tilewright::cpu {
namespace {

std::vector<KernelId> kernels_needed(const Spec& spec) {
  std::vector<KernelId> ids = {{forward_kernel_name(spec)}};
  if (!spec.mask_mod.empty()) ids.push_back({"mask_exact"});
  return ids;
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Spec& spec, const AttentionOptions& options)
      : target_(Target::host_cpu()),
        threads_(options.threads ? *options.threads : ThreadPool::shared()) {
    const auto kernels = load_kernels(spec, target_, kernels_needed(spec), options.kernels);
    forward_.emplace(kernels[0]);
    if (kernels.size() > 1) mask_.emplace(kernels[1]);
  }

  const Target& target() const override { return target_; }

  std::vector<KernelBuild> builds() const override {
    std::vector<KernelBuild> builds = {forward_->build()};
    if (mask_) builds.push_back(mask_->build());
    return builds;
  }

  BlockMask block_mask(MaskFingerprint fingerprint, const Shape& shape, const Bindings& bindings,
                       Stream) const override {
    return mask_->run(std::move(fingerprint), shape, bindings.cpu_arguments(), threads_);
  }

  void forward(const ForwardCall& call, const BlockMask* mask,
               const Bindings& bindings) const override {
    if (mask) return forward_->run(call, *mask, bindings.cpu_arguments(), threads_);
    forward_->run(call, bindings.cpu_arguments(), threads_);
  }

 private:
  Target target_;
  ThreadPool& threads_;
  std::optional<ForwardKernel> forward_;
  std::optional<MaskKernel> mask_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Spec& spec, const AttentionOptions& options) {
  return std::make_unique<CpuBackend>(spec, options);
}

}  // namespace tilewright::cpu
