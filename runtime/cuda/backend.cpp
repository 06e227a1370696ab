#include "runtime/cuda/backend.hpp"

#include <future>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "runtime/cuda/append.hpp"
#include "runtime/cuda/attention_backward.hpp"
#include "runtime/cuda/dense_decode.hpp"
#include "runtime/cuda/dense_forward.hpp"
#include "runtime/cuda/find_nvrtc.hpp"
#include "runtime/cuda/hopper_backward.hpp"
#include "runtime/cuda/kernel_build.hpp"
#include "runtime/cuda/mask_builder.hpp"
#include "runtime/cuda/memory_pool.hpp"
#include "runtime/cuda/merge.hpp"
#include "runtime/cuda/packed_forward.hpp"
#include "runtime/cuda/plan.hpp"
#include "runtime/cuda/quantise.hpp"
#include "runtime/cuda/split_forward.hpp"
#include "runtime/cuda/tile_plan.hpp"
#include "runtime/cuda/weights.hpp"

namespace tilewright::cuda {
namespace {

// On a separate thread; if none can be started, when the result is asked for.
constexpr std::launch kInBackground = std::launch::async | std::launch::deferred;

// NVRTC is looked for, and the worker started, in tens of milliseconds. Whoever needs it then waits
// for it, and gets the error where there is one.
std::future<void> finding_nvrtc() {
  return std::async(kInBackground, [] {
    try {
      find_nvrtc();
    } catch (const Error&) {
    }
  });
}

bool will_compile(const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  return *toolchain.jit && toolchain.bundles->empty();
}

// The calls of one Attention. Each file launches one kernel, from how it is found to its arguments.
class CudaBackend final : public Backend {
 public:
  CudaBackend(const Spec& spec, const AttentionOptions& options)
      : spec_(spec),
        spec_facts_(spec_),
        nvrtc_found_(will_compile(options.kernels) ? finding_nvrtc() : std::future<void>()),
        facts_{.driver = Driver::get(),
               .ordinal = options.device.index(),
               .spec = spec_,
               .variants = KernelSet(spec_facts_, options),
               .factors = ScoreFactors(spec_facts_)},
        has_backward_(!options.masks_only && !spec.gradients.empty()) {
    require_parameter_room(spec);
    const Driver& driver = facts_.driver;
    const DeviceFacts gpu = device_facts(driver, facts_.ordinal);
    std::future<BuiltKernels> building = std::async(kInBackground, [&] {
      return build_for_gpu(driver, gpu, spec_facts_, facts_.variants.all, options.kernels);
    });
    const ContextScope context(driver, facts_.ordinal);
    // In the primary context alone: another one may end before the background has done its work.
    if (!spec.mask_mod.empty() && context.is_primary()) {
      pool_made_ = make_memory_pool(driver, context.ordinal());
    }
    BuiltKernels built = building.get();
    target_ = built.target;
    modules_ = std::make_unique<Modules>(driver, std::move(built.binaries));
    plan_row_side_ = tilewright::plan_row_side(spec_facts_, *target_);
    facts_.plan_work_side = plan_work_side(spec_facts_, *target_);
    const LaunchScope on = scope();
    if (facts_.variants.decodes && !spec.is_packed()) {
      dense_decode_.emplace(spec_, *target_, facts_.variants.decode.masked,
                            most_blocks_of_decode(on));
    }
  }

  const Target& target() const override { return *target_; }

  std::vector<KernelBuild> builds() const override {
    std::vector<KernelBuild> builds;
    for (const KernelBinary& binary : modules_->binaries()) builds.push_back(binary.build);
    return builds;
  }

  void prepare() const override { scope(); }

  void check(const Bindings& bindings) const override { require_strides(spec_, bindings); }

  BlockMask block_mask(MaskFingerprint fingerprint, const Shape& shape, const Bindings& bindings,
                       const BlockMaskOptions& options) const override {
    return build_block_mask(scope(), std::move(fingerprint), shape, bindings, options);
  }

  void rebuild(BlockMask& mask, const Shape& shape, const Bindings& bindings,
               tilewright::Stream stream) const override {
    rebuild_block_mask(scope(), mask, shape, bindings, stream);
  }

  std::int64_t plan_row_side() const override { return plan_row_side_; }

  DecodeLaunch decode_launch() const override {
    if (!facts_.variants.decodes) return {};
    return {.blocks = static_cast<int>(most_blocks_of_decode(scope())),
            .value_dim = spec_.value_head_dim()};
  }

  SplitLaunch split_launch() const override {
    return facts_.variants.splits ? cuda::split_launch(scope()) : SplitLaunch();
  }

  ResidentLaunch resident_launch() const override {
    return facts_.variants.keeps_kv ? cuda::resident_launch(scope()) : ResidentLaunch();
  }

  void build(PlanState& plan, const Bindings& bindings, tilewright::Stream stream) const override {
    const LaunchScope on = scope();
    launch_plan(on, plan, bindings, stream);
    if (plan.serves_backward) launch_backward_plan(on, plan, stream);
  }

  void forward(const ForwardCall& call, const PlanState& plan,
               const Bindings& bindings) const override {
    launch_packed_forward(scope(), call, plan, bindings);
  }

  void forward(const ForwardCall& call, const BlockMask* mask,
               const Bindings& bindings) const override {
    const LaunchScope on = scope();
    if (dense_decode_ && dense_decode_->serves(call.shape)) {
      launch_dense_decode(on, *dense_decode_, call, mask, bindings);
    } else {
      launch_dense_forward(on, call, mask, bindings);
    }
    if (spec_.outputs.weights) launch_weights(on, call, mask, bindings);
  }

  std::int64_t forward_workspace(const Shape& shape) const override {
    if (dense_decode_ && dense_decode_->serves(shape)) return dense_decode_->workspace_bytes(shape);
    return facts_.variants.splits ? dense_split(scope(), shape).bytes : 0;
  }

  void backward(const BackwardCall& call, const BlockMask* mask,
                const Bindings& bindings) const override {
    launch_dense_backward(scope(), call, mask, bindings);
  }

  void backward(const BackwardCall& call, const PlanState& plan,
                const Bindings& bindings) const override {
    launch_packed_backward(scope(), call, plan, bindings);
  }

  std::int64_t column_side() const override {
    if (!spec_.is_packed() || !has_backward_) return 0;
    const LaunchScope on = scope();
    return on.kernels.kernel(portable_backward(on), "tilewright_backward_rows").launch.q_tile;
  }

  BackwardTileSides backward_tile_sides() const override {
    if (!spec_.is_packed() || !has_backward_) return {};
    return cuda::backward_tile_sides(scope());
  }

  std::int64_t backward_workspace(const Shape& shape, std::int64_t sequences,
                                  const Bindings* bindings, bool deterministic) const override {
    return cuda::backward_workspace(scope(), shape, sequences, bindings, deterministic);
  }

  void append(const abi::AppendArguments& call, const PlanState* plan, const Bindings& bindings,
              tilewright::Stream stream) const override {
    launch_append(scope(), call, plan, bindings, stream);
  }

  void quantise(const QuantiseCall& call, const PlanState* plan, const Bindings& bindings,
                tilewright::Stream stream) const override {
    launch_quantise(scope(), call, plan, bindings, stream);
  }

  void merge(const abi::MergeArguments& call, tilewright::Stream stream) const override {
    launch_merge(scope(), call, stream);
  }

 private:
  LaunchScope scope() const { return {facts_, *modules_}; }

  Spec spec_;
  SpecFacts spec_facts_;
  std::future<void> nvrtc_found_;  // while the driver starts
  LaunchFacts facts_;
  bool has_backward_;
  std::optional<Target> target_;
  std::optional<DenseDecode> dense_decode_;
  std::int64_t plan_row_side_ = 0;
  std::unique_ptr<Modules> modules_;
  std::future<void> pool_made_;  // while modules are loaded and the caller brings inputs
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Spec& spec, const AttentionOptions& options) {
  return std::make_unique<CudaBackend>(spec, options);
}

}  // namespace tilewright::cuda
