#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../../templates/abi/append.hpp"
#include "../../templates/abi/merge.hpp"
#include "backward_call.hpp"
#include "forward_call.hpp"
#include "plan_state.hpp"
#include "quantise_call.hpp"

namespace tilewright {

/// What a kind of device does for an Attention, whose calls have been checked when they come here.
class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual const Target& target() const = 0;
  virtual std::vector<KernelBuild> builds() const = 0;

  /// Makes everything that a forward from the calling thread needs, so that none is made there.
  virtual void prepare() const {}

  /// Refuses bindings that fit the spec but not this device.
  virtual void check(const Bindings&) const {}

  /// @param fingerprint its batch and heads say how many lists are made
  /// @param shape the call's, which the snippet sees
  virtual BlockMask block_mask(MaskFingerprint fingerprint, const Shape& shape,
                               const Bindings& bindings, const BlockMaskOptions& options) const = 0;

  /// Lists the tiles of a mask anew, for the same shape.
  virtual void rebuild(BlockMask& mask, const Shape& shape, const Bindings& bindings,
                       Stream stream) const = 0;

  /// Rows of q that a row of a plan stands for.
  virtual std::int64_t plan_row_side() const = 0;

  /// The kernel for sequences with few rows of q.
  virtual DecodeLaunch decode_launch() const { return {}; }

  /// The kernel for calls with too few q tiles.
  virtual SplitLaunch split_launch() const { return {}; }

  /// The kernel for many short sequences.
  virtual ResidentLaunch resident_launch() const { return {}; }

  /// Reads the sequences' tensors anew and lists their tiles.
  virtual void build(PlanState& plan, const Bindings& bindings, Stream stream) const = 0;

  /// @param call from resolve_packed_call
  virtual void forward(const ForwardCall& call, const PlanState& plan,
                       const Bindings& bindings) const = 0;

  /// @param mask null where the spec has no mask_mod
  virtual void forward(const ForwardCall& call, const BlockMask* mask,
                       const Bindings& bindings) const = 0;

  /// Bytes of workspace that a dense call may split with; 0: it takes none.
  virtual std::int64_t forward_workspace(const Shape&) const { return 0; }

  /// @param call from resolve_append, with work
  /// @param plan null: the call has slots
  /// @param bindings read by the spec's k_scale and v_scale
  virtual void append(const abi::AppendArguments& call, const PlanState* plan,
                      const Bindings& bindings, Stream stream) const = 0;

  /// @param call from resolve_quantise, with blocks
  /// @param plan null: all rows of the tensor
  virtual void quantise(const QuantiseCall& call, const PlanState* plan, const Bindings& bindings,
                        Stream stream) const = 0;

  /// @param call from resolve_merge, with rows
  virtual void merge(const abi::MergeArguments& call, Stream stream) const = 0;

  /// @param mask with its transposed lists; null if the call has none
  virtual void backward(const BackwardCall& call, const BlockMask* mask,
                        const Bindings& bindings) const = 0;

  /// Rows of k in a gradient tile; 0 if the spec has no gradients.
  virtual std::int64_t column_side() const { return 0; }

  /// Of a packed spec's backward kernel; zeros where it takes no tiles from the plan.
  virtual BackwardTileSides backward_tile_sides() const { return {}; }

  /// @param call from resolve_packed_backward
  /// @param plan made with PlanOptions::backward
  virtual void backward(const BackwardCall& call, const PlanState& plan,
                        const Bindings& bindings) const = 0;

  /// Bytes of workspace that backward needs. A packed call passes one_batch(shape) and how many
  /// sequences it has. Bindings are null while the buffers are unknown.
  virtual std::int64_t backward_workspace(const Shape&, std::int64_t /*sequences*/, const Bindings*,
                                          bool /*deterministic*/) const {
    return 0;
  }

 protected:
  Backend() = default;
};

}  // namespace tilewright
