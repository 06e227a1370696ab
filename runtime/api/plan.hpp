#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sequences.hpp"
#include "stream.hpp"

namespace tilewright {

struct PlanState;

/// Where a plan is made.
struct PlanOptions {
  /// Memory of the plan, in any dtype: at least Attention::workspace_size bytes at a multiple of
  /// 256, on the device. It is the plan's until the last forward that uses it is done.
  TensorView workspace = {};
  Stream stream = nullptr;
};

/// What was wrong with the contents of a plan's tensors when it was last built. Kernels clamp such
/// values, so that no content makes them touch other memory.
struct PlanReport {
  enum class Kind : std::uint8_t { q_begin, kv_begin, kv_len, q_offset, kv_offset };

  struct Value {
    Kind kind;
    std::int64_t sequence;
    std::int64_t place;  ///< of the value in its tensor
    std::int64_t value;
    std::int64_t limit;  ///< that it exceeds
  };

  std::int64_t count = 0;  ///< values that were clamped
  /// The first sequence's first, in the order of Kind.
  std::optional<Value> first = {};
  /// Rows of q after the last sequence. They are allowed, and kernels leave them as they are.
  std::int64_t unplanned_rows = 0;

  /// "kv_len[2] is 5000, but there is room for 4096 (3 values were clamped)"; empty where count is
  /// 0.
  std::string text() const;
};

/// What the kernels of a step need of its sequences: clamped lengths, which tiles are visited, and
/// in which order. Made by Attention::plan; serves every layer whose calls have the same spec and
/// shape. Copies share the plan.
class Plan {
 public:
  const PackedShape& shape() const;

  /// Waits for the last build in its stream, and reads what it reported.
  /// @throws Error with code device
  PlanReport report() const;

  /// For the library itself.
  explicit Plan(std::shared_ptr<PlanState> state) : state_(std::move(state)) {}
  PlanState& state() const;

 private:
  std::shared_ptr<PlanState> state_;
};

}  // namespace tilewright
