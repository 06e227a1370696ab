#include "runtime/cuda/modules.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/activity.hpp"
#include "base/error.hpp"

namespace tilewright::cuda {
namespace {

// Results of cuda.h that say that a cubin and a GPU or driver do not fit.
constexpr int kInvalidImage = 200;
constexpr int kNoBinaryForGpu = 209;
constexpr int kInvalidPtx = 218;
constexpr int kUnsupportedPtxVersion = 222;

bool is_misfit(int result) {
  return result == kInvalidImage || result == kNoBinaryForGpu || result == kInvalidPtx ||
         result == kUnsupportedPtxVersion;
}

[[noreturn]] void refuse_cubin(const Driver& driver, const DeviceFacts& gpu,
                               const KernelBinary& binary, int result) {
  const std::string target = binary.source.target.name();
  const bool other_gpu = gpu.target() != target;
  throw Error(
      {.code = ErrorCode::device,
       .message = fmt::format("{} cannot run a kernel for {}: {}", gpu.describe(), target,
                              driver.describe(result)),
       .place = std::nullopt,
       .notes = {fmt::format("the driver is for CUDA {}.{}", driver.version() / 1000,
                             driver.version() % 1000 / 10)},
       .hint = other_gpu ? fmt::format("make an Attention with device cuda:{} for it", gpu.ordinal)
                         : "update the driver, or name an older NVRTC in TILEWRIGHT_NVRTC"});
}

}  // namespace

ContextKernels::ContextKernels(const Driver& driver, const ContextScope& scope,
                               const std::vector<KernelBinary>& binaries)
    : driver_(driver),
      context_(scope.context()),
      context_id_(scope.id()),
      gpu_(device_facts(driver, scope.ordinal())) {
  try {
    for (const KernelBinary& binary : binaries) load(binary);
  } catch (...) {
    unload();
    throw;
  }
}

ContextKernels::~ContextKernels() {
  unload();
}

void ContextKernels::load(const KernelBinary& binary) {
  const DriverFunctions& f = driver_.functions();
  const Activity activity("loads into the GPU's context", binary.source.variant.name());
  Module module = nullptr;
  const int result = f.module_load(&module, binary.entry->payload.data());
  if (is_misfit(result)) refuse_cubin(driver_, gpu_, binary, result);
  driver_.check(result, "loading a kernel");
  modules_.push_back(module);
  const std::vector<std::string>& entries = binary.source.entry_points;
  const std::vector<std::string>& names = binary.build.names;
  if (names.size() != entries.size()) {
    throw Error(ErrorCode::internal,
                fmt::format("the binary of kernel {} has {} names for {} entry points",
                            binary.source.variant.name(), names.size(), entries.size()));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& entry = entries[i];
    Kernel kernel{.variant = binary.source.variant,
                  .entry = entry,
                  .function = nullptr,
                  .launch = binary.source.launch};
    kernel.launch.shared_bytes = dynamic_shared_bytes(binary.source, entry);
    driver_.check(f.module_function(&kernel.function, module, names[i].c_str()),
                  "finding a kernel");
    if (kernel.launch.shared_bytes > gpu_.max_shared_bytes) {
      throw Error(ErrorCode::device,
                  fmt::format("{} has {} bytes of shared memory for a block of threads, and kernel "
                              "{} needs {}",
                              gpu_.describe(), gpu_.max_shared_bytes, binary.source.variant.name(),
                              kernel.launch.shared_bytes),
                  "force a smaller tactic in the spec");
    }
    if (kernel.launch.shared_bytes > 0) {
      driver_.check(
          f.function_set_attribute(kernel.function,
                                   static_cast<int>(FunctionAttribute::max_dynamic_shared_bytes),
                                   static_cast<int>(kernel.launch.shared_bytes)),
          "asking for shared memory");
    }
    // Drivers load lazily, which would make the first launch wait, or break a graph's capture.
    if (f.function_load) driver_.check(f.function_load(kernel.function), "loading a kernel");
    kernels_.push_back(kernel);
  }
}

const Kernel* ContextKernels::find(const KernelVariant& variant, std::string_view entry) const {
  for (const Kernel& kernel : kernels_) {
    if (kernel.variant == variant && kernel.entry == entry) return &kernel;
  }
  return nullptr;
}

const Kernel& ContextKernels::kernel(const KernelVariant& variant, std::string_view entry) const {
  if (const Kernel* kernel = find(variant, entry)) return *kernel;
  throw Error(ErrorCode::internal, fmt::format("kernel {} was not loaded", variant.name()));
}

void ContextKernels::unload() noexcept {
  const ReleaseScope scope(driver_, context_, context_id_);
  if (!scope) return;
  for (const Module module : modules_) driver_.functions().module_unload(module);
}

Modules::Modules(const Driver& driver, std::vector<KernelBinary> binaries)
    : driver_(driver), binaries_(std::move(binaries)) {}

Modules::~Modules() {
  for (Node* node = first_.load(); node;) delete std::exchange(node, node->next);
}

const Modules::Node* Modules::find(const ContextScope& scope) const {
  for (const Node* node = first_.load(std::memory_order_acquire); node; node = node->next) {
    if (node->kernels.is_of(scope)) return node;
  }
  return nullptr;
}

const ContextKernels& Modules::in(const ContextScope& scope) const {
  if (const Node* node = find(scope)) return node->kernels;
  const std::lock_guard lock(mutex_);
  if (const Node* node = find(scope)) return node->kernels;
  auto node = std::make_unique<Node>(driver_, scope, binaries_, first_.load());
  first_.store(node.get(), std::memory_order_release);
  return node.release()->kernels;
}

}  // namespace tilewright::cuda
