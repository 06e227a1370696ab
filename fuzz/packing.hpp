#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/sequences.hpp"
#include "../runtime/api/shape.hpp"
#include "../runtime/api/tensor.hpp"
#include "../verify/guarded_tensor.hpp"
#include "../verify/random_inputs.hpp"
#include "../verify/sequences.hpp"

namespace tilewright::verify::fuzz {

/// How the sequences of a packed case lie in k and v.
enum class KvRows : std::uint8_t {
  together,  ///< one after another: kv_begin [batch + 1] alone
  gaps,      ///< rows of no sequence between them: kv_begin [batch] and kv_len
  backward,  ///< likewise, the last sequence first
  shared,    ///< all begin at the same row, as with a common prefix
};

/// "together", ...
std::string_view to_string(KvRows rows);
/// @throws Error with code file for a name that is none
KvRows kv_rows_from_string(std::string_view name);

/// One sequence of a packed case.
struct FuzzSequence {
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t q_offset = 0;   ///< where FuzzPacking::has_q_offset
  std::int64_t kv_offset = 0;  ///< where FuzzPacking::has_kv_offset

  friend bool operator==(const FuzzSequence&, const FuzzSequence&) = default;
};

/// Where the rows of a packed case's sequences lie. Rows of no sequence hold NaN.
struct FuzzPacking {
  std::vector<FuzzSequence> sequences = {};
  std::int64_t q_rows_before = 0;  ///< rows of q and out before the first sequence
  std::int64_t q_rows_after = 0;
  std::int64_t kv_gap = 0;  ///< rows of k and v before the first sequence, after the last, and
                            ///< between them where kv_rows has gaps
  KvRows kv_rows = KvRows::together;
  bool has_q_offset = false;
  bool has_kv_offset = false;
  bool is_bounded = false;  ///< max_q_len and max_kv_len are the greatest lengths; else none

  friend bool operator==(const FuzzPacking&, const FuzzPacking&) = default;
};

/// The first row of k of each sequence.
std::vector<std::int64_t> kv_begins_of(const FuzzPacking& packing);
std::int64_t total_q_of(const FuzzPacking& packing);
std::int64_t total_kv_of(const FuzzPacking& packing);

/// Sets batch, q_len and kv_len to the sequences' number and totals, as in Problem::shape.
void set_totals(Shape& shape, const FuzzPacking& packing);

/// The contents of a packed call's tensors, as Sequences has them; they may lie.
struct SequenceNumbers {
  std::vector<std::int64_t> q_begin, kv_begin;
  std::optional<std::vector<std::int64_t>> kv_len = {}, q_offset = {}, kv_offset = {};
};

SequenceNumbers numbers_of(const FuzzPacking& packing);
/// The same rows said in another way: every tensor is given.
/// @param q_begin [batch + 1]
SequenceNumbers numbers_of(std::vector<std::int64_t> q_begin,
                           const std::vector<SequenceRows>& rows);

/// Tensors of them, each in guarded memory.
class SequenceMemory {
 public:
  explicit SequenceMemory(const SequenceNumbers& numbers);

  /// Views; the memory must outlive them.
  Sequences sequences() const;

  /// Writes other numbers into the tensors. @param numbers as many as there were
  void overwrite(const SequenceNumbers& numbers);

 private:
  GuardedTensor q_begin_, kv_begin_;
  std::optional<GuardedTensor> kv_len_ = {}, q_offset_ = {}, kv_offset_ = {};
};

/// The sequences of a call, where its spec is packed.
class SequencesOfCall {
 public:
  SequencesOfCall(const Spec& spec, const FuzzPacking& packing);

  /// A view; this and the inputs must outlive it.
  Problem problem_of(const Inputs& inputs) const;

 private:
  std::optional<SequenceMemory> memory_;
};

}  // namespace tilewright::verify::fuzz
