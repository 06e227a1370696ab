#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "plan_state.hpp"

namespace tilewright::parallel {

/// Where the columns of a call's pairs lie: in this rank's k and v, or in the workspace, where
/// peers put them.
class Columns {
 public:
  Columns(const Spec& spec, const ContextPlanState& plan, const TensorView& k, const TensorView& v,
          const TensorView& workspace);

  void append_sends(const Step& step, std::vector<Message>& messages) const;
  void append_receives(const Step& step, std::vector<Message>& messages) const;

  /// k and v of one call.
  std::pair<TensorView, TensorView> of(const Step& step, const PairCall& call) const;

 private:
  TensorView received(std::int64_t offset, std::int64_t columns, std::int64_t width) const;
  TensorView received_k(const Transfer& from) const;
  TensorView received_v(const Transfer& from) const;

  const Spec& spec_;
  const ContextPlanState& plan_;
  const TensorView& k_;
  const TensorView& v_;
  std::byte* workspace_;
};

}  // namespace tilewright::parallel
