#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "../api/attention.hpp"

namespace tilewright {

/// The workspace of dense calls on any device, where they take one: zeros between guards. For tools
/// and tests.
class StagedWorkspace {
 public:
  /// @param shape of the calls
  StagedWorkspace(const Attention& attention, const Shape& shape);
  ~StagedWorkspace();

  /// For ForwardOptions::workspace; without data where calls take none.
  const TensorView& view() const { return view_; }

  /// Waits, and says what calls have left: a counter that is not 0, or writes outside.
  std::optional<std::string> damage() const;

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;  // null where there is none
  TensorView view_ = {};
};

}  // namespace tilewright
