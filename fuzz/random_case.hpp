#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../verify/random.hpp"
#include "case.hpp"
#include "coverage.hpp"
#include "features.hpp"
#include "relation_choice.hpp"

namespace tilewright::verify::fuzz {

/// What cases are made of and where they run.
struct CaseSource {
  /// A user's spec: its snippets, buffers and scalars stay, all the rest varies.
  std::optional<Spec> user_spec = {};
  /// Of its buffers: FuzzCase::null_extents.
  std::map<std::string, std::vector<std::int64_t>> null_extents = {};
  std::string device = "cpu";     ///< "cpu" or "cuda"
  std::string gpu_target = {};    ///< of the GPU that runs them: "sm_90a"; for tactics
  bool offsets = true;            ///< q_idx and kv_idx may start elsewhere than at 0
  bool self_attention = false;    ///< kv_len is q_len; give false for offsets, too
  bool gradients = false;         ///< every case asks for gradients
  std::int64_t max_length = 600;  ///< of q and kv
  /// Of all score matrices of a call: batch and heads, then lengths, are made smaller for it.
  std::int64_t max_elements = 150'000;
  /// One spec in so many has a case that checks a metamorphic relation too, and of packed ones one
  /// in half as many, whose relations compile little; 0: none.
  std::int64_t relation_every = 6;
  /// One spec of random snippets in so many for a CPU has kernels that end their process at
  /// undefined behaviour; 0: none. What a user's text does at an element that mask_mod drops is no
  /// failure.
  std::int64_t sanitize_every = 12;
};

/// "dtype=f8e4m3", ...: what no case of the source shows, as each has gradients, and other cases
/// would show. Empty where cases without gradients are made too.
std::vector<std::string> dropped_for_gradients(const CaseSource& source);

/// Makes cases, steering to pairs of features that no case has shown yet. The same seed and the
/// same calls give the same cases.
class CaseMaker {
 public:
  CaseMaker(CaseSource source, std::uint64_t seed);

  /// Cases of one spec, which share kernels: the spec changes from one call to the next.
  /// @param calls how many
  std::vector<FuzzCase> next_group(int calls);

  /// A kernel of another spec for a GPU, to be compiled only.
  FuzzCase next_compile();

  /// Of the cases that were made, which are taken to be run.
  const PairCoverage& coverage() const { return coverage_; }
  /// Of those that are compiled only.
  const PairCoverage& compile_coverage() const { return compile_coverage_; }
  std::uint64_t seed() const { return seed_; }

 private:
  CaseSource source_;
  std::uint64_t seed_;
  Random random_;
  std::int64_t number_ = 0;
  std::int64_t groups_ = 0, packed_groups_ = 0;
  RelationChoice relations_ = {};
  PairCoverage coverage_;
  PairCoverage compile_coverage_;
};

}  // namespace tilewright::verify::fuzz
