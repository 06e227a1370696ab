#include "runtime/attention.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "generator/snippet.hpp"
#include "runtime/cpu/kernels.hpp"

namespace tilewright {
namespace {

std::string forward_kernel_name(const Spec& spec) {
  std::string name = spec.mask_mod.empty() ? "forward" : "forward_masked";
  return spec.outputs.lse ? name + "_lse" : name;
}

std::vector<KernelId> kernels_needed(const Spec& spec) {
  std::vector<KernelId> ids = {{forward_kernel_name(spec)}};
  if (!spec.mask_mod.empty()) ids.push_back({"mask_exact"});
  return ids;
}

// The mask_mod of a spec with what decides the lists' batch and heads.
struct MaskUse {
  MaskSource source;
  bool per_batch = false;
  bool per_head = false;
};

MaskUse mask_use(const Spec& spec) {
  const Snippet snippet = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  MaskUse use{.source = {.mask_mod = spec.mask_mod, .block = spec.block, .scalars = {}},
              .per_batch = snippet.mentions("b"),
              .per_head = snippet.mentions("h") || snippet.mentions("h_kv")};
  size_t index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    if (snippet.mentions(name)) use.source.scalars.push_back({name, index});
    ++index;
  }
  return use;
}

bool needs_no_inputs(const Spec& spec) {
  return spec.buffers.empty() &&
         std::all_of(spec.scalars.begin(), spec.scalars.end(),
                     [](const auto& scalar) { return scalar.second.default_value.has_value(); });
}

// What the standard library throws for want of memory, in the library's own words.
template <typename Body>
auto with_memory_errors(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::memory, "out of memory",
                "use smaller shapes or a machine with more memory");
  }
}

}  // namespace

class Attention::Implementation {
 public:
  Implementation(Spec spec, const AttentionOptions& options)
      : spec_(std::move(spec)),
        target_(Target::host_cpu()),
        threads_(options.threads ? *options.threads : ThreadPool::shared()) {
    validate(spec_);
    if (needs_no_inputs(spec_)) default_bindings_.emplace(spec_, SnippetInputs{});
    const std::vector<KernelId> ids = kernels_needed(spec_);
    const auto kernels = load_kernels(spec_, target_, ids, options.kernels);
    forward_.emplace(kernels[0]);
    if (spec_.mask_mod.empty()) return;
    mask_.emplace(kernels[1]);
    mask_use_ = mask_use(spec_);
  }

  const Spec& spec() const { return spec_; }
  const Target& target() const { return target_; }

  std::vector<KernelBuild> builds() const {
    std::vector<KernelBuild> builds = {forward_->build()};
    if (mask_) builds.push_back(mask_->build());
    return builds;
  }

  BlockMask block_mask(const Shape& shape, const Bindings& given) const {
    if (!mask_) {
      throw Error(ErrorCode::usage, "the spec has no mask_mod, so it has no block mask",
                  "call forward without one");
    }
    tilewright::validate(shape);
    const Bindings& bindings = bindings_or_default(given);
    bindings.check(spec_, shape);
    MaskFingerprint fingerprint{.source = mask_use_.source, .shape = shape, .scalars = {}};
    if (!mask_use_.per_batch) fingerprint.shape.batch = 1;
    if (!mask_use_.per_head) fingerprint.shape.num_q_heads = fingerprint.shape.num_kv_heads = 1;
    for (const MaskSource::Scalar& scalar : mask_use_.source.scalars) {
      fingerprint.scalars.push_back(bindings.scalars()[scalar.index]);
    }
    return mask_->run(std::move(fingerprint), shape, bindings.cpu_arguments(), threads_);
  }

  void forward(const ForwardTensors& tensors, const BlockMask* mask, const Bindings& given,
               const ForwardOptions& options) const {
    const ForwardCall call = resolve_call(spec_, tensors, options);
    const Bindings& bindings = bindings_or_default(given);
    bindings.check(spec_, call.shape);
    if (!mask && mask_) {
      throw Error(ErrorCode::block_mask, "the spec has a mask_mod, and the call has no block mask",
                  "make one with attention.block_mask(shape, bindings) and pass it to forward");
    }
    if (!mask) return forward_->run(call, bindings.cpu_arguments(), threads_);
    if (!mask_) {
      throw Error(ErrorCode::block_mask, "the call has a block mask, and the spec has no mask_mod",
                  "give the spec the mask_mod that the mask was built from");
    }
    require_fit(*mask, mask_use_.source, call.shape, bindings);
    forward_->run(call, *mask, bindings.cpu_arguments(), threads_);
  }

 private:
  const Bindings& bindings_or_default(const Bindings& given) const {
    return given.is_default() && default_bindings_ ? *default_bindings_ : given;
  }

  Spec spec_;
  Target target_;
  ThreadPool& threads_;
  std::optional<Bindings> default_bindings_;  // where the spec needs nothing from the caller
  std::optional<cpu::ForwardKernel> forward_;
  std::optional<cpu::MaskKernel> mask_;
  MaskUse mask_use_;
};

Attention::Attention(Spec spec, AttentionOptions options)
    : implementation_(with_memory_errors(
          [&] { return std::make_unique<Implementation>(std::move(spec), options); })) {}

Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;
Attention::~Attention() = default;

const Spec& Attention::spec() const {
  return implementation_->spec();
}
const Target& Attention::target() const {
  return implementation_->target();
}
std::vector<KernelBuild> Attention::builds() const {
  return implementation_->builds();
}

Bindings Attention::bind(const SnippetInputs& inputs) const {
  return with_memory_errors([&] { return Bindings(spec(), inputs); });
}

BlockMask Attention::block_mask(const Shape& shape, const Bindings& bindings) const {
  return with_memory_errors([&] { return implementation_->block_mask(shape, bindings); });
}

void Attention::forward(const ForwardTensors& tensors, const Bindings& bindings,
                        const ForwardOptions& options) const {
  implementation_->forward(tensors, nullptr, bindings, options);
}

void Attention::forward(const ForwardTensors& tensors, const BlockMask& mask,
                        const Bindings& bindings, const ForwardOptions& options) const {
  implementation_->forward(tensors, &mask, bindings, options);
}

std::int64_t Attention::workspace_size(const Shape&) const {
  return 0;
}

}  // namespace tilewright
