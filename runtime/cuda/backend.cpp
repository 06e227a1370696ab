#include "runtime/cuda/backend.hpp"

#include <algorithm>
#include <future>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/cuda/mask_builder.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "runtime/cuda/tile_lists.hpp"

namespace tilewright::cuda {
namespace {

// On a thread of its own, or where there is none to be had, when the result is asked for.
constexpr std::launch kInBackground = std::launch::async | std::launch::deferred;

// Places of the binaries in kernels_needed().
constexpr std::size_t kAligned = 0;
constexpr std::size_t kUnaligned = 1;
constexpr std::size_t kMask = 2;

std::vector<KernelId> kernels_needed(const Spec& spec) {
  const std::string name = forward_kernel_name(spec);
  std::vector<KernelId> ids = {{name}, {name + "_unaligned"}};
  if (!spec.mask_mod.empty()) ids.push_back({"mask_exact"});
  return ids;
}

// Heads whose tiles run side by side: as many as keep their K and V in half of the L2 cache.
int heads_in_group(const Spec& spec, const Shape& shape, const DeviceFacts& gpu) {
  const auto element = static_cast<std::int64_t>(size_of(spec.key_value_dtype()));
  const std::int64_t bytes_per_head =
      shape.kv_len * (spec.head_dim + spec.value_head_dim()) * element;
  const std::int64_t ratio = shape.num_q_heads / shape.num_kv_heads;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, gpu.l2_bytes / 2 / bytes_per_head);
  return static_cast<int>(std::min(kv_heads * ratio, shape.batch * shape.num_q_heads));
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(const Spec& spec, const AttentionOptions& options)
      : spec_(spec), ordinal_(options.device.index()), driver_(find_driver()) {
    require_room(spec);
    const DeviceFacts gpu = device_facts(driver_, ordinal_);
    const Nvrtc& nvrtc = Nvrtc::get();
    require_driver_for_nvrtc(driver_.version(), nvrtc.major(), nvrtc.minor());
    target_.emplace(target_for(gpu, nvrtc.architectures()));
    // Declared first, so that it is joined whatever the context does.
    std::future<std::vector<KernelBinary>> binaries = std::async(kInBackground, [&] {
      return build_kernels(spec, *target_, kernels_needed(spec), options.kernels);
    });
    const ContextScope scope(driver_, ordinal_);
    modules_ = std::make_unique<Modules>(driver_, binaries.get());
    modules_->in(scope);
  }

  const Target& target() const override { return *target_; }

  std::vector<KernelBuild> builds() const override {
    std::vector<KernelBuild> builds;
    for (const KernelBinary& binary : modules_->binaries()) builds.push_back(binary.build);
    return builds;
  }

  void prepare() const override {
    const ContextScope scope(driver_, ordinal_);
    modules_->in(scope);
  }

  void check(const Bindings& bindings) const override { require_strides(spec_, bindings); }

  BlockMask block_mask(MaskFingerprint fingerprint, const Shape& shape, const Bindings& bindings,
                       tilewright::Stream stream) const override {
    const ContextScope scope(driver_, ordinal_);
    const ContextKernels& kernels = modules_->in(scope);
    return build_block_mask(
        driver_, scope,
        {kernels.kernel(kMask, 0), kernels.kernel(kMask, 1), kernels.kernel(kMask, 2)},
        std::move(fingerprint), shape, bindings.cuda_arguments(), static_cast<Stream>(stream));
  }

  void forward(const ForwardCall& call, const BlockMask* mask,
               const Bindings& bindings) const override {
    const ContextScope scope(driver_, ordinal_);
    const ContextKernels& kernels = modules_->in(scope);
    const Kernel& kernel = kernels.kernel(is_aligned(spec_, call) ? kAligned : kUnaligned);
    abi::cuda::ForwardArguments arguments = forward_arguments(call, kernels.gpu());
    std::int64_t q_tiles = (call.shape.q_len + kernel.launch.q_tile - 1) / kernel.launch.q_tile;
    if (mask) {
      q_tiles = mask->q_blocks() * (mask->block()[0] / kernel.launch.q_tile);
      arguments.mask = mask_arguments(*mask, lists_of(*mask, scope));
    }
    arguments.q_tiles = static_cast<int>(q_tiles);
    launch(kernel, q_tiles * call.shape.batch * call.shape.num_q_heads, arguments, call,
           bindings.cuda_arguments());
  }

 private:
  // NVRTC is opened while the driver starts: each takes tens of milliseconds.
  static const Driver& find_driver() {
    const std::future<void> opened = std::async(kInBackground, [] {
      try {
        Nvrtc::get();
      } catch (const Error&) {
        // Whoever needs it gets the error again.
      }
    });
    return Driver::get();
  }

  abi::cuda::ForwardArguments forward_arguments(const ForwardCall& call,
                                                const DeviceFacts& gpu) const {
    return {.q = tensor_argument(call.q),
            .k = tensor_argument(call.k),
            .v = tensor_argument(call.v),
            .out = tensor_argument(call.out),
            .lse = call.lse,
            .mask = {},
            .scaling = abi::cuda::scaling(static_cast<float>(call.scale), !spec_.score_mod.empty()),
            .q_tiles = 0,
            .heads_in_group = heads_in_group(spec_, call.shape, gpu)};
  }

  // A mask made from lists, or in another context, is copied to this one at its first use.
  const TileListMemory& lists_of(const BlockMask& mask, const ContextScope& scope) const {
    return static_cast<const TileListMemory&>(mask.on_device(scope.id(), [&] {
      auto lists = std::make_shared<TileListMemory>(driver_, scope, mask.rows(), nullptr);
      lists->reserve_indices(scope, {mask.partial_tiles(), mask.full_tiles()}, nullptr);
      lists->upload(mask.lists(), mask.rows_by_cost(), mask.q_blocks());
      return lists;
    }));
  }

  void launch(const Kernel& kernel, std::int64_t blocks, abi::cuda::ForwardArguments& arguments,
              const ForwardCall& call, const BindingArguments& bindings) const {
    if (blocks > std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::tensor,
                  fmt::format("the call has {} tiles of q, more than a launch takes", blocks),
                  "split the batch");
    }
    SnippetParameter snippet(bindings, call.shape);
    void* parameters[] = {&arguments, snippet.data()};
    driver_.check(driver_.functions().launch(kernel.function, static_cast<unsigned>(blocks), 1, 1,
                                             static_cast<unsigned>(kernel.launch.threads), 1, 1,
                                             static_cast<unsigned>(kernel.launch.shared_bytes),
                                             static_cast<Stream>(call.stream), parameters, nullptr),
                  "launching forward");
  }

  Spec spec_;
  int ordinal_;
  const Driver& driver_;
  std::optional<Target> target_;
  std::unique_ptr<Modules> modules_;
};

}  // namespace

std::string why_not_available() {
  static const std::string reason = [] {
    std::string problem;
    const Driver* driver = Driver::find(&problem);
    if (!driver) return problem;
    try {
      Nvrtc::get();
      device_facts(*driver, 0);
      return std::string();
    } catch (const Error& error) {
      return error.message();
    }
  }();
  return reason;
}

Target target_for(const DeviceFacts& gpu, const std::vector<int>& architectures) {
  const auto compiles = [&](int sm) {
    return std::find(architectures.begin(), architectures.end(), sm) != architectures.end();
  };
  const std::vector<std::string>& names = Target::all_names();
  const auto has_name = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (compiles(gpu.compute_capability) && has_name(gpu.target()))
    return Target::parse(gpu.target());
  // A cubin also runs on later GPUs of its generation, if it uses nothing that is particular.
  for (int sm = gpu.compute_capability; sm / 10 == gpu.compute_capability / 10; --sm) {
    const std::string name = fmt::format("sm_{}", sm);
    if (compiles(sm) && has_name(name)) return Target::parse(name);
  }
  throw Error(ErrorCode::compiler,
              fmt::format("{} is newer than what this NVRTC compiles for", gpu.describe()),
              "install a newer NVRTC (pip install -U nvidia-cuda-nvrtc) or name one in "
              "TILEWRIGHT_NVRTC");
}

void require_driver_for_nvrtc(int driver_version, int nvrtc_major, int nvrtc_minor) {
  if (driver_version / 1000 >= nvrtc_major) return;
  throw Error(
      ErrorCode::device,
      fmt::format("the NVIDIA driver is for CUDA {}.{}, and cannot load what NVRTC {}.{} "
                  "compiles",
                  driver_version / 1000, driver_version % 1000 / 10, nvrtc_major, nvrtc_minor),
      fmt::format("update the driver, or name an NVRTC of CUDA {} in TILEWRIGHT_NVRTC",
                  driver_version / 1000));
}

std::unique_ptr<Backend> make_backend(const Spec& spec, const AttentionOptions& options) {
  return std::make_unique<CudaBackend>(spec, options);
}

}  // namespace tilewright::cuda
