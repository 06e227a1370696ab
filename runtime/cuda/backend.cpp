#include "runtime/cuda/backend.hpp"

#include <algorithm>
#include <future>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "cache/bundles.hpp"
#include "generator/snippet/append_scales.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/decode_tactic.hpp"
#include "runtime/cuda/append.hpp"
#include "runtime/cuda/backward.hpp"
#include "runtime/cuda/dense_decode.hpp"
#include "runtime/cuda/find_nvrtc.hpp"
#include "runtime/cuda/head_groups.hpp"
#include "runtime/cuda/hopper_backward.hpp"
#include "runtime/cuda/mask_builder.hpp"
#include "runtime/cuda/memory_pool.hpp"
#include "runtime/cuda/merge.hpp"
#include "runtime/cuda/plan.hpp"
#include "runtime/cuda/quantise.hpp"
#include "runtime/cuda/score_factors.hpp"
#include "runtime/cuda/tensor_maps.hpp"
#include "runtime/cuda/tile_lists.hpp"
#include "templates/abi/cuda_max_scores.hpp"
#include "templates/abi/cuda_weights.hpp"

namespace tilewright::cuda {
namespace {

// On a separate thread; if none can be started, when the result is asked for.
constexpr std::launch kInBackground = std::launch::async | std::launch::deferred;

constexpr KernelVariant kMaskLists{.role = KernelRole::mask_lists};
constexpr std::string_view kForwardEntry = "tilewright_forward";

Target any_gpu() {
  return Target::parse("sm_80");
}

// Packed kernels have a tile map instead of a block mask.
KernelVariant decode_kernel(const Spec& spec, bool takes_block_mask) {
  return {.masked = !spec.is_packed() && (takes_block_mask || !spec.mask_mod.empty()),
          .rows = KernelRows::decode,
          .lse = spec.outputs.lse};
}

bool decodes(const Spec& spec, const AttentionOptions& options) {
  return has_decode_kernel(spec) && !options.masks_only && (spec.is_packed() || options.decode);
}

KernelVariant unaligned(KernelVariant variant) {
  variant.aligned = false;
  return variant;
}

std::vector<KernelVariant> kernels_needed(const SpecFacts& facts, const AttentionOptions& options) {
  const Spec& spec = facts.spec;
  const KernelVariant forward = forward_kernel(spec, any_gpu(), options.takes_block_mask);
  std::vector<KernelVariant> ids;
  if (!options.masks_only) ids = {forward, unaligned(forward)};
  if (decodes(spec, options)) {
    const KernelVariant decode = decode_kernel(spec, options.takes_block_mask);
    ids.insert(ids.end(), {decode, unaligned(decode)});
  }
  if (spec.is_packed()) {
    ids.push_back(mask_kernel(facts));
  } else if (!spec.mask_mod.empty()) {
    ids.insert(ids.end(), {kMaskLists, mask_kernel(facts)});
  }
  if (!options.masks_only && spec.outputs.weights) {
    const KernelVariant weights = weights_kernel(spec, options.takes_block_mask);
    ids.insert(ids.end(), {weights, unaligned(weights)});
  }
  if (!options.masks_only && !spec.gradients.empty()) {
    const KernelVariant backward = backward_kernel(spec, options.takes_block_mask);
    ids.insert(ids.end(), {backward, unaligned(backward)});
  }
  if (options.merge) ids.push_back({.role = KernelRole::merge});
  if (options.append) ids.push_back({.role = KernelRole::append});
  if (options.quantise) ids.push_back({.role = KernelRole::quantise});
  return ids;
}

// NVRTC is looked for, and the worker started, in tens of milliseconds. The caller that needs it
// waits for it, and gets the error where there is one.
std::future<void> finding_nvrtc() {
  return std::async(kInBackground, [] {
    try {
      find_nvrtc();
    } catch (const Error&) {
    }
  });
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(const Spec& spec, const AttentionOptions& options)
      : spec_(spec),
        facts_(spec_),
        factors_(facts_),
        forward_(forward_kernel(spec, any_gpu(), options.takes_block_mask)),
        backward_(backward_kernel(spec, options.takes_block_mask)),
        weights_(weights_kernel(spec, options.takes_block_mask)),
        decode_(decode_kernel(spec, options.takes_block_mask)),
        decodes_(decodes(spec, options)),
        masks_only_(options.masks_only),
        ordinal_(options.device.index()),
        nvrtc_found_(will_compile(options.kernels) ? finding_nvrtc() : std::future<void>()),
        driver_(Driver::get()) {
    require_room(spec);
    const DeviceFacts gpu = device_facts(driver_, ordinal_);
    std::future<std::vector<KernelBinary>> binaries =
        std::async(kInBackground, [&] { return build(gpu, options); });
    const ContextScope scope(driver_, ordinal_);
    // In the primary context alone: another one may end before the background has done its work.
    if (!spec.mask_mod.empty() && scope.is_primary()) {
      pool_made_ = make_memory_pool(driver_, scope.ordinal());
    }
    modules_ = std::make_unique<Modules>(driver_, binaries.get());
    plan_row_side_ = tilewright::plan_row_side(facts_, *target_);
    plan_work_side_ = tilewright::plan_work_side(facts_, *target_);
    const ContextKernels& kernels = modules_->in(scope);
    if (decodes_ && !spec.is_packed()) {
      dense_decode_.emplace(spec_, *target_, decode_.masked, most_blocks_of_decode(kernels));
    }
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
                       const BlockMaskOptions& options) const override {
    const ContextScope scope(driver_, ordinal_);
    return build_block_mask(driver_, scope, mask_kernels(scope), std::move(fingerprint), shape,
                            bindings, options);
  }

  void rebuild(BlockMask& mask, const Shape& shape, const Bindings& bindings,
               tilewright::Stream stream) const override {
    const ContextScope scope(driver_, ordinal_);
    rebuild_block_mask(driver_, scope, mask_kernels(scope), mask, shape, bindings, stream);
  }

  std::int64_t plan_row_side() const override { return plan_row_side_; }

  DecodeLaunch decode_launch() const override {
    if (!decodes_) return {};
    const ContextScope scope(driver_, ordinal_);
    return {.blocks = static_cast<int>(most_blocks_of_decode(modules_->in(scope))),
            .value_dim = spec_.value_head_dim()};
  }

  void build(PlanState& plan, const Bindings& bindings, tilewright::Stream stream) const override {
    const ContextScope scope(driver_, ordinal_);
    const ContextKernels& kernels = modules_->in(scope);
    const PackedGroups groups =
        packed_groups(spec_, shape_of_totals(plan.shape), kernels.gpu().l2_bytes);
    PositionArguments positions = {};
    std::shared_ptr<const TileListMemory> lists;  // until the launch stands in the stream
    if (plan.positions) {
      lists = lists_of(*plan.positions, scope);
      positions = mask_arguments(*plan.positions, *lists, 0);
    }
    launch_plan(driver_, ordinal_, plan_kernel(kernels), plan, groups, bindings, positions,
                static_cast<Stream>(stream));
    if (!plan.serves_backward) return;
    launch_column_plan(driver_, kernels.kernel(backward_, "tilewright_backward_plan_columns"), plan,
                       static_cast<Stream>(stream));
  }

  void forward(const ForwardCall& call, const PlanState& plan,
               const Bindings& bindings) const override {
    const ContextScope scope(driver_, ordinal_);
    const ContextKernels& kernels = modules_->in(scope);
    abi::cuda::NewRowsForwardArguments arguments;  // of which other kernels take the first part
    static_cast<abi::cuda::ForwardArguments&>(arguments) = forward_arguments(call, kernels);
    arguments.plan = plan_arguments(plan);
    arguments.k_new = tensor_argument(call.k_new);
    arguments.v_new = tensor_argument(call.v_new);
    arguments.heads_in_group =
        static_cast<int>(packed_groups(spec_, call.shape, kernels.gpu().l2_bytes).heads);
    SnippetParameter snippet(bindings.cuda_arguments(), call.shape, pages_of(call, plan, kernels));
    if (plan.geometry.decode_blocks > 0) {
      launch(kernels.kernel(is_aligned(spec_, call) ? decode_ : unaligned(decode_), kForwardEntry),
             plan.geometry.decode_blocks, arguments, call, snippet);
    }
    if (all_are_decoded(plan)) return;
    const FoldedFactors folded = factors_.fold(bindings.scalars());
    const Kernel& kernel = kernel_for(call, arguments.scaling, folded, kernels);
    take_factors(kernel, folded, arguments.scaling);
    const std::int64_t q_tiles = std::int64_t{plan.geometry.rows} *
                                 (plan_work_side_ / kernel.launch.q_tile) * call.shape.num_q_heads;
    require_launchable(q_tiles);
    launch(kernel, blocks_of(kernel, q_tiles, kernels), arguments, call, snippet);
  }

  void backward(const BackwardCall& call, const BlockMask* mask,
                const Bindings& bindings) const override {
    const ContextScope scope(driver_, ordinal_);
    const ContextKernels& kernels = modules_->in(scope);
    BackwardTiles lists;
    std::shared_ptr<const TileListMemory> memory;  // until the launches stand in the stream
    if (mask) {
      memory = transposed_lists_of(*mask, scope);
      lists = {.rows = mask_arguments(*mask, *memory, 0),
               .columns = column_arguments(*mask, *memory)};
    }
    const bool takes_maps = kernels.find(backward_, kHopperBackwardEntry) != nullptr;
    const bool aligned = is_aligned(spec_, call);
    if (aligned && takes_maps && hopper_backward_serves(spec_, call)) {
      return launch_hopper_backward(driver_, kernels, backward_, spec_, call, lists, bindings);
    }
    const KernelVariant portable = aligned && !takes_maps ? backward_ : unaligned(backward_);
    launch_backward(driver_, kernels, portable, spec_, call, lists, bindings);
  }

  std::int64_t column_side() const override {
    if (!spec_.is_packed() || spec_.gradients.empty() || masks_only_) return 0;
    const ContextScope scope(driver_, ordinal_);
    return modules_->in(scope).kernel(backward_, "tilewright_backward_rows").launch.q_tile;
  }

  void backward(const BackwardCall& call, const PlanState& plan,
                const Bindings& bindings) const override {
    const ContextScope scope(driver_, ordinal_);
    launch_backward(driver_, modules_->in(scope),
                    is_aligned(spec_, call) ? backward_ : unaligned(backward_), spec_, call,
                    {.plan = &plan, .work_side = plan_work_side_}, bindings);
  }

  std::int64_t backward_workspace(const Shape& shape, const Bindings* bindings,
                                  bool deterministic) const override {
    const std::int64_t portable =
        bindings == nullptr
            ? cuda::backward_workspace(spec_, shape)
            : cuda::backward_workspace(shape, gradient_shapes(*bindings), deterministic);
    const ContextScope scope(driver_, ordinal_);
    const Kernel* hopper = modules_->in(scope).find(backward_, kHopperBackwardEntry);
    if (hopper == nullptr || deterministic) return portable;
    const std::int64_t rows = hopper->launch.q_tile;
    return std::max(
        portable, bindings == nullptr
                      ? hopper_backward_workspace(spec_, shape, rows)
                      : hopper_backward_workspace(spec_, shape, rows, gradient_shapes(*bindings)));
  }

  void forward(const ForwardCall& call, const BlockMask* mask,
               const Bindings& bindings) const override {
    const ContextScope scope(driver_, ordinal_);
    const ContextKernels& kernels = modules_->in(scope);
    if (dense_decode_ && dense_decode_->serves(call.shape)) {
      decode(call, mask, bindings, kernels, scope);
    } else {
      forward(call, mask, bindings, kernels, scope);
    }
    if (spec_.outputs.weights) write_weights(call, mask, bindings, kernels, scope);
  }

  std::int64_t forward_workspace(const Shape& shape) const override {
    return dense_decode_ ? dense_decode_->workspace_bytes(shape) : 0;
  }

  void append(const abi::AppendArguments& call, const PlanState* plan, const Bindings& bindings,
              tilewright::Stream stream) const override {
    const ContextScope scope(driver_, ordinal_);
    launch_append(driver_,
                  modules_->in(scope).kernel({.role = KernelRole::append}, "tilewright_append"),
                  call, plan, plan_work_side_, append_divides(spec_) ? &bindings : nullptr,
                  static_cast<Stream>(stream));
  }

  void quantise(const QuantiseCall& call, const PlanState* plan, const Bindings& bindings,
                tilewright::Stream stream) const override {
    const ContextScope scope(driver_, ordinal_);
    const Kernel& kernel =
        modules_->in(scope).kernel({.role = KernelRole::quantise}, "tilewright_quantise");
    launch_quantise(driver_, kernel, call, plan, spec_.is_paged(), bindings,
                    static_cast<Stream>(stream));
  }

  void merge(const abi::MergeArguments& call, tilewright::Stream stream) const override {
    const ContextScope scope(driver_, ordinal_);
    launch_merge(driver_,
                 modules_->in(scope).kernel({.role = KernelRole::merge}, "tilewright_merge"), call,
                 size_of(spec_.output_dtype()), static_cast<Stream>(stream));
  }

 private:
  static bool will_compile(const Toolchain& given) {
    const Toolchain toolchain = with_defaults(given);
    return *toolchain.jit && toolchain.bundles->empty();
  }

  std::vector<KernelBinary> build(const DeviceFacts& gpu, const AttentionOptions& options) {
    const std::vector<KernelVariant> ids = kernels_needed(facts_, options);
    target_ = bundled_target(facts_, targets_of(gpu), ids, options.kernels);
    if (!target_) target_.emplace(compiled_target(gpu, options));
    return build_or_fallback_kernels(facts_, *target_, ids, options.kernels);
  }

  // What NVRTC compiles for; where there is none, or it must not be used, what the store holds.
  Target compiled_target(const DeviceFacts& gpu, const AttentionOptions& options) const {
    const std::vector<Target> targets = targets_of(gpu);
    if (targets.empty()) {
      throw Error(ErrorCode::device,
                  fmt::format("{} is of a generation that this tilewright has no target for",
                              gpu.describe()),
                  "use a newer tilewright, or the CPU: Device::cpu(), TILEWRIGHT_DEVICE=cpu");
    }
    const auto stored = [&] {
      return stored_target(facts_, targets, kernels_needed(facts_, options), options.kernels);
    };
    if (!*with_defaults(options.kernels).jit) return stored().value_or(targets.at(0));
    try {
      const NvrtcFacts nvrtc = find_nvrtc();
      require_driver_for_nvrtc(driver_.version(), nvrtc.major, nvrtc.minor);
      return target_for(gpu, nvrtc.architectures);
    } catch (const Error&) {
      if (std::optional<Target> target = stored()) return *target;
      throw;
    }
  }

  MaskKernels mask_kernels(const ContextScope& scope) const {
    const ContextKernels& kernels = modules_->in(scope);
    const KernelSource& mask = mask_source();
    const std::vector<ExtremaTable>& tables = mask.extrema_tables;
    return {.rows = kernels.kernel(mask.variant, "tilewright_mask_rows"),
            .scan = kernels.kernel(kMaskLists, "tilewright_mask_scan"),
            .extrema =
                tables.empty() ? nullptr : &kernels.kernel(kMaskLists, "tilewright_mask_extrema"),
            .tables = tables,
            .proves = mask.variant.role == KernelRole::mask_proved,
            .ordered_rows = ordered_rows(kernels)};
  }

  // Of plan_proved, or of plan_exact, which serves where the former does not compile.
  static const Kernel& plan_kernel(const ContextKernels& kernels) {
    constexpr std::string_view kEntry = "tilewright_plan";
    const Kernel* const proved = kernels.find({.role = KernelRole::plan_proved}, kEntry);
    return proved ? *proved : kernels.kernel({.role = KernelRole::plan_exact}, kEntry);
  }

  // Of mask_proved, or of mask_exact, which serves where the former does not compile.
  const KernelSource& mask_source() const {
    for (const KernelBinary& binary : modules_->binaries()) {
      const KernelRole role = binary.source.variant.role;
      if (role == KernelRole::mask_proved || role == KernelRole::mask_exact) return binary.source;
    }
    throw Error(ErrorCode::internal, "the spec's mask has no kernel");
  }

  // What forward works on in the order of cost: blocks of the mask, or q tiles that are greater.
  std::int64_t ordered_rows(const ContextKernels& kernels) const {
    const Kernel* forward = kernels.find(forward_, kForwardEntry);
    return std::max(spec_.block[0], forward ? forward->launch.q_tile : 0);
  }

  std::int64_t most_blocks_of_decode(const ContextKernels& kernels) const {
    const Kernel& kernel = kernels.kernel(decode_, kForwardEntry);
    return std::min(kernel.launch.blocks_per_sm * kernels.gpu().multiprocessors,
                    most_decode_blocks(spec_));
  }

  // A dense call with few rows of q.
  void decode(const ForwardCall& call, const BlockMask* mask, const Bindings& bindings,
              const ContextKernels& kernels, const ContextScope& scope) const {
    abi::cuda::DecodeForwardArguments arguments;
    static_cast<abi::cuda::ForwardArguments&>(arguments) = forward_arguments(call, kernels);
    std::shared_ptr<const TileListMemory> lists;  // until the launch stands in the stream
    if (mask) {
      lists = lists_of(*mask, scope);
      arguments.mask = mask_arguments(*mask, *lists, 0);
    }
    arguments.decode = dense_decode_->work(call.shape, call.workspace);
    SnippetParameter snippet(bindings.cuda_arguments(), call.shape);
    launch_with(
        kernels.kernel(is_aligned(spec_, call) ? decode_ : unaligned(decode_), kForwardEntry),
        arguments.decode.blocks, arguments, call, snippet);
  }

  // A dense call of the forward kernel.
  void forward(const ForwardCall& call, const BlockMask* mask, const Bindings& bindings,
               const ContextKernels& kernels, const ContextScope& scope) const {
    abi::cuda::ForwardArguments arguments = forward_arguments(call, kernels);
    const FoldedFactors folded = factors_.fold(bindings.scalars());
    const Kernel& kernel = kernel_for(call, arguments.scaling, folded, kernels);
    take_factors(kernel, folded, arguments.scaling);
    std::shared_ptr<const TileListMemory> lists;  // until the launch stands in the stream
    const std::int64_t all_tiles =
        place_tiles(call, mask, kernel.launch.q_tile, kernels, scope, arguments, lists);
    SnippetParameter snippet(bindings.cuda_arguments(), call.shape);
    launch(kernel, blocks_of(kernel, all_tiles, kernels), arguments, call, snippet);
  }

  // After forward, which writes lse.
  void write_weights(const ForwardCall& call, const BlockMask* mask, const Bindings& bindings,
                     const ContextKernels& kernels, const ContextScope& scope) const {
    const Kernel& kernel = kernels.kernel(is_aligned(spec_, call) ? weights_ : unaligned(weights_),
                                          "tilewright_weights");
    abi::cuda::WeightsArguments arguments;
    static_cast<abi::cuda::ForwardArguments&>(arguments) = forward_arguments(call, kernels);
    arguments.weights = call.weights;
    arguments.scaling = {.factor = static_cast<float>(call.scale), .to_log2 = 0};
    std::shared_ptr<const TileListMemory> lists;  // until the launch stands in the stream
    const std::int64_t all_tiles =
        place_tiles(call, mask, kernel.launch.q_tile, kernels, scope, arguments, lists);
    SnippetParameter snippet(bindings.cuda_arguments(), call.shape);
    void* parameters[] = {&arguments, snippet.data()};
    launch(kernel, all_tiles, call.stream, parameters);
  }

  // Says which q tiles a dense call has, and returns their number.
  // lists: of the mask, which must live until the launch stands in the stream
  std::int64_t place_tiles(const ForwardCall& call, const BlockMask* mask, std::int64_t q_tile,
                           const ContextKernels& kernels, const ContextScope& scope,
                           abi::cuda::ForwardArguments& arguments,
                           std::shared_ptr<const TileListMemory>& lists) const {
    std::int64_t q_tiles = ceil_div(call.shape.q_len, q_tile);
    if (mask) {
      lists = lists_of(*mask, scope);
      arguments.mask = mask_arguments(*mask, *lists, q_tile);
      const std::int64_t side = mask->block()[0];
      if (side >= q_tile) q_tiles = mask->q_blocks() * (side / q_tile);
    }
    const HeadGroups groups = head_groups(spec_, call.shape, kernels.gpu().l2_bytes);
    arguments.q_tiles = static_cast<int>(q_tiles);
    arguments.heads_in_group = static_cast<int>(groups.heads);
    arguments.whole_groups = static_cast<int>(groups.count);
    const std::int64_t all_tiles = q_tiles * call.shape.batch * call.shape.num_q_heads;
    require_launchable(all_tiles);
    return all_tiles;
  }

  // What dense and packed calls have in common.
  abi::cuda::ForwardArguments forward_arguments(const ForwardCall& call,
                                                const ContextKernels& kernels) const {
    return {.q = tensor_argument(call.q),
            .k = tensor_argument(call.k),
            .v = tensor_argument(call.v),
            .out = tensor_argument(call.out),
            .lse = call.lse,
            .mask = {},
            .scaling = abi::cuda::scaling(static_cast<float>(call.scale), !spec_.score_mod.empty()),
            .q_tiles = 0,
            .heads_in_group = 0,
            .whole_groups = 0,
            .launch = kernels.next_launch()};
  }

  // A mask made from lists, or in another context, is copied to this one at its first use.
  std::shared_ptr<const TileListMemory> lists_of(const BlockMask& mask,
                                                 const ContextScope& scope) const {
    return std::static_pointer_cast<const TileListMemory>(MaskPlacement::on_device(
        mask, scope.id(),
        [&](const HostTileLists& host) { return copied_lists(host, mask, scope, false); }));
  }

  // The same with the lists by columns.
  std::shared_ptr<const TileListMemory> transposed_lists_of(const BlockMask& mask,
                                                            const ContextScope& scope) const {
    return std::static_pointer_cast<const TileListMemory>(MaskPlacement::transposed_on_device(
        mask, scope.id(),
        [&](const HostTileLists& host) { return copied_lists(host, mask, scope, true); }));
  }

  std::shared_ptr<TileListMemory> copied_lists(const HostTileLists& host, const BlockMask& mask,
                                               const ContextScope& scope, bool transposed) const {
    const std::size_t tiles = host.lists.indices.size() + host.lists.full_indices.size();
    auto copy = std::make_shared<TileListMemory>(driver_, scope, mask.rows(),
                                                 ordered_rows(modules_->in(scope)), nullptr);
    if (transposed) {
      copy->add_transposed(scope, mask.batch() * mask.heads() * mask.kv_blocks(), nullptr);
    }
    copy->reserve_indices(scope, static_cast<std::int64_t>(tiles), nullptr);
    copy->upload(host.lists, mask);
    if (transposed) copy->upload_transposed(mask.transposed());
    return copy;
  }

  // What gradients of buffers and scalars are like.
  std::vector<TensorView> gradient_shapes(const Bindings& bindings) const {
    std::vector<TensorView> shapes;
    for (const std::string& name : gradient_names(spec_)) {
      const auto buffer = spec_.buffers.find(name);
      const auto index = static_cast<std::size_t>(std::distance(spec_.buffers.begin(), buffer));
      const bool is_buffer = buffer != spec_.buffers.end();
      shapes.push_back(is_buffer
                           ? bindings.buffers()[index]
                           : TensorView::contiguous(static_cast<void*>(nullptr), DType::f32, {1}));
    }
    return shapes;
  }

  abi::SequencePages pages_of(const ForwardCall& call, const PlanState& plan,
                              const ContextKernels& kernels) const {
    abi::SequencePages pages = plan.pages();
    const std::int64_t kv_tile = kernels.kernel(forward_, kForwardEntry).launch.kv_box_rows;
    if (spec_.is_paged() && kv_tile > 0) pages.box_shift = page_box_shift(call.page_size, kv_tile);
    return pages;
  }

  // Whether no sequence is left for prefill, whatever the device's lengths are. Where rows of tiles
  // begin at positions, a sequence may have rows of two.
  static bool all_are_decoded(const PlanState& plan) {
    return !plan.positions && plan.shape.max_q_len <= plan.geometry.decode_q_len &&
           plan.shape.max_q_len <= plan.geometry.block[0];
  }

  // Kernels that take tensor maps leave what is rare to the others: strides that the copy engine
  // refuses, and scales, factors of score_mod and rows of one key that do not suit them.
  const Kernel& kernel_for(const ForwardCall& call, const abi::cuda::Scaling& scaling,
                           const FoldedFactors& folded, const ContextKernels& kernels) const {
    const Kernel& kernel = kernels.kernel(forward_, kForwardEntry);
    const bool takes_maps = kernel.launch.kv_box_rows > 0;
    const float factor = takes_maps ? scaling.factor * folded.of_score : scaling.factor;
    const bool suits = factor >= kernel.launch.least_factor &&
                       factor <= kernel.launch.greatest_factor &&
                       call.shape.kv_len >= std::max<std::int64_t>(kernel.launch.least_kv_len, 1);
    const bool fits = takes_maps ? driver_.functions().tensor_map_encode != nullptr && folded.fit &&
                                       fit_tensor_maps(spec_, call)
                                 : is_aligned(spec_, call);
    return suits && fits ? kernel : kernels.kernel(unaligned(forward_), kForwardEntry);
  }

  // Kernels that take tensor maps leave score_mod's factors to the scaling.
  static void take_factors(const Kernel& kernel, const FoldedFactors& folded,
                           abi::cuda::Scaling& scaling) {
    if (kernel.launch.kv_box_rows == 0) return;
    scaling.factor *= folded.of_score;
    scaling.to_log2 *= folded.of_result;
  }

  static std::int64_t blocks_of(const Kernel& kernel, std::int64_t q_tiles,
                                const ContextKernels& kernels) {
    const std::int64_t multiprocessors = kernels.gpu().multiprocessors;
    return kernel.launch.is_persistent ? std::min(q_tiles, multiprocessors) : q_tiles;
  }

  static void require_launchable(std::int64_t q_tiles) {
    if (q_tiles <= std::numeric_limits<std::int32_t>::max()) return;
    throw Error(ErrorCode::tensor,
                fmt::format("the call has {} tiles of q, more than a launch takes", q_tiles),
                "split the batch");
  }

  // Packed calls have the arguments of kv_new, of which other kernels take the first part.
  void launch(const Kernel& kernel, std::int64_t blocks,
              abi::cuda::NewRowsForwardArguments& arguments, const ForwardCall& call,
              SnippetParameter& snippet) const {
    if (spec_.kv_new) return launch_with(kernel, blocks, arguments, call, snippet);
    abi::cuda::PackedForwardArguments& first = arguments;
    launch_with(kernel, blocks, first, call, snippet);
  }

  void launch(const Kernel& kernel, std::int64_t blocks, abi::cuda::ForwardArguments& arguments,
              const ForwardCall& call, SnippetParameter& snippet) const {
    launch_with(kernel, blocks, arguments, call, snippet);
  }

  template <typename Arguments>
  void launch_with(const Kernel& kernel, std::int64_t blocks, Arguments& arguments,
                   const ForwardCall& call, SnippetParameter& snippet) const {
    if (!spec_.outputs.max_scores) return launch_final(kernel, blocks, arguments, call, snippet);
    abi::cuda::WithMaxScores<Arguments> with_max_scores{arguments, call.max_scores};
    launch_final(kernel, blocks, with_max_scores, call, snippet);
  }

  template <typename Arguments>
  void launch_final(const Kernel& kernel, std::int64_t blocks, Arguments& arguments,
                    const ForwardCall& call, SnippetParameter& snippet) const {
    abi::cuda::PagedTensorMaps maps;
    void* parameters[] = {&arguments, snippet.data(), nullptr};
    if (kernel.launch.kv_box_rows > 0) {
      make_tensor_maps(driver_, spec_, call, kernel.launch.kv_box_rows, maps);
      parameters[1] = &maps;
      parameters[2] = snippet.data();
    }
    launch(kernel, blocks, call.stream, parameters);
  }

  void launch(const Kernel& kernel, std::int64_t blocks, tilewright::Stream stream,
              void** parameters) const {
    driver_.check(driver_.functions().launch(kernel.function, static_cast<unsigned>(blocks), 1, 1,
                                             static_cast<unsigned>(kernel.launch.threads), 1, 1,
                                             static_cast<unsigned>(kernel.launch.shared_bytes),
                                             static_cast<Stream>(stream), parameters, nullptr),
                  "launching forward");
  }

  Spec spec_;
  SpecFacts facts_;
  ScoreFactors factors_;
  KernelVariant forward_;   // what calls with aligned tensors launch
  KernelVariant backward_;  // likewise, where the spec has gradients
  KernelVariant weights_;   // likewise, where its outputs name weights
  KernelVariant decode_;    // likewise, where it decodes
  bool decodes_;
  bool masks_only_;
  int ordinal_;
  std::future<void> nvrtc_found_;  // while the driver starts
  const Driver& driver_;
  std::optional<Target> target_;
  std::optional<DenseDecode> dense_decode_;
  std::int64_t plan_row_side_ = 0;
  std::int64_t plan_work_side_ = 0;
  std::unique_ptr<Modules> modules_;
  std::future<void> pool_made_;  // while modules are loaded and the caller brings inputs
};

bool has_target(const std::string& name) {
  const std::vector<std::string>& names = Target::all_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Where bundles have kernels for a GPU, it is of use without NVRTC.
bool is_bundled(const DeviceFacts& gpu) {
  const std::shared_ptr<const cache::Bundles> bundles = default_bundles({});
  const std::vector<Target> targets = targets_of(gpu);
  return !bundles->empty() && std::any_of(targets.begin(), targets.end(), [&](const Target& t) {
    return bundles->has_ingredient("target", t.name());
  });
}

}  // namespace

std::string why_not_available() {
  static const auto& reason = *new std::string([] {
    std::string problem;
    const Driver* driver = Driver::find(&problem);
    if (!driver) return problem;
    try {
      if (!is_bundled(device_facts(*driver, 0))) find_nvrtc();
      return std::string();
    } catch (const Error& error) {
      return error.message();
    }
  }());
  return reason;
}

std::vector<Target> targets_of(const DeviceFacts& gpu) {
  std::vector<Target> targets;
  if (has_target(gpu.target())) targets.push_back(Target::parse(gpu.target()));
  // A cubin also runs on later GPUs of its generation, if it uses nothing that is particular.
  for (int sm = gpu.compute_capability; sm / 10 == gpu.compute_capability / 10; --sm) {
    const std::string name = fmt::format("sm_{}", sm);
    if (name != gpu.target() && has_target(name)) targets.push_back(Target::parse(name));
  }
  return targets;
}

Target target_for(const DeviceFacts& gpu, const std::vector<int>& architectures) {
  const auto compiles = [&](int sm) {
    return std::find(architectures.begin(), architectures.end(), sm) != architectures.end();
  };
  for (const Target& target : targets_of(gpu)) {
    if (compiles(target.sm())) return target;
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
