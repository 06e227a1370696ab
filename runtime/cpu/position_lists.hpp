#pragma once

#include <memory>

#include "plan.hpp"

namespace tilewright::cpu {

/// The lists over positions that decide a plan's tiles.
class PositionLists {
 public:
  /// Keeps the lists as they are now.
  PositionLists(const PlanState& plan, const PlanView& view);

  /// Writes the tiles of one row of tiles of one list into the plan's map.
  void copy(int head, const abi::PlannedRow& row) const;

 private:
  const PlanState& plan_;
  const PlanView& view_;
  std::shared_ptr<const HostTileLists> host_;
};

}  // namespace tilewright::cpu
