#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "../../generator/spec/spec.hpp"
#include "../../generator/spec/target.hpp"
#include "backward.hpp"
#include "bindings.hpp"
#include "block_mask.hpp"
#include "device.hpp"
#include "plan.hpp"
#include "sequences.hpp"
#include "shape.hpp"
#include "stream.hpp"
#include "tensor.hpp"
#include "thread_pool.hpp"
#include "toolchain.hpp"

namespace tilewright {

/// Where an Attention runs and what it works with. The defaults are right for most programs.
struct AttentionOptions {
  /// Tensors, buffers and block masks of calls lie where this device reads them.
  Device device = Device::automatic();
  Toolchain kernels = {};  ///< store, templates, diagnostics
  /// Threads of calls on a CPU: a ThreadPool, or the program's own. It outlives the Attention.
  /// None: ThreadPool::shared().
  Executor* threads = nullptr;
  /// For a spec without mask_mod: its calls bring block masks all the same, made from lists of full
  /// tiles (mask_lists.hpp).
  bool takes_block_mask = false;
  /// Makes the kernel of the block mask alone; forward is refused. For programs that look at masks.
  bool masks_only = false;
  /// Plans of packed calls may be given positions with a list for each head: workspace_size(shape)
  /// has room for them.
  bool positions = false;
  /// Makes the kernel of Attention::merge too.
  bool merge = false;
  /// Makes the kernel of Attention::append too, for a spec with paged k and v.
  bool append = false;
  /// On a GPU, makes kernels for dense calls with few rows too: those whose q_len times query heads
  /// of a head of k and v are at most 16, with 16-bit q, read k and v once for all of these heads,
  /// and may be split over the columns (ForwardOptions::workspace). On Hopper it also makes the
  /// kernel of calls with more rows, but too few q tiles for the GPU, which are split likewise.
  /// Packed calls have both without it.
  bool decode = false;
  /// Makes the kernel of Attention::quantise too, for a spec whose k and v have elements of one
  /// byte.
  bool quantise = false;
};

/// The tensors of one call, in the spec's dtypes; on a GPU their data are device pointers. Shapes
/// as in the spec's layouts; for bhsd:
///   q, out [batch, num_q_heads, q_len, head_dim; v_head_dim in out]
///   k, v   [batch or 1, num_kv_heads, kv_len, head_dim; v_head_dim in v]
///   lse, max_scores [batch, num_q_heads, q_len] f32, contiguous
///   weights [batch, num_q_heads, q_len, kv_len] in out's dtype, contiguous, of both dense layouts
/// For bshd the middle dimensions of q and out (by kv_layout: of k and v) change places; lse keeps
/// its order. Of packed and paged calls see forward with a Plan. Any strides with a contiguous last
/// dimension; 0 broadcasts q, k and v. No byte of out or lse belongs to another element, tensor or
/// buffer, but tensors may interleave as slices of one allocation, and out may be q itself: with
/// its data, shape, strides and size of an element.
struct ForwardTensors {
  TensorView q = {};
  TensorView k = {};
  TensorView v = {};
  TensorView out = {};
  std::optional<TensorView> lse = {};
  /// Of a spec with kv_new alone: [total_q, num_kv_heads, head_dim; v_head_dim in v_new] in its
  /// dtype.
  std::optional<TensorView> k_new = {};
  std::optional<TensorView> v_new = {};
  /// Where the spec's outputs name it: the greatest kept score of each row, in lse's shape.
  std::optional<TensorView> max_scores = {};
  /// Where the spec's outputs name it: the softmax's weights. Out may then not be q's memory: their
  /// kernel reads q after forward has written out.
  std::optional<TensorView> weights = {};
};

/// Run-time values of a call that no kernel depends on.
struct ForwardOptions {
  std::int64_t q_offset = 0;         ///< q_idx = row + q_offset
  std::int64_t kv_offset = 0;        ///< kv_idx = column + kv_offset
  std::optional<double> scale = {};  ///< none: the spec's
  Stream stream = nullptr;           ///< of a GPU
  /// Of a dense call of an Attention with options.decode: workspace_size(shape) bytes of device
  /// memory at a multiple of 256, with which a call of few rows or few q tiles is split over its
  /// columns. Filled with zeros once by the caller; each call leaves its first 16 KiB zero, and
  /// anything after them. It belongs to one call at a time: one for each stream, for calls of any
  /// shapes, specs and Attentions. None: such a call runs unsplit, each q tile, or each head of k
  /// and v if it has few rows, on one multiprocessor. Unsplit calls ignore it.
  TensorView workspace = {};
  /// Of a dense call with a workspace: into how many parts its columns are cut, as
  /// PlanOptions::splits; 0: its sizes say.
  std::int64_t splits = 0;
};

/// Rows of k and v that a step has made.
struct NewRows {
  TensorView k_new = {};  ///< [rows, num_kv_heads, head_dim], in the spec's dtype
  TensorView v_new = {};  ///< [rows, num_kv_heads, v_head_dim], likewise
  /// i32 or i64 [rows]: the row of the pool, page * page_size + row of the page, that each goes to;
  /// below 0 or at least pages * page_size: nowhere. None: the plan says.
  std::optional<TensorView> slots = {};
};

/// One of a call's tensors that may have elements of one byte.
enum class Operand : std::uint8_t { q, k, v };

/// What a call over some of the columns gave.
struct Part {
  TensorView out = {};  ///< as ForwardTensors::out, in the same dtype
  TensorView lse = {};  ///< as ForwardTensors::lse
};

/// Tensors that a call writes: dtype, shape and dense strides, without data.
struct OutputShapes {
  TensorView out = {};
  std::optional<TensorView> lse = {};         ///< where the spec's outputs name it
  std::optional<TensorView> max_scores = {};  ///< likewise
  std::optional<TensorView> weights = {};     ///< likewise
};

/// One attention variant, ready to run. Immutable; may be used from many threads at once, and in
/// many CUDA contexts, each of which must outlive it and its block masks. On a GPU it must outlive
/// the work of its calls in their streams, and the graphs that captured them: its kernels go with
/// it. May be called while the process or a thread ends, and on a CPU in a forked child
/// (docs/troubleshooting.md).
///     Attention attention({.dtype = bf16, .head_dim = 128, .mask_mod = "q_idx >= kv_idx"});
///     BlockMask mask = attention.block_mask({.q_len = n, .kv_len = n});
///     attention.forward({.q = q, .k = k, .v = v, .out = out}, mask);
class Attention {
 public:
  /// Checks the spec, renders its kernels, compiles those that no cache holds, and loads them.
  /// @throws Error: see validate(Spec), load_kernel
  explicit Attention(Spec spec, AttentionOptions options = {});
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;
  ~Attention();

  /// As given. Where `tilewright tune` remembered a tactic for it and this device, with that
  /// tactic (docs/howto/tune.md).
  const Spec& spec() const;
  const Device& device() const;  ///< where it runs
  const Target& target() const;  ///< what its kernels were compiled for
  /// How each kernel came to be: rendered, compiled or found, loaded, with times.
  std::vector<KernelBuild> builds() const;

  /// Makes ready for calls from the calling thread's CUDA context, where that is another one than
  /// the constructor saw; a first forward does the same. Does nothing on a CPU.
  /// @throws Error with code device where the context's GPU cannot run the kernels
  void prepare() const;

  /// Resolves buffers and scalars against the spec, once for many calls.
  /// @throws Error with code tensor or usage
  Bindings bind(const SnippetInputs& inputs) const;

  /// Lists the tiles of q_len x kv_len that mask_mod keeps something of: by intervals wherever they
  /// decide, else by evaluation, with the same result. Per batch if mask_mod names b, per head if
  /// it names h or h_kv. On a GPU it works in the stream's order and waits once, for the number of
  /// tiles; the lists stay on the device. A forward in another stream must be ordered after it by
  /// the caller.
  /// @throws Error with code usage where the spec has no mask_mod, or options.capacity is out of
  ///         range; with code tensor as forward, or where there are more than 2^31 - 1 rows of
  ///         tiles
  BlockMask block_mask(const Shape& shape, const Bindings& bindings = {},
                       Stream stream = nullptr) const;
  BlockMask block_mask(const Shape& shape, const Bindings& bindings,
                       const BlockMaskOptions& options) const;

  /// Lists the tiles of a mask anew, as after a change of its buffers' contents: for the same
  /// shape, offsets and scalars. On a GPU the mask must have been made with a capacity, by this
  /// Attention; its memory is used again, so it neither waits nor allocates, and may be captured in
  /// a CUDA graph. On a CPU the mask must not have been made on a GPU. All copies of the mask
  /// change.
  /// @throws Error with code block_mask for a mask that does not fit, has no capacity, or was made
  ///         elsewhere
  void rebuild(BlockMask& mask, const Shape& shape, const Bindings& bindings = {},
               Stream stream = nullptr) const;

  /// What a block mask of this spec is built from, for masks from lists (mask_lists.hpp). The shape
  /// in it is the call's, with the call's batch and heads.
  /// @throws Error with code usage, tensor as block_mask
  MaskFingerprint mask_fingerprint(const Shape& shape, const Bindings& bindings = {}) const;

  /// What lists over positions (PlanOptions::positions) are built from, for masks from lists
  /// (mask_lists.hpp).
  /// @param length positions that the lists have, of rows and of columns
  /// @param heads 1, or num_q_heads of the calls where the lists may be one for each head
  /// @throws Error with code usage where the spec is not packed, or has no mask_mod, or one that
  ///         names b, q_len, kv_len, q_token or kv_token; with code tensor for sizes below 1
  MaskFingerprint position_fingerprint(std::int64_t length, std::int64_t heads = 1,
                                       const Bindings& bindings = {}) const;

  /// out = softmax(mask_mod(score_mod(q k^T * scale))) v, for a spec without mask_mod. Rows with
  /// nothing kept give out 0 and lse -inf. Never compiles. On a GPU it neither waits nor allocates,
  /// works in the calling thread's current CUDA context, else in the GPU's primary one, and may be
  /// captured in a CUDA graph.
  /// @throws Error with code tensor for a wrong rank, shape, dtype, stride, a missing or extra lse,
  ///         or a workspace that is too small, misaligned, or overlaps a tensor;
  ///         with code usage for options.splits below 0;
  ///         with code block_mask where the spec has a mask_mod, or options.takes_block_mask is set
  void forward(const ForwardTensors& tensors, const Bindings& bindings = {},
               const ForwardOptions& options = {}) const;

  /// The same for a spec with mask_mod, or with options.takes_block_mask, over the tiles of a block
  /// mask.
  /// @throws Error also with code block_mask where the mask was built from something else than this
  /// call
  void forward(const ForwardTensors& tensors, const BlockMask& mask, const Bindings& bindings = {},
               const ForwardOptions& options = {}) const;

  /// The gradients that the spec names, of a scalar that depends on out and lse through dout and
  /// dlse. score_mod is differentiated by itself; where it has a kink see docs/gradients.md. Each
  /// gradient is written, not added to: dk and dv of columns that no row keeps are 0, and rows with
  /// nothing kept give 0, whatever their dout and dlse hold. Reads of a buffer at an index outside
  /// it read the nearest cell, and give their gradient to it. Never compiles.
  /// @throws Error as forward; with code usage where the spec has no gradients; with code tensor
  ///         for a tensor that is missing, extra or of another shape or dtype, or one that is
  ///         written and overlaps another
  void backward(const BackwardTensors& tensors, const Bindings& bindings = {},
                const GradientBuffers& gradients = {}, const BackwardOptions& options = {}) const;

  /// The same over the tiles of the forward call's block mask, which has its transposed lists.
  /// @throws Error also with code block_mask for one without them
  void backward(const BackwardTensors& tensors, const BlockMask& mask,
                const Bindings& bindings = {}, const GradientBuffers& gradients = {},
                const BackwardOptions& options = {}) const;

  /// The same of packed sequences, with the forward call's plan, made with PlanOptions::backward.
  /// Shapes: dq, dk, dv as q, k, v; dout as out; lse, dlse [num_q_heads, total_q].
  ///     Plan plan = attention.plan(shape, sequences, {}, {.workspace = memory, .backward = true});
  ///     attention.forward({.q = q, .k = k, .v = v, .out = out, .lse = lse}, plan);
  ///     attention.backward({.q = q, .k = k, .v = v, .out = out, .lse = lse, .dout = dout,
  ///                         .dq = dq, .dk = dk, .dv = dv}, plan);
  /// @throws Error also with code usage for a plan of another Attention or one without
  ///         PlanOptions::backward, for offsets in `options`, or where scalars that mask_mod reads
  ///         differ from the plan's
  void backward(const BackwardTensors& tensors, const Plan& plan, const Bindings& bindings = {},
                const GradientBuffers& gradients = {}, const BackwardOptions& options = {}) const;

  /// What a call of this shape writes, for programs that allocate it.
  /// @throws Error with code tensor as validate(shape); with code usage for a Shape where the spec
  ///         is packed, and for a PackedShape where it is not
  OutputShapes output_shapes(const Shape& shape) const;
  OutputShapes output_shapes(const PackedShape& shape) const;

  /// Bytes of device memory with which a dense call of this shape may be split over its columns
  /// (ForwardOptions::workspace). 0 on a CPU, without options.decode, and where a split gains
  /// nothing: q tiles enough for the GPU, or too few columns.
  /// @throws Error with code tensor as validate(shape)
  std::int64_t workspace_size(const Shape& shape) const;

  /// The same of a pass. Backward needs none on a CPU. On a GPU it needs 8 bytes for each row of
  /// q of each head, and 4 more bytes for each element of q where buffers or scalars have
  /// gradients. Gradients in 16 bits and deterministic ones that do not fit need more: see below.
  /// @throws Error with code usage for backward where the spec has no gradients
  std::int64_t workspace_size(const Shape& shape, Pass pass) const;

  /// Exactly enough for backward calls with these buffers.
  /// @param bindings have tensors for all of the spec's buffers
  /// @throws Error with code usage where the spec has no gradients
  std::int64_t workspace_size(const Shape& shape, Pass pass, const Bindings& bindings,
                              bool deterministic) const;

  /// The same of packed calls: what BackwardOptions::workspace takes. The plan's own workspace is
  /// workspace_size(shape).
  std::int64_t workspace_size(const PackedShape& shape, Pass pass) const;
  std::int64_t workspace_size(const PackedShape& shape, Pass pass, const Bindings& bindings,
                              bool deterministic) const;

  /// Bytes of device memory that the plan of packed calls takes, those that PlanOptions::backward
  /// asks for included. Host arithmetic: lengths of
  /// sequences are not asked. With options.positions enough for any positions; without it a plan
  /// with positions needs what the function below says.
  /// @throws Error with code usage where the spec is not packed; with code tensor as
  ///         validate(PackedShape)
  std::int64_t workspace_size(const PackedShape& shape) const;

  /// The same of a plan that is, or is not, PlanOptions::batch_invariant.
  std::int64_t workspace_size(const PackedShape& shape, bool batch_invariant) const;

  /// The same of a plan with these positions.
  /// @param positions null: without
  std::int64_t workspace_size(const PackedShape& shape, const BlockMask* positions) const;

  /// Plans packed calls: reads and clamps the sequences' lengths, and decides which tiles mask_mod
  /// keeps something of. On a GPU it launches a kernel in the stream's order and neither waits nor
  /// allocates, so it may be captured in a CUDA graph. The sequences' tensors are read again by
  /// each rebuild; forward does not read them.
  ///     PackedShape shape = {.batch = n, .num_q_heads = 32, .num_kv_heads = 8, .total_q = rows,
  ///     ...}; Plan plan = attention.plan(shape, {.q_begin = begins, .kv_begin = begins}, {},
  ///                                {.workspace = memory});
  ///     attention.forward({.q = q, .k = k, .v = v, .out = out}, plan);
  /// With options.positions lists over positions take mask_mod's place in deciding tiles.
  /// @throws Error with code usage where the spec is not packed, and for options.splits below 0;
  ///         with code tensor for a wrong shape, tensor or workspace; for positions as
  ///         position_fingerprint, with code block_mask where they were built from something else,
  ///         with code usage where sequences.kv_offset is given with them
  Plan plan(const PackedShape& shape, const Sequences& sequences, const Bindings& bindings,
            const PlanOptions& options) const;

  /// Plans the next step: the contents of the sequences' tensors or of buffers have changed, or
  /// scalars have. Every copy of the plan changes.
  /// @throws Error with code usage for a plan of another Attention; with code block_mask where
  ///         scalars that mask_mod reads differ from those of the plan's positions
  void rebuild(Plan& plan, const Bindings& bindings = {}, Stream stream = nullptr) const;

  /// Attention of packed sequences. Rows of out and lse that belong to no sequence keep what they
  /// hold. Shapes: q, out [total_q, num_q_heads, head_dim; v_head_dim in out], k, v [total_kv,
  /// num_kv_heads, head_dim; v_head_dim in v], lse [num_q_heads, total_q] f32, contiguous.
  /// @throws Error with code tensor as above; with code usage for a plan of another Attention, for
  ///         offsets in `options`, or where scalars that mask_mod reads differ from the plan's
  void forward(const ForwardTensors& tensors, const Plan& plan, const Bindings& bindings = {},
               const ForwardOptions& options = {}) const;

  /// Joins calls over different columns of the same rows into the attention over all of them: lse =
  /// log(sum of exp(lse_i)), out = sum of exp(lse_i - lse) out_i, in float32. A part whose lse is
  /// -inf does not count, whatever its out holds; where no part counts, out is 0 and lse -inf. On a
  /// GPU as forward: neither waits nor allocates. Needs options.merge.
  ///     attention.merge(std::array{Part{out_1, lse_1}, Part{out_2, lse_2}}, out, lse);
  /// @param parts 2 to 16, with the shapes of out and lse
  /// @param out   as ForwardTensors::out; may be a part's out, with the same shape and strides, but
  ///              shares no other byte with a part
  /// @param lse   none: it is not wanted; may be a part's lse
  /// @throws Error with code usage without options.merge, or for another number of parts; with code
  ///         tensor for a wrong shape, dtype or stride, a part without lse, or an overlap
  void merge(std::span<const Part> parts, const TensorView& out,
             const std::optional<TensorView>& lse = {}, Stream stream = nullptr) const;

  /// Copies new rows of k and v into the pools: each to its slot, or without slots the rows of each
  /// sequence of the plan, [total_q, ...] as q has them, to its last q_len columns. Rows that have
  /// no column, or whose page is freed or absent, are skipped, as are slots out of range; all other
  /// memory of the pools stays as it is. Values are divided by k_scale and v_scale, if the spec has
  /// them, and rounded to kv_dtype; finite ones stay finite. On a GPU as forward: neither waits nor
  /// allocates. Needs options.append.
  ///     attention.append({.k_new = k, .v_new = v}, layer.k, layer.v, &plan);
  /// @param k, v pools, as forward takes them; no two elements share bytes
  /// @param plan null if rows have slots; else one of this Attention
  /// @param bindings what k_scale and v_scale read. With slots these name h_kv and kv_token alone
  /// @throws Error with code usage without options.append, for neither slots nor a plan, a plan of
  ///         another Attention, or slots where a scale names more than they say; with code tensor
  ///         for a wrong shape, dtype or stride, or an overlap
  void append(const NewRows& rows, const TensorView& k, const TensorView& v,
              const Plan* plan = nullptr, const Bindings& bindings = {},
              Stream stream = nullptr) const;

  /// Stores q, k or v as numbers of one byte: value / scale, with the spec's q_scale, k_scale or
  /// v_scale, rounded to the nearest (ties to even) and clamped to what the dtype holds: +-448 in
  /// f8e4m3, +-57344 in f8e5m2, -128 to 127 in i8. An infinity becomes the greatest number if the
  /// dtype has none. NaN stays NaN, and becomes 0 in i8. With a plan, quantise stores only the rows
  /// of its sequences, by their positions and lengths. It finds rows of paged k and v by the page
  /// table, and skips new rows of a spec with kv_new. Without a plan it stores every row: in dense
  /// layouts a row's position is its index; in packed layouts a scale may name q_token or kv_token,
  /// but no sequence, position or length. Neither waits nor allocates on a GPU. Needs
  /// options.quantise.
  ///     attention.quantise(k_in_bf16, k_in_f8, nullptr, Operand::k, bindings);
  /// @param from f32, f16 or bf16, in the layout and shape of `to`, with any strides
  /// @param to   q, k or v as forward takes it; no two elements share bytes
  /// @param plan null, or one of this Attention
  /// @throws Error with code usage without options.quantise, for q of a wider dtype, a plan of
  ///         another Attention, or a scale that names what its tensor alone does not say: in packed
  ///         layouts give a plan, in dense ones the shape; with code tensor for a wrong shape,
  ///         dtype or stride, or an overlap
  void quantise(const TensorView& from, const TensorView& to, const Plan* plan, Operand which,
                const Bindings& bindings = {}, Stream stream = nullptr) const;

  /// The same for a dense spec, with the sizes and offsets of the call that `to` is for: a q_scale
  /// may name h_kv, and positions count from the offsets.
  void quantise(const TensorView& from, const TensorView& to, const Shape& shape, Operand which,
                const Bindings& bindings = {}, Stream stream = nullptr) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace tilewright
