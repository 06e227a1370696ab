#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/attention.hpp"
#include "../runtime/api/block_mask.hpp"
#include "../runtime/api/device.hpp"
#include "../runtime/api/plan.hpp"
#include "../runtime/library/kernel_library.hpp"
#include "../verify/attention_values.hpp"
#include "../verify/problem.hpp"
#include "../verify/random_inputs.hpp"
#include "case_gradients.hpp"
#include "packing.hpp"
#include "relation.hpp"

namespace tilewright::verify::fuzz {

/// Runs the calls of a relation. A test puts a faulty one in its place.
class RelationRunner {
 public:
  enum class Way : std::uint8_t { usual, one_thread };

  /// Of kernels that a folder held.
  struct FromCache {
    AttentionValues values;
    std::vector<std::string> sources = {};  ///< of each kernel, as KernelBuild has it
  };

  /// Of lengths that lie.
  struct OfLies {
    PlanReport report;
    std::string damage = {};  ///< foreign memory that the call wrote; empty: none
    AttentionValues values;
    std::int64_t row_side = 1;  ///< rows of q in a row of the plan
    std::int64_t room = std::numeric_limits<std::int64_t>::max();  ///< rows that the plan has
  };

  /// Of calls over parts of the columns.
  struct Merged {
    AttentionValues whole;
    std::vector<AttentionValues> parts = {};
  };

  virtual ~RelationRunner() = default;
  /// out and lse. @throws Error as Attention
  virtual AttentionValues forward(const Spec& spec, const Problem& problem, Way way) = 0;
  /// Compiles the spec's kernels into a folder, and runs those that another store reads there.
  virtual FromCache forward_from_cache(const Spec& spec, const Problem& problem) = 0;
  virtual BlockMask block_mask(const Spec& spec, const Problem& problem) = 0;
  /// What a packed call gives whose plan is made in other ways, after plans of `others`: in a
  /// workspace that held one, rebuilt, and rebuilt after its tensors were overwritten.
  virtual std::vector<AttentionValues> forward_replanned(const Spec& spec, const Problem& problem,
                                                         const SequenceNumbers& others,
                                                         const SequenceNumbers& numbers) = 0;
  /// A packed call whose sequences lie. @param shape of the call
  virtual OfLies forward_with_lies(const Spec& spec, const Problem& problem,
                                   const PackedShape& shape) = 0;
  /// A packed call with positions: the block mask of a dense Attention, of one sequence.
  /// @param length of the mask's rows and columns
  virtual AttentionValues forward_with_positions(const Spec& spec, const Problem& problem,
                                                 std::int64_t length) = 0;
  /// A paged call after its new rows were appended to the pools.
  virtual AttentionValues forward_appended(const Spec& spec, const Problem& problem,
                                           const NewRows& rows) = 0;
  /// Packed calls over different columns of the same rows, and Attention::merge of them.
  virtual Merged forward_merged(const Spec& spec, std::span<const Problem> problems) = 0;
  /// Forward and backward of a case's call, with equal bits over runs. Its placement does not
  /// matter.
  virtual void backward(const FuzzCase& fuzz_case, const Problem& problem,
                        CaseGradients& gradients) = 0;
  virtual bool is_on_gpu() const = 0;
  /// Different tactics that can run the spec here.
  virtual std::vector<TacticSpec> tactics(const Spec& spec) = 0;
  /// The spec, written as JSON and read.
  virtual Spec reread(const Spec& spec) = 0;

  AttentionValues forward(const Spec& spec, const Problem& problem) {
    return forward(spec, problem, Way::usual);
  }
};

/// Runs them with the library's kernels on a device.
class KernelRelationRunner : public RelationRunner {
 public:
  explicit KernelRelationRunner(const Device& device, Toolchain kernels = {});
  using RelationRunner::forward;
  AttentionValues forward(const Spec& spec, const Problem& problem, Way way) override;
  FromCache forward_from_cache(const Spec& spec, const Problem& problem) override;
  BlockMask block_mask(const Spec& spec, const Problem& problem) override;
  std::vector<AttentionValues> forward_replanned(const Spec& spec, const Problem& problem,
                                                 const SequenceNumbers& others,
                                                 const SequenceNumbers& numbers) override;
  OfLies forward_with_lies(const Spec& spec, const Problem& problem,
                           const PackedShape& shape) override;
  AttentionValues forward_with_positions(const Spec& spec, const Problem& problem,
                                         std::int64_t length) override;
  AttentionValues forward_appended(const Spec& spec, const Problem& problem,
                                   const NewRows& rows) override;
  Merged forward_merged(const Spec& spec, std::span<const Problem> problems) override;
  void backward(const FuzzCase& fuzz_case, const Problem& problem,
                CaseGradients& gradients) override;
  bool is_on_gpu() const override { return device_.kind() == Device::Kind::cuda; }
  std::vector<TacticSpec> tactics(const Spec& spec) override;
  Spec reread(const Spec& spec) override;

 private:
  Device device_;
  Toolchain kernels_;
};

/// What became of a relation.
struct RelationResult {
  bool applies = true;        ///< false: it says nothing of this spec, or the snippets do not
                              ///< compile in the form that it gives them
  std::string message = {};   ///< how it is broken; empty where it holds
  double share_of_bound = 0;  ///< how far apart the two sides are, of what rounding may do

  bool holds() const { return message.empty(); }
};

/// Runs a relation for a spec (its own snippets, or a user's) and inputs in its layouts. lse is
/// always written.
/// @param packing of a packed call
/// @throws Error as the runner
RelationResult check_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                              RelationRunner& runner, const FuzzPacking& packing = {});

/// The same of a spec with gradients, for a relation that applies; without the relation's name in
/// messages.
RelationResult check_gradient_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                                       const FuzzPacking& packing, RelationRunner& runner);

/// The same of a spec with dropout.
RelationResult check_dropout_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                                      const FuzzPacking& packing, RelationRunner& runner);

/// The same of a packed call, for a relation that applies; without the relation's name in messages.
RelationResult check_packed_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                                     const FuzzPacking& packing, RelationRunner& runner);

}  // namespace tilewright::verify::fuzz
