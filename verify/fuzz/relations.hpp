#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "../../generator/spec.hpp"
#include "../../runtime/block_mask.hpp"
#include "../../runtime/device.hpp"
#include "../../runtime/kernel_library.hpp"
#include "../attention_values.hpp"
#include "../problem.hpp"
#include "../random_inputs.hpp"

namespace tilewright::verify::fuzz {

/// What holds between two calls of attention, whatever it computes: no reference is asked.
enum class Relation : std::uint8_t {
  permuted_keys,    ///< keys in another order, the snippets' kv_idx with them: the same
  split_keys,       ///< two calls that mask_mod divides the keys between, merged by lse: the same
  added_constant,   ///< score_mod + c: the same out, lse + c
  mask_as_score,    ///< mask_mod(p) is score_mod(p ? s : -INFINITY)
  tactics,          ///< other tiles, block masks of other tiles, one thread: the same
  duplicated_keys,  ///< every key twice: the same out, lse + ln 2
  one_head,         ///< a head alone is that head among others
  one_batch,        ///< a batch alone likewise
  linear_in_v,      ///< out of v + w is out of v plus out of w; of 2 v it is twice that, exactly
  padding,          ///< further keys that mask_mod drops change nothing, NaN in k included
  offsets,          ///< q_offset and kv_offset are snippets with shifted indices
  proved_mask,      ///< a block mask by intervals is the one by evaluation
  json_spec,        ///< a spec that was written as JSON and read is the same, bit for bit
  cached,           ///< kernels from a cache are those compiled anew, bit for bit
};

/// "permuted_keys", ...
std::string_view to_string(Relation relation);
/// @throws Error with code file for a name that is none
Relation relation_from_string(std::string_view name);
std::span<const Relation> all_relations();

/// Runs the calls of a relation. A test puts a faulty one in its place.
class RelationRunner {
 public:
  enum class Way : std::uint8_t { usual, one_thread, fresh_kernels };

  virtual ~RelationRunner() = default;
  /// out and lse. @throws Error as Attention
  virtual AttentionValues forward(const Spec& spec, const Problem& problem, Way way) = 0;
  virtual BlockMask block_mask(const Spec& spec, const Problem& problem) = 0;
  /// The spec, written as JSON and read.
  virtual Spec reread(const Spec& spec) = 0;

  AttentionValues forward(const Spec& spec, const Problem& problem) {
    return forward(spec, problem, Way::usual);
  }
};

/// Runs them with the library's kernels on a device.
class KernelRelationRunner : public RelationRunner {
 public:
  explicit KernelRelationRunner(const Device& device, KernelContext kernels = {});
  using RelationRunner::forward;
  AttentionValues forward(const Spec& spec, const Problem& problem, Way way) override;
  BlockMask block_mask(const Spec& spec, const Problem& problem) override;
  Spec reread(const Spec& spec) override;

 private:
  Device device_;
  KernelContext kernels_;
};

/// What became of a relation.
struct RelationResult {
  bool applies = true;        ///< false: it says nothing of this spec, and nothing was run
  std::string message = {};   ///< how it is broken; empty where it holds
  double share_of_bound = 0;  ///< how far apart the two sides are, of what rounding may do

  bool holds() const { return message.empty(); }
};

/// Runs a relation for a spec (its own snippets, or a user's) and inputs in its layouts. lse is
/// always written.
/// @throws Error as the runner
RelationResult check_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                              RelationRunner& runner);

}  // namespace tilewright::verify::fuzz
