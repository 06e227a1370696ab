#pragma once

#include <cstdint>

#include "../api/context_parallel.hpp"
#include "plan_state.hpp"

namespace tilewright::parallel {

/// Gradients of buffers and scalars in one call of backward. Does nothing where the spec names
/// none.
class BufferSums {
 public:
  BufferSums(ContextPlanState& plan, Communicator& communicator, const ContextCallOptions& options);

  /// Where a call over a pair of shards writes its part.
  const GradientBuffers& part() const { return part_; }
  void clear() const;
  void add_part() const;
  /// Makes each rank's share the sum of all, added in the order of ranks. All ranks call it.
  void sum_over_ranks();
  void store(const GradientBuffers& to) const;

 private:
  float* at(std::int64_t offset) const;
  void add(const float* from, float* to, std::int64_t count, bool adds) const;
  void send_shares();
  void add_slices() const;
  void send_sums();
  void exchange();

  ContextPlanState& plan_;
  const BufferGradients& gradients_;
  Communicator& communicator_;
  const ContextCallOptions& options_;
  GradientBuffers part_;
};

}  // namespace tilewright::parallel
