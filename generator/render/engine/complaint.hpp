#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::jinja {

// Limits that no kernel template comes near, so that no input can overflow the stack, hang the
// process or fill its memory.
inline constexpr std::size_t kMaxTemplateBytes = 16 << 20;
inline constexpr std::size_t kMaxOutputBytes = 16 << 20;
inline constexpr std::size_t kMaxStringBytes = 16 << 20;
inline constexpr std::size_t kMaxNameBytes = 128;
inline constexpr std::size_t kMaxItems = 100'000;  ///< of one list, map or range
inline constexpr std::size_t kMaxTagTokens = 250;  ///< bounds how deeply an expression nests
inline constexpr int kMaxBlockDepth = 50;          ///< of if and for inside one template
inline constexpr int kMaxIncludeDepth = 16;
inline constexpr std::int64_t kMaxSteps = 10'000'000;  ///< of one rendering, see Budget

/// What code that computes throws: it knows what is wrong, and the interpreter knows where. Never
/// leaves the engine.
struct Complaint {
  std::string message;  ///< one sentence, no full stop
  std::string hint = {};
};

/// A complaint and where in the template's text it points.
struct PlacedComplaint {
  std::size_t offset;
  Complaint complaint;
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
std::string in_quotes(std::string_view text);

}  // namespace tilewright::jinja
