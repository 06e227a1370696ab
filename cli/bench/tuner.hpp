#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/timing.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/device.hpp"
#include "runtime/api/shape.hpp"

namespace tilewright::cli {

/// The device and the call sizes to tune for. The spec is dense and forces no tactic.
struct TuningOptions {
  Device device;
  std::vector<Shape> shapes;
  std::uint64_t seed = 0;  ///< of the tensors' contents
  Timing timing = {};      ///< of a pair of calls that is measured for the result
  /// Called with the share of the work that is done, 0 to 1.
  std::function<void(std::string_view what, double share)> progress = {};
};

struct TunedShape {
  Shape shape;
  double before_ms = 0;  ///< with the default tactic
  double after_ms = 0;   ///< with the tuned tactic; the two take turns
};

struct Tuning {
  std::optional<TacticSpec> tactic = {};  ///< none: no candidate beat the default tactic
  std::string before = {};     ///< the default: "cpu q_tile=64 kv_tile=128 vector_bytes=64"
  std::string after = {};      ///< the tuned tactic; equals `before` if there is none
  double gain = 1;             ///< geometric mean over the shapes of before_ms / after_ms
  std::size_t candidates = 0;  ///< that were measured
  std::vector<TunedShape> shapes = {};
  /// Candidates with a wrong result: faults of this library.
  std::vector<std::string> wrong = {};
};

/// Measures each tactic of a spec in turns with the default one. Returns the tactic with the least
/// time over all shapes among those that are slower on none. Its results pass the rule of check on
/// smaller calls.
/// @throws Error as PreparedCall
Tuning tune(const Spec& spec, const TuningOptions& options);

}  // namespace tilewright::cli
