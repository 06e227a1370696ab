#pragma once

#include <cstdint>
#include <vector>

#include "../../generator/spec/spec.hpp"
#include "buffer_gradients.hpp"
#include "schedule.hpp"

namespace tilewright::parallel {

/// Where the gradients of k and v of one call's columns lie in the workspace, dense, in the dtype
/// of k and v. Those that the spec does not name have no room.
struct GradientPart {
  std::int64_t k_offset = 0;
  std::int64_t v_offset = 0;
};

/// What backward does with the rank at one distance.
struct GradientStep {
  int step = -1;                       ///< of the schedule; -1: nothing at this distance
  std::vector<GradientPart> parts;     ///< of its calls, which go to the rank that owns the columns
  std::vector<GradientPart> returned;  ///< of its returns, which come from the rank that read them
};

/// Some of a rank's own rows, one after another.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t count() const { return end - begin; }
  /// Grows to hold `count` rows from `first` on.
  void include(std::int64_t first, std::int64_t count);
};

/// That Attention::backward needs for the greatest of the calls.
struct KernelBytes {
  std::int64_t any = 0;
  std::int64_t deterministic = 0;

  std::int64_t of(bool is_deterministic) const { return is_deterministic ? deterministic : any; }
  void add(std::int64_t bytes, bool of_deterministic_alone) {
    if (!of_deterministic_alone && any < bytes) any = bytes;
    if (deterministic < bytes) deterministic = bytes;
  }
};

/// What one rank does in one call of backward, in addition to the schedule of forward, whose
/// calls and columns it has. Sums in f32 hold those of the rank's own rows to which several calls
/// give gradients; what is of one call alone is used again by the next.
struct GradientSchedule {
  bool has_q = false;  ///< the spec names it
  bool has_k = false;
  bool has_v = false;
  std::vector<GradientStep> steps;  ///< by distance, from 0
  /// The first call of distance 0 has all of the rank's rows and columns. It stores its gradients
  /// where the caller wants them, and sums begin with what it stored. Else they begin with 0 and
  /// hold all rows.
  bool first_is_whole = false;
  RowRange summed_q;              ///< rows of dq that sums hold
  RowRange summed_kv;             ///< of dk and dv
  std::int64_t q_sum_offset = 0;  ///< in the workspace, f32
  std::int64_t k_sum_offset = 0;
  std::int64_t v_sum_offset = 0;
  std::int64_t q_part_offset = 0;  ///< dq of one call
  std::int64_t lse_offset = 0;     ///< of one call's rows, contiguous
  std::int64_t dlse_offset = 0;    ///< likewise
  BufferGradients buffers;
  std::int64_t kernel_offset = 0;  ///< the workspace of Attention::backward, the last of all
  KernelBytes kernel_bytes;
  std::int64_t bytes_sent = 0;  ///< k, v and gradients
  std::int64_t bytes_received = 0;

  std::int64_t workspace_bytes(bool deterministic) const;
};

/// @param forward of the same rank
GradientSchedule make_gradient_schedule(const Spec& spec, const ShardList& list,
                                        const Schedule& forward, const ScheduleSizes& sizes,
                                        int rank, int ranks, BufferGradients buffers,
                                        const KernelBytes& kernel_bytes);

}  // namespace tilewright::parallel
