#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attention.hpp"
#include "communicator.hpp"

namespace tilewright {

/// How a sequence is split over the ranks.
enum class Sharding : std::uint8_t {
  automatic,   ///< the one whose busiest rank visits fewer tiles of the mask; contiguous if equal
  contiguous,  ///< rank r has the r-th part
  /// Of 2 * size parts rank r has the r-th and the r-th from the end. Of packed sequences each is
  /// split so.
  zigzag,
};

/// Rows of q and columns of k and v that lie together in the sequence and on one rank. Of packed
/// sequences: in the packed tensors.
struct Shard {
  std::int64_t q_begin = 0;  ///< the first row, of those of the whole
  std::int64_t q_len = 0;
  std::int64_t kv_begin = 0;
  std::int64_t kv_len = 0;

  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Packed sequences that ranks share. Every rank knows all lengths, on the host.
struct SharedSequences {
  std::int64_t num_q_heads = 1;  ///< of this rank
  std::int64_t num_kv_heads = 1;
  /// [sequences + 1], from 0, never falling: rows q_begin[b] .. q_begin[b + 1] of the whole packed
  /// q are those of sequence b.
  std::vector<std::int64_t> q_begin = {};
  std::vector<std::int64_t> kv_begin = {};  ///< likewise of k and v; empty: q_begin
  /// [sequences]: position of the first row; empty: kv_offset + kv_len - q_len.
  std::vector<std::int64_t> q_offset = {};
  std::vector<std::int64_t> kv_offset = {};  ///< of the first column; empty: 0
};

struct ContextPlanOptions {
  Sharding sharding = Sharding::automatic;
  /// Rows of q, and columns of k and v, of each rank, for contiguous shards of given lengths.
  /// Empty: shards have as many tiles each as possible. Both or none.
  std::vector<std::int64_t> q_lengths = {};
  std::vector<std::int64_t> kv_lengths = {};
  Stream stream = nullptr;  ///< of a GPU, for the block masks
};

/// What one call of a rank does.
struct ContextTraffic {
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  /// What the rank would send if each rank sent all its k and v to each other one.
  std::int64_t bytes_of_full_ring = 0;
  std::int64_t backward_bytes_sent = 0;  ///< of backward: k, v and gradients; 0 without gradients
  std::int64_t backward_bytes_received = 0;
  std::int64_t calls = 0;                ///< of forward, over a pair of shards
  std::vector<std::int64_t> tiles = {};  ///< of the mask, that each rank visits
};

struct ContextPlanState;

/// Who computes and sends what, with the block masks of the pairs of shards: made by
/// ContextParallel::plan for one shape. Copies share it. One call at a time uses a plan.
class ContextPlan {
 public:
  /// Of the whole sequence. Of packed ones: batch 1, and all rows and columns.
  const Shape& shape() const;
  Sharding sharding() const;  ///< contiguous or zigzag
  /// Of this rank, in the order of the rows of its tensors: 1, or 2 if zigzag. Of packed sequences
  /// in zigzag: the early part of each, then the late part of each, those without rows left out.
  std::vector<Shard> shards() const;
  std::int64_t q_rows() const;   ///< of this rank's q and out: those of its shards together
  std::int64_t kv_rows() const;  ///< of this rank's k and v
  ContextTraffic traffic() const;

  /// For the library itself.
  explicit ContextPlan(std::shared_ptr<ContextPlanState> state) : state_(std::move(state)) {}
  ContextPlanState& state() const { return *state_; }

 private:
  std::shared_ptr<ContextPlanState> state_;
};

/// Run-time values of a call.
struct ContextCallOptions {
  /// Device memory of at least ContextParallel::workspace_size bytes at a multiple of 256, in any
  /// dtype; the call's until its stream has passed it.
  TensorView workspace = {};
  std::optional<double> scale = {};  ///< none: the spec's
  Stream stream = nullptr;           ///< of a GPU
  /// Of backward: equal bits over runs with as many ranks. On a CPU they always are.
  bool deterministic = false;
};

/// Attention over a sequence that several ranks share, each with some rows of q, k, v and out, or
/// over packed sequences. Any dense or packed spec serves: snippets see positions in the whole
/// sequence, and q_len and kv_len of the whole. Shards of k and v travel to the ranks whose mask
/// keeps something of them, as far as it does; results over different columns are joined by
/// Attention::merge, and gradients of shards that travelled come back and are added up in f32.
/// Every rank makes one, with the same spec, and makes the same calls in the same order.
///     ContextParallel context(spec, communicator, {.device = Device::parse("cuda:3")});
///     Bindings bindings = context.bind(shape, {.buffers = ...});
///     ContextPlan plan = context.plan(shape, bindings);
///     context.forward({.q = q, .k = k, .v = v, .out = out}, plan, bindings, {.workspace =
///     memory}); context.wait();
class ContextParallel {
 public:
  /// Compares the spec with all other ranks', and compiles or loads kernels as Attention does.
  /// Buffers whose dimensions are named q_len and kv_len have the whole sequence's lengths, on each
  /// rank; dimensions named by heads have the rank's heads.
  /// @param options as for Attention; merge is set by itself
  /// @throws Error as Attention; with code usage for pages, for a packed spec that reads q_len,
  ///         kv_len, q_token or kv_token, and for a communicator that is null; with code spec,
  ///         naming the rank and both values, where a rank has another spec; with code device where
  ///         a rank is gone
  ContextParallel(Spec spec, std::shared_ptr<Communicator> communicator,
                  AttentionOptions options = {});
  ContextParallel(ContextParallel&&) noexcept;
  ContextParallel& operator=(ContextParallel&&) noexcept;
  ~ContextParallel();

  const Spec& spec() const;  ///< as it was given
  Communicator& communicator() const;

  /// @param whole lengths of the whole sequence, batch and heads of this rank's tensors
  /// @throws Error as Attention::bind
  Bindings bind(const Shape& whole, const SnippetInputs& inputs = {}) const;
  /// Of a packed spec.
  Bindings bind(const SharedSequences& whole, const SnippetInputs& inputs = {}) const;

  /// Compares the shape with all other ranks', builds the block masks, chooses the sharding and
  /// makes connections. Contents of buffers that mask_mod reads are part of the plan: make another
  /// one after they change. They are the same on each rank.
  /// @throws Error with code tensor for fewer rows or columns than shards, for lengths that do not
  ///         add up, or, naming the rank and both values, where a rank has another shape or other
  ///         options; as Attention::block_mask; with code device where a rank is gone
  ContextPlan plan(const Shape& whole, const Bindings& bindings = {},
                   const ContextPlanOptions& options = {}) const;
  /// Of a packed spec. The plan owns device memory, and is made once for calls of the
  /// same lengths, such as the layers of a step.
  ContextPlan plan(const SharedSequences& whole, const Bindings& bindings = {},
                   const ContextPlanOptions& options = {}) const;

  /// Bytes that a pass needs: forward has room for shards of peers and for results over some
  /// columns, backward for shards of peers, for gradients of theirs and for sums in f32.
  /// @throws Error with code usage for backward where the spec has no gradients
  std::int64_t workspace_size(const ContextPlan& plan, Pass pass = Pass::forward) const;

  /// The same, for deterministic calls of backward too: on a GPU those of a spec with gradients of
  /// buffers or scalars need more.
  std::int64_t workspace_size(const ContextPlan& plan, Pass pass, bool deterministic) const;

  /// out = attention of this rank's rows over the whole sequence. Tensors have the spec's layouts
  /// and this rank's rows: those of its first shard, then those of its second one. k and v of a
  /// rank that sends are dense within a head (bhsd) or a batch (bshd). lse is given where the
  /// spec's outputs name it. On a GPU it neither waits for the GPU nor allocates; k and v travel on
  /// a separate stream, while kernels work on the shards at hand, and the call's stream waits
  /// for both.
  /// @throws Error as Attention::forward, naming the rank; with code tensor for out that overlaps
  ///         q, k or v, or a workspace that is too small; with code device where a rank is gone
  void forward(const ForwardTensors& tensors, const ContextPlan& plan,
               const Bindings& bindings = {}, const ContextCallOptions& options = {}) const;

  /// The gradients that the spec names. Each is written, not added to. Those of q, k and v are of
  /// this rank's rows, over the whole sequence. q, k, v, out and lse are what forward read and
  /// wrote, dout and dlse have this rank's rows, as out and lse. k and v travel again, as in
  /// forward; gradients of a peer's columns go back to it, one part for each of this rank's shards
  /// in the dtype of k and v, and their owner adds the parts up in f32. Gradients of buffers and
  /// scalars are whole, with equal bits on all ranks: each rank's share is added in f32, in the
  /// order of ranks. On a GPU as forward.
  /// @param gradients as Attention::backward takes them
  /// @throws Error as Attention::backward, naming the rank; with code usage where the spec has no
  ///         gradients; with code tensor for a gradient that overlaps another tensor, a workspace
  ///         that is too small, or buffers with gradients of another shape than the plan's; with
  ///         code device where a rank is gone
  void backward(const BackwardTensors& tensors, const ContextPlan& plan,
                const Bindings& bindings = {}, const GradientBuffers& gradients = {},
                const ContextCallOptions& options = {}) const;

  /// Waits for the calls in a stream of a GPU, at most for the communicator's time-out: a plain
  /// wait would last for ever where a peer is gone.
  /// @throws Error with code device
  void wait(Stream stream = nullptr) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// "automatic", "contiguous", "zigzag".
std::string_view to_string(Sharding sharding);

}  // namespace tilewright
