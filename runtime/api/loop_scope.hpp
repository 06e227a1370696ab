#pragma once

#include "../../base/float_environment.hpp"

namespace tilewright {

/// While it lives, the calling thread runs bodies of a loop: with default floating-point
/// arithmetic, and loops that they start run on this thread alone.
class LoopScope {
 public:
  LoopScope() noexcept;
  LoopScope(const LoopScope&) = delete;
  LoopScope& operator=(const LoopScope&) = delete;
  ~LoopScope();

  /// True inside a body of any loop.
  static bool is_active() noexcept;

 private:
  DefaultFloatEnvironment floats_;
  bool before_;
};

}  // namespace tilewright
