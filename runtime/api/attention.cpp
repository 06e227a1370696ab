#include "runtime/api/attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/nvtx.hpp"
#include "generator/render/promised_buffers.hpp"
#include "generator/snippet/append_scales.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "runtime/api/device_kind.hpp"
#include "runtime/call/append_call.hpp"
#include "runtime/call/backward_call.hpp"
#include "runtime/call/merge_call.hpp"
#include "runtime/call/output_shapes.hpp"
#include "runtime/call/positions.hpp"
#include "runtime/call/quantise_call.hpp"
#include "runtime/call/workspace.hpp"
#include "runtime/call/written_apart.hpp"
#include "runtime/cpu/backend.hpp"
#include "runtime/cuda/backend.hpp"
#include "runtime/library/events.hpp"
#include "runtime/library/tuned_tactic.hpp"

namespace tilewright {
namespace {

// The mask_mod of a spec with what decides the lists' batch and heads.
struct MaskUse {
  MaskSource source;
  bool per_batch = false;
  bool per_head = false;
  bool reads_q_heads = false;   // their number, or which one it is
  bool reads_kv_heads = false;  // likewise
};

MaskUse mask_use(const Spec& spec) {
  if (spec.mask_mod.empty())
    return {.source = {.mask_mod = {}, .block = spec.block, .scalars = {}}};
  const Snippet snippet = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  MaskUse use{.source = {.mask_mod = spec.mask_mod, .block = spec.block, .scalars = {}},
              .per_batch = snippet.mentions("b"),
              .per_head = snippet.mentions("h") || snippet.mentions("h_kv")};
  use.reads_q_heads = use.per_head || snippet.mentions("num_q_heads");
  use.reads_kv_heads = snippet.mentions("h_kv") || snippet.mentions("num_kv_heads");
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

void require_capacity(std::int64_t capacity) {
  constexpr std::int64_t kGreatest = std::int64_t{1} << 58;  // more than any mask has
  if (capacity >= 0 && capacity <= kGreatest) return;
  throw Error(ErrorCode::usage,
              fmt::format("the capacity of a block mask is {}; it must be from 0 to {}", capacity,
                          kGreatest),
              "give the number of tiles to make room for: rows * kv blocks is always enough");
}

[[noreturn]] void refuse_for_memory() {
  throw Error(ErrorCode::memory, "out of memory",
              "use smaller shapes or a machine with more memory");
}

template <typename Implementation>
const Implementation& checked(const std::unique_ptr<Implementation>& implementation) {
  if (implementation) return *implementation;
  throw Error(ErrorCode::usage, "this Attention was moved from",
              "use the one that it was moved to");
}

// Runs what a public function does: with IEEE 754's defaults, and with the library's own words for
// what the standard library throws when memory runs out.
template <typename Body>
auto enter_library(Body body) {
  const DefaultFloatEnvironment floats;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    refuse_for_memory();
  } catch (const std::length_error&) {
    refuse_for_memory();
  }
}

}  // namespace

class Attention::Implementation {
 public:
  Implementation(Spec spec, const AttentionOptions& options)
      : spec_(tuned(std::move(spec), options)),
        device_(options.device),
        masks_only_(options.masks_only),
        takes_positions_(options.positions),
        merges_(options.merge),
        appends_(options.append),
        quantises_(options.quantise) {
    if (quantises_) {
      require_one_byte();
      named_beyond_tensors_ = named_beyond_tensors(spec_);
    }
    if (appends_) {
      require_pools();
      named_beside_slots_ = named_beside_slots(spec_);
    }
    if (merges_) require_lse_output();
    if (takes_positions_) require_takes_positions(spec_);
    if (needs_no_inputs(spec_)) default_bindings_.emplace(spec_, SnippetInputs{});
    if (!spec_.mask_mod.empty() || options.takes_block_mask) mask_use_ = mask_use(spec_);
    if (spec_.is_packed()) promised_ = promised_buffers(SpecFacts(spec_));
    const bool on_gpu = device_.kind() == Device::Kind::cuda;
    backend_ = on_gpu ? cuda::make_backend(spec_, options) : cpu::make_backend(spec_, options);
    tell_attention(spec_, backend_->target(), device_.name(), options.kernels);
  }

  const Spec& spec() const { return spec_; }
  const Device& device() const { return device_; }
  const Backend& backend() const { return *backend_; }

  Bindings bind(const SnippetInputs& inputs) const {
    Bindings bindings(spec_, inputs);
    backend_->check(bindings);
    return bindings;
  }

  MaskFingerprint mask_fingerprint(const Shape& shape, const Bindings& given) const {
    if (!mask_use_) {
      throw Error(ErrorCode::usage, "the spec has no mask_mod, so it has no block mask",
                  "call forward without one, or make the Attention with .takes_block_mask = true");
    }
    tilewright::validate(shape);
    const Bindings& bindings = bindings_or_default(given);
    bindings.check(spec_, shape);
    return {.source = mask_use_->source,
            .shape = shape,
            .scalars = mask_scalars(bindings),
            .counts = {.batch = mask_use_->per_batch ? shape.batch : 0,
                       .num_q_heads = mask_use_->reads_q_heads ? shape.num_q_heads : 0,
                       .num_kv_heads = mask_use_->reads_kv_heads ? shape.num_kv_heads : 0}};
  }

  MaskFingerprint position_fingerprint(std::int64_t length, std::int64_t heads,
                                       const Bindings& given) const {
    require_takes_positions(spec_);
    const Shape shape = {.num_q_heads = heads, .q_len = length, .kv_len = length};
    tilewright::validate(shape);
    return {.source = mask_use_->source,
            .shape = shape,
            .scalars = mask_scalars(bindings_or_default(given)),
            .counts = {.num_q_heads = mask_use_->reads_q_heads ? heads : 0}};
  }

  BlockMask block_mask(const Shape& shape, const Bindings& given,
                       const BlockMaskOptions& options) const {
    require_mask_mod();
    if (options.capacity) require_capacity(*options.capacity);
    MaskFingerprint fingerprint = mask_fingerprint(shape, given);
    if (!mask_use_->per_batch) fingerprint.shape.batch = 1;
    if (!mask_use_->per_head) fingerprint.shape.num_q_heads = fingerprint.shape.num_kv_heads = 1;
    count_tile_rows(fingerprint.shape.batch, fingerprint.shape.num_q_heads,
                    ceil_div(shape.q_len, spec_.block[0]));
    return backend_->block_mask(std::move(fingerprint), shape, bindings_or_default(given), options);
  }

  void rebuild(BlockMask& mask, const Shape& shape, const Bindings& given, Stream stream) const {
    require_mask_mod();
    const Bindings& bindings = bindings_or_default(given);
    bindings.check(spec_, shape);
    require_fit(mask, mask_use_->source, shape, bindings);
    require_own_lists("batch", mask_use_->per_batch, mask.batch(), shape.batch);
    require_own_lists("num_q_heads", mask_use_->per_head, mask.heads(), shape.num_q_heads);
    backend_->rebuild(mask, shape, bindings, stream);
  }

  void forward(const ForwardTensors& tensors, const BlockMask* mask, const Bindings& given,
               const ForwardOptions& options) const {
    if (spec_.is_packed()) refuse_packed(mask);
    require_forward();
    ForwardCall call = resolve_call(spec_, tensors, options);
    const Bindings& bindings = bindings_or_default(given);
    bindings.check(spec_, call.shape);
    require_written_apart(spec_, tensors, bindings);
    check_mask(mask, call.shape, bindings);
    if (options.workspace.data != nullptr) lend_workspace(tensors, bindings, options, call);
    backend_->forward(call, mask, bindings);
  }

  std::int64_t workspace_size(const Shape& shape) const {
    validate(shape);
    return backend_->forward_workspace(shape);
  }

  void merge(std::span<const Part> parts, const TensorView& out,
             const std::optional<TensorView>& lse, Stream stream) const {
    if (!merges_) {
      throw Error(ErrorCode::usage, "this Attention has no kernel that merges",
                  "make it with .merge = true in its options");
    }
    const abi::MergeArguments call = resolve_merge(spec_, parts, out, lse);
    if (call.all_rows > 0) backend_->merge(call, stream);
  }

  void append(const NewRows& rows, const TensorView& k, const TensorView& v, const Plan* plan,
              const Bindings& given, Stream stream) const {
    if (!appends_) {
      throw Error(ErrorCode::usage, "this Attention has no kernel that appends",
                  "make it with .append = true in its options");
    }
    if (!rows.slots && plan == nullptr) {
      throw Error(ErrorCode::usage, "append was given neither slots nor a plan",
                  "give slots, one for each new row, or the plan of the step");
    }
    if (plan != nullptr) require_own(*plan);
    if (rows.slots) require_slots_suffice();
    const PlanState* const state = rows.slots ? nullptr : &plan->state();
    const abi::AppendArguments call = resolve_append(spec_, rows, k, v, state);
    const Bindings& bindings = append_divides(spec_) ? bindings_or_default(given) : given;
    if (append_divides(spec_) && state != nullptr) {
      bindings.check(spec_, shape_of_totals(state->shape));
    }
    if (has_work(call) && (state == nullptr || state->shape.batch > 0)) {
      backend_->append(call, state, bindings, stream);
    }
  }

  /// @param plan, shape at most one of them
  void quantise(const TensorView& from, const TensorView& to, const Plan* plan, const Shape* shape,
                Operand which, const Bindings& given, Stream stream) const {
    if (!quantises_) {
      throw Error(ErrorCode::usage, "this Attention has no kernel that quantises",
                  "make it with .quantise = true in its options");
    }
    if (plan != nullptr) require_own(*plan);
    if (shape != nullptr) require_dense(*shape);
    if (plan == nullptr && shape == nullptr) require_tensor_suffices(which);
    const PlanState* const state = plan != nullptr ? &plan->state() : nullptr;
    const QuantiseCall call = resolve_quantise(spec_, from, to, state, shape, which);
    const Bindings& bindings = bindings_or_default(given);
    bindings.check_known(spec_, call.shape);
    if (call.blocks > 0) backend_->quantise(call, state, bindings, stream);
  }

  void require_dense(const Shape& shape) const {
    if (spec_.is_packed()) {
      throw Error(ErrorCode::usage, "the spec is packed, and quantise was given a shape",
                  "give the plan of the step, or none");
    }
    tilewright::validate(shape);
  }

  void require_tensor_suffices(Operand which) const {
    const std::string& named = named_beyond_tensors_[static_cast<std::size_t>(which)];
    if (named.empty()) return;
    throw Error(ErrorCode::usage, named + ", which its tensor alone does not say",
                spec_.is_packed() ? "give quantise the plan of the step"
                                  : "give quantise the shape of the call in the plan's place");
  }

  void require_slots_suffice() const {
    if (named_beside_slots_.empty()) return;
    throw Error(ErrorCode::usage, fmt::format("{}, which slots do not say", named_beside_slots_),
                "append through the plan, or name h_kv and kv_token alone");
  }

  void backward(const BackwardTensors& tensors, const BlockMask* mask, const Bindings& given,
                const GradientBuffers& gradients, const BackwardOptions& options) const {
    require_forward();
    if (spec_.is_packed()) refuse_packed(mask);
    const Bindings& bindings = bindings_or_default(given);
    const BackwardCall call = resolve_backward_call(spec_, tensors, bindings, gradients, options);
    check_mask(mask, call.forward.shape, bindings);
    if (mask && !mask->has_transposed()) {
      throw Error(ErrorCode::block_mask, "the block mask has no lists by columns",
                  "make it with BlockMaskOptions{.transposed = true}, or call mask.transposed() "
                  "once before");
    }
    backend_->backward(call, mask, bindings);
  }

  void backward(const BackwardTensors& tensors, const Plan& plan, const Bindings& given,
                const GradientBuffers& gradients, const BackwardOptions& options) const {
    require_forward();
    require_gradients(spec_);
    require_own(plan);
    const PlanState& state = plan.state();
    if (!state.serves_backward) {
      throw Error(ErrorCode::usage, "the plan was made for forward alone",
                  "make it with PlanOptions{.backward = true}");
    }
    const Bindings& bindings = bindings_or_default(given);
    const BackwardCall call = resolve_packed_backward(
        spec_, tensors, state.shape, workspace_of(state), bindings, gradients, options);
    require_same_mask_scalars(state, bindings);
    backend_->backward(call, state, bindings);
  }

  std::int64_t backward_workspace(const PackedShape& shape, const Bindings* given,
                                  bool deterministic) const {
    if (!spec_.is_packed()) {
      throw Error(ErrorCode::usage, "the spec is dense, and the shape is one of packed calls",
                  "give a Shape");
    }
    require_gradients(spec_);
    validate(shape);
    return backend_->backward_workspace(one_batch(shape), shape.batch,
                                        given ? &bindings_or_default(*given) : nullptr,
                                        deterministic);
  }

  std::int64_t backward_workspace(const Shape& shape, const Bindings* given,
                                  bool deterministic) const {
    if (spec_.is_packed()) {
      throw Error(ErrorCode::usage, "the spec is packed, and the shape is one of dense calls",
                  "give a PackedShape");
    }
    require_gradients(spec_);
    validate(shape);
    return backend_->backward_workspace(shape, 0, given ? &bindings_or_default(*given) : nullptr,
                                        deterministic);
  }

  std::int64_t workspace_size(const PackedShape& shape) const {
    TileSource tiles = tile_source(nullptr);
    if (takes_positions_) tiles.per_head = tiles.in_positions = true;
    return geometry_of(shape, tiles).bytes;
  }

  std::int64_t workspace_size(const PackedShape& shape, const BlockMask* positions) const {
    return geometry_of(shape, tile_source(positions)).bytes;
  }

  Plan plan(const PackedShape& shape, const Sequences& sequences, const Bindings& given,
            const PlanOptions& options) const {
    if (options.backward) require_gradients(spec_);
    require_splits(options.splits);
    const PlanGeometry geometry = geometry_of(shape, tile_source(options.positions));
    require_sequences(sequences, shape, spec_.kv_new);
    if (options.positions) require_positions_alone(sequences);
    require_workspace(options.workspace, geometry.bytes, "this plan",
                      "attention.workspace_size(shape) says it; with positions, "
                      "workspace_size(shape, &positions)");
    auto state = std::make_shared<PlanState>();
    state->identity = identity_;
    state->shape = with_bounds(shape, spec_.kv_new);
    state->sequences = sequences;
    state->memory = static_cast<std::byte*>(options.workspace.data);
    state->geometry = geometry;
    state->counts_absent = options.count_absent;
    state->has_new_rows = spec_.kv_new;
    state->batch_invariant = options.batch_invariant;
    state->splits = options.splits;
    state->serves_backward = options.backward;
    if (options.positions) state->positions = *options.positions;
    state->promised = PromisedOrder(promised_);
    build(*state, given, options.stream);
    return Plan(std::move(state));
  }

  void rebuild(Plan& plan, const Bindings& given, Stream stream) const {
    require_own(plan);
    build(plan.state(), given, stream);
  }

  void forward(const ForwardTensors& tensors, const Plan& plan, const Bindings& given,
               const ForwardOptions& options) const {
    require_forward();
    require_own(plan);
    const PlanState& state = plan.state();
    const ForwardCall call = resolve_packed_call(spec_, tensors, state.shape, options);
    const Bindings& bindings = bindings_or_default(given);
    bindings.check(spec_, call.shape);
    require_written_apart(spec_, tensors, bindings);
    require_apart_from_plan(tensors, workspace_of(state), state.sequences.page_table);
    require_same_mask_scalars(state, bindings);
    if (state.shape.batch > 0 && state.shape.total_q > 0) backend_->forward(call, state, bindings);
  }

 private:
  static Spec tuned(Spec spec, const AttentionOptions& options) {
    validate(spec);
    return with_tuned_tactic(
        std::move(spec), [&] { return device_kind(options.device); }, options);
  }

  [[noreturn]] static void refuse_packed(const BlockMask* mask) {
    if (mask == nullptr) {
      throw Error(ErrorCode::usage, "the spec is packed, and the call has no plan",
                  "make one with attention.plan(shape, sequences, ...) and pass it to the call");
    }
    throw Error(ErrorCode::usage, "a packed call takes no block mask of a shape",
                "pass the plan to the call");
  }

  void require_pools() const {
    if (spec_.is_paged()) return;
    throw Error(ErrorCode::usage,
                fmt::format("append writes to pages, and kv_layout is \"{}\"",
                            to_string(spec_.key_value_layout())),
                R"(write "kv_layout": "paged" in the spec, or leave append out of the options)");
  }

  void require_one_byte() const {
    if (is_quantised(spec_.key_value_dtype())) return;
    throw Error(ErrorCode::usage,
                fmt::format("quantise stores numbers of one byte, and k and v are {}",
                            to_string(spec_.key_value_dtype())),
                R"(write "kv_dtype": "f8e4m3" in the spec, or leave quantise out of the options)");
  }

  void require_lse_output() const {
    if (is_quantised(spec_.output_dtype())) {
      throw Error(ErrorCode::usage,
                  fmt::format("merge joins results of 16 or 32 bits, and out is {}",
                              to_string(spec_.output_dtype())),
                  R"(write "out_dtype": "bf16" in the spec of the parts)");
    }
    if (spec_.outputs.lse) return;
    throw Error(ErrorCode::usage,
                "merge needs the lse of each part, which the spec's outputs leave out",
                R"(write "outputs": ["out", "lse"] in the spec)");
  }

  void require_forward() const {
    if (!masks_only_) return;
    throw Error(ErrorCode::usage, "this Attention was made for block masks only",
                "leave masks_only out of its options");
  }

  TileSource tile_source(const BlockMask* positions) const {
    if (positions) require_takes_positions(spec_);
    const bool has_mask = !spec_.mask_mod.empty();
    return {.block = {backend_->plan_row_side(), spec_.block[1]},
            .has_mask = has_mask,
            .per_head = positions ? positions->heads() > 1 : has_mask && mask_use_->per_head,
            .in_positions = positions != nullptr,
            .decode = backend_->decode_launch(),
            .split = backend_->split_launch(),
            .resident = backend_->resident_launch(),
            .column_side = backend_->column_side(),
            .backward = backend_->backward_tile_sides()};
  }

  static void require_positions_alone(const Sequences& sequences) {
    if (!sequences.kv_offset) return;
    throw Error(ErrorCode::usage, "kv_offset was given, and positions begin with column 0",
                "leave kv_offset out, or positions");
  }

  PlanGeometry geometry_of(const PackedShape& shape, const TileSource& tiles) const {
    if (!spec_.is_packed()) {
      throw Error(ErrorCode::usage,
                  fmt::format("layout is \"{}\", so the spec's calls have no plan",
                              to_string(spec_.layout)),
                  R"(write "layout": "packed" in the spec)");
    }
    tilewright::validate(shape);
    require_page_size(shape);
    return plan_geometry(with_bounds(shape, spec_.kv_new), tiles);
  }

  void require_page_size(const PackedShape& shape) const {
    if (spec_.is_paged() && shape.page_size == 0) {
      const Layout layout = spec_.key_value_layout();
      throw Error(
          ErrorCode::tensor,
          fmt::format("kv_layout is \"{}\", and the shape has no page_size", to_string(layout)),
          layout == Layout::paged
              ? "page_size is the second extent of k and v: [pages, page_size, heads, "
                "head_dim]"
              : "page_size is the last extent of v: [pages, heads, v_head_dim, page_size]");
    }
    if (!spec_.is_paged() && shape.page_size != 0) {
      throw Error(ErrorCode::tensor,
                  fmt::format("page_size is {}, and k and v are packed", shape.page_size),
                  R"(leave page_size out, or write "kv_layout": "paged" in the spec)");
    }
    if (shape.page_size == 0 || shape.total_kv % shape.page_size == 0) return;
    throw Error(ErrorCode::tensor,
                fmt::format("total_kv is {}, which is no multiple of page_size {}", shape.total_kv,
                            shape.page_size),
                "total_kv is pages * page_size");
  }

  void build(PlanState& state, const Bindings& given, Stream stream) const {
    const Bindings& bindings = bindings_or_default(given);
    bindings.check(spec_, shape_of_totals(state.shape));
    if (state.positions) {
      require_positions_fit(*state.positions, mask_use_->source, state.shape, bindings);
    }
    state.mask_scalars = mask_scalars(bindings);
    require_plan_apart(spec_, workspace_of(state), state.sequences, bindings);
    state.promised.bind(bindings);
    if (state.shape.batch > 0) backend_->build(state, bindings, stream);
  }

  void lend_workspace(const ForwardTensors& tensors, const Bindings& bindings,
                      const ForwardOptions& options, ForwardCall& call) const {
    const std::int64_t bytes = backend_->forward_workspace(call.shape);
    if (bytes == 0) return;
    require_workspace(options.workspace, bytes, "this call",
                      "attention.workspace_size(shape) says it; without a workspace the call runs "
                      "unsplit");
    require_workspace_apart(spec_, tensors, bindings,
                            TensorView::contiguous(options.workspace.data, DType::u8, {bytes}));
    call.workspace = static_cast<std::byte*>(options.workspace.data);
  }

  // Its bytes that the plan uses.
  static TensorView workspace_of(const PlanState& state) {
    return TensorView::contiguous(static_cast<void*>(state.memory), DType::u8,
                                  {state.geometry.bytes});
  }

  std::vector<double> mask_scalars(const Bindings& bindings) const {
    std::vector<double> values;
    if (!mask_use_) return values;
    for (const MaskSource::Scalar& scalar : mask_use_->source.scalars) {
      values.push_back(bindings.scalars()[scalar.index]);
    }
    return values;
  }

  void require_own(const Plan& plan) const {
    if (plan.state().identity == identity_) return;
    throw Error(ErrorCode::usage, "the plan was made by another Attention",
                "make one with attention.plan(shape, sequences, ...)");
  }

  void require_same_mask_scalars(const PlanState& state, const Bindings& bindings) const {
    if (!mask_use_) return;
    for (std::size_t i = 0; i < state.mask_scalars.size(); ++i) {
      const MaskSource::Scalar& scalar = mask_use_->source.scalars[i];
      const double given = bindings.scalars()[scalar.index];
      const double planned = state.mask_scalars[i];
      if (given == planned || (std::isnan(given) && std::isnan(planned))) continue;
      throw Error(ErrorCode::usage,
                  fmt::format("the plan was built with {} = {}, but this call has {}", scalar.name,
                              planned, given),
                  "call attention.rebuild(plan, bindings) first");
    }
  }

  const Bindings& bindings_or_default(const Bindings& given) const {
    return given.is_default() && default_bindings_ ? *default_bindings_ : given;
  }

  void check_mask(const BlockMask* mask, const Shape& shape, const Bindings& bindings) const {
    if (!mask && mask_use_) {
      if (spec_.mask_mod.empty()) {
        throw Error(ErrorCode::block_mask,
                    "the Attention takes a block mask, and the call has none",
                    "make one from lists (mask_lists.hpp) and pass it to forward");
      }
      throw Error(ErrorCode::block_mask, "the spec has a mask_mod, and the call has no block mask",
                  "make one with attention.block_mask(shape, bindings) and pass it to forward");
    }
    if (mask && !mask_use_) {
      throw Error(ErrorCode::block_mask, "the call has a block mask, and the spec has no mask_mod",
                  "give the spec the mask_mod that the mask was built from, or make the Attention "
                  "with .takes_block_mask = true for lists of full tiles");
    }
    if (mask && spec_.mask_mod.empty()) static_cast<void>(mask->path());  // was it moved from?
    if (mask) require_fit(*mask, mask_use_->source, shape, bindings);
  }

  // Lists that a caller made for several heads at once have no room for those of each.
  static void require_own_lists(std::string_view what, bool needs_own, std::int64_t lists,
                                std::int64_t of_call) {
    if (!needs_own || lists == of_call) return;
    throw Error(ErrorCode::block_mask,
                fmt::format("the block mask has lists for {} {}, but this call has {} and mask_mod "
                            "tells them apart",
                            what, lists, of_call),
                "build one with attention.block_mask(...)");
  }

  void require_mask_mod() const {
    if (spec_.is_packed()) {
      throw Error(ErrorCode::usage, "a packed spec has no block mask of a shape",
                  "attention.plan(...) decides the tiles of its sequences");
    }
    if (!spec_.mask_mod.empty()) return;
    throw Error(ErrorCode::usage, "the spec has no mask_mod, so it has no block mask",
                "call forward without one, or make one from lists (mask_lists.hpp)");
  }

  Spec spec_;
  Device device_;
  bool masks_only_;
  bool takes_positions_;
  bool merges_;
  bool appends_;
  bool quantises_;
  std::string named_beside_slots_;                   // what a scale needs that slots do not say
  std::array<std::string, 3> named_beyond_tensors_;  // what a scale needs that q, k or v do not say
  std::optional<Bindings> default_bindings_;         // where the spec needs nothing from the caller
  std::optional<MaskUse> mask_use_;                  // where the spec has a mask_mod
  std::vector<PromisedBuffer> promised_;             // where the spec is packed
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<const int> identity_ = std::make_shared<const int>(0);  // of its plans
};

Attention::Attention(Spec spec, AttentionOptions options)
    : implementation_(enter_library(
          [&] { return std::make_unique<Implementation>(std::move(spec), options); })) {}

Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;
Attention::~Attention() = default;

const Spec& Attention::spec() const {
  return checked(implementation_).spec();
}
const Device& Attention::device() const {
  return checked(implementation_).device();
}
const Target& Attention::target() const {
  return checked(implementation_).backend().target();
}
std::vector<KernelBuild> Attention::builds() const {
  return checked(implementation_).backend().builds();
}

void Attention::prepare() const {
  enter_library([&] { checked(implementation_).backend().prepare(); });
}

Bindings Attention::bind(const SnippetInputs& inputs) const {
  return enter_library([&] { return checked(implementation_).bind(inputs); });
}

BlockMask Attention::block_mask(const Shape& shape, const Bindings& bindings, Stream stream) const {
  return block_mask(shape, bindings, BlockMaskOptions{.stream = stream});
}

BlockMask Attention::block_mask(const Shape& shape, const Bindings& bindings,
                                const BlockMaskOptions& options) const {
  const NvtxRange range(spec().name, " block_mask");
  return enter_library(
      [&] { return checked(implementation_).block_mask(shape, bindings, options); });
}

void Attention::rebuild(BlockMask& mask, const Shape& shape, const Bindings& bindings,
                        Stream stream) const {
  const NvtxRange range(spec().name, " block_mask");
  enter_library([&] { checked(implementation_).rebuild(mask, shape, bindings, stream); });
}

MaskFingerprint Attention::mask_fingerprint(const Shape& shape, const Bindings& bindings) const {
  return enter_library([&] { return checked(implementation_).mask_fingerprint(shape, bindings); });
}

void Attention::forward(const ForwardTensors& tensors, const Bindings& bindings,
                        const ForwardOptions& options) const {
  const NvtxRange range(spec().name);
  const DefaultFloatEnvironment floats;
  checked(implementation_).forward(tensors, nullptr, bindings, options);
}

void Attention::forward(const ForwardTensors& tensors, const BlockMask& mask,
                        const Bindings& bindings, const ForwardOptions& options) const {
  const NvtxRange range(spec().name);
  const DefaultFloatEnvironment floats;
  checked(implementation_).forward(tensors, &mask, bindings, options);
}

void Attention::backward(const BackwardTensors& tensors, const Bindings& bindings,
                         const GradientBuffers& gradients, const BackwardOptions& options) const {
  const NvtxRange range(spec().name, " backward");
  enter_library(
      [&] { checked(implementation_).backward(tensors, nullptr, bindings, gradients, options); });
}

void Attention::backward(const BackwardTensors& tensors, const BlockMask& mask,
                         const Bindings& bindings, const GradientBuffers& gradients,
                         const BackwardOptions& options) const {
  const NvtxRange range(spec().name, " backward");
  enter_library(
      [&] { checked(implementation_).backward(tensors, &mask, bindings, gradients, options); });
}

std::int64_t Attention::workspace_size(const Shape& shape, Pass pass) const {
  if (pass == Pass::forward) return workspace_size(shape);
  return checked(implementation_).backward_workspace(shape, nullptr, false);
}

std::int64_t Attention::workspace_size(const Shape& shape, Pass pass, const Bindings& bindings,
                                       bool deterministic) const {
  if (pass == Pass::forward) return workspace_size(shape);
  return checked(implementation_).backward_workspace(shape, &bindings, deterministic);
}

void Attention::backward(const BackwardTensors& tensors, const Plan& plan, const Bindings& bindings,
                         const GradientBuffers& gradients, const BackwardOptions& options) const {
  const NvtxRange range(spec().name, " backward");
  enter_library(
      [&] { checked(implementation_).backward(tensors, plan, bindings, gradients, options); });
}

std::int64_t Attention::workspace_size(const PackedShape& shape, Pass pass) const {
  if (pass == Pass::forward) return workspace_size(shape);
  return enter_library(
      [&] { return checked(implementation_).backward_workspace(shape, nullptr, false); });
}

std::int64_t Attention::workspace_size(const PackedShape& shape, Pass pass,
                                       const Bindings& bindings, bool deterministic) const {
  if (pass == Pass::forward) return workspace_size(shape);
  return enter_library(
      [&] { return checked(implementation_).backward_workspace(shape, &bindings, deterministic); });
}

std::int64_t Attention::workspace_size(const PackedShape& shape) const {
  return enter_library([&] { return checked(implementation_).workspace_size(shape); });
}

// No call is split over its columns, so a plan has the same parts either way.
std::int64_t Attention::workspace_size(const PackedShape& shape, bool) const {
  return workspace_size(shape);
}

std::int64_t Attention::workspace_size(const PackedShape& shape, const BlockMask* positions) const {
  return enter_library([&] { return checked(implementation_).workspace_size(shape, positions); });
}

MaskFingerprint Attention::position_fingerprint(std::int64_t length, std::int64_t heads,
                                                const Bindings& bindings) const {
  return enter_library(
      [&] { return checked(implementation_).position_fingerprint(length, heads, bindings); });
}

Plan Attention::plan(const PackedShape& shape, const Sequences& sequences, const Bindings& bindings,
                     const PlanOptions& options) const {
  const NvtxRange range(spec().name, " plan");
  return enter_library(
      [&] { return checked(implementation_).plan(shape, sequences, bindings, options); });
}

void Attention::rebuild(Plan& plan, const Bindings& bindings, Stream stream) const {
  const NvtxRange range(spec().name, " plan");
  enter_library([&] { checked(implementation_).rebuild(plan, bindings, stream); });
}

void Attention::forward(const ForwardTensors& tensors, const Plan& plan, const Bindings& bindings,
                        const ForwardOptions& options) const {
  const NvtxRange range(spec().name);
  const DefaultFloatEnvironment floats;
  checked(implementation_).forward(tensors, plan, bindings, options);
}

void Attention::merge(std::span<const Part> parts, const TensorView& out,
                      const std::optional<TensorView>& lse, Stream stream) const {
  const NvtxRange range(spec().name, " merge");
  const DefaultFloatEnvironment floats;
  checked(implementation_).merge(parts, out, lse, stream);
}

void Attention::append(const NewRows& rows, const TensorView& k, const TensorView& v,
                       const Plan* plan, const Bindings& bindings, Stream stream) const {
  const NvtxRange range(spec().name, " append");
  const DefaultFloatEnvironment floats;
  checked(implementation_).append(rows, k, v, plan, bindings, stream);
}

void Attention::quantise(const TensorView& from, const TensorView& to, const Plan* plan,
                         Operand which, const Bindings& bindings, Stream stream) const {
  const NvtxRange range(spec().name, " quantise");
  const DefaultFloatEnvironment floats;
  checked(implementation_).quantise(from, to, plan, nullptr, which, bindings, stream);
}

void Attention::quantise(const TensorView& from, const TensorView& to, const Shape& shape,
                         Operand which, const Bindings& bindings, Stream stream) const {
  const NvtxRange range(spec().name, " quantise");
  const DefaultFloatEnvironment floats;
  checked(implementation_).quantise(from, to, nullptr, &shape, which, bindings, stream);
}

OutputShapes Attention::output_shapes(const Shape& shape) const {
  return tilewright::output_shapes(spec(), shape);
}

OutputShapes Attention::output_shapes(const PackedShape& shape) const {
  return tilewright::output_shapes(spec(), shape);
}

std::int64_t Attention::workspace_size(const Shape& shape) const {
  return enter_library([&] { return checked(implementation_).workspace_size(shape); });
}

}  // namespace tilewright
