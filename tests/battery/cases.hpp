#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "verify/guarded_tensor.hpp"
#include "verify/problem.hpp"
#include "verify/random_inputs.hpp"

namespace tilewright::battery {

/// One call: sizes, and what is special about its tensors. Every tensor lies in guarded memory,
/// with NaN before, after and between its rows.
struct Case {
  std::string name;
  Shape shape;
  verify::RandomOptions random = {};
  verify::Placement placement = {};   ///< of every tensor of the call
  bool one_kv_head_for_all = false;   ///< k and v have stride 0 over their heads
  bool nan_in_one_k_row = false;      ///< reaches the queries that keep it, and no other
  bool nan_in_skipped_tiles = false;  ///< k and v rows of tiles that no query of their heads visits
  bool masked_only = false;           ///< makes no sense without mask_mod
  bool has_offsets = false;           ///< q_idx or kv_idx leave [0, q_len) x [0, kv_len)
  std::optional<double> scale = {};

  /// "odd lengths: batch 2, heads 3/1, q_len 127, kv_len 127"
  std::string describe() const;
};

/// The calls of every spec: a few in a second, or all.
std::vector<Case> all_cases(bool full);

/// The tensors of a case.
class CaseInputs {
 public:
  /// @param attention finds the tiles that are skipped
  CaseInputs(const Spec& spec, const Case& call, const Attention& attention, std::uint64_t seed);

  const verify::Problem& problem() const { return problem_; }

 private:
  TensorView keep(verify::GuardedTensor tensor);

  std::vector<verify::GuardedTensor> tensors_;
  verify::Problem problem_;
};

}  // namespace tilewright::battery
