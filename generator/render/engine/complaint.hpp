#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "limits.hpp"

namespace tilewright::jinja {

/// What code that computes throws: it knows what is wrong, and the interpreter knows where. Never
/// leaves the engine.
struct Complaint {
  std::string message;  ///< one sentence, no full stop
  std::string hint = {};
};

/// Counts work, so that loops over loops end. One step is about the work of evaluating one
/// operator.
class Budget {
 public:
  /// @throws Complaint when the steps of this rendering are used up
  void charge(std::int64_t steps = 1) {
    steps_left_ -= steps;
    if (steps_left_ < 0) complain();
  }
  /// For work that touches each byte of a text.
  void charge_bytes(std::size_t bytes) { charge(1 + static_cast<std::int64_t>(bytes / 16)); }

 private:
  [[noreturn]] static void complain();
  std::int64_t steps_left_ = kMaxSteps;
};

/// A text for a message: quoted, and cut where it is long.
std::string quoted(std::string_view text);

}  // namespace tilewright::jinja
