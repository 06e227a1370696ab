#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../../generator/spec/spec.hpp"
#include "../../generator/spec/target.hpp"

namespace tilewright {

/// How a spec is computed on one target: its forward kernel for aligned tensors, the fast paths
/// that this kernel and the mask's take or do not take, and its backward kernel.
struct Explanation {
  /// Where in a snippet a fast path ends.
  struct SnippetLocation {
    std::string snippet;  ///< "score_mod" or "mask_mod"
    int line = 0;         ///< from 1
    int column = 0;       ///< from 1, in bytes

    friend bool operator==(const SnippetLocation&, const SnippetLocation&) = default;
  };

  struct Path {
    std::string name;  ///< "score_slope"; docs/cli.md lists them
    bool used = false;
    std::string why_not = {};  ///< empty if used
    std::optional<SnippetLocation> place = {};
  };

  std::string kernel;  ///< "forward_masked"
  std::string target;  ///< "sm_90a"
  std::string tactic;  ///< "hopper q_tile=128 ..."
  std::vector<Path> fast_paths;

  /// How the backward kernel sums what one scalar, or one read of a buffer, gives a gradient.
  struct Sum {
    std::string read;     ///< "cap", "bias[kv_idx - q_idx + 63]", "table(h, q_idx, kv_idx)"
    std::string pattern;  ///< what the index depends on: "head" (neither q_idx nor kv_idx), "row",
                          ///< "column", "difference", "element"
    std::string by;       ///< the same in words: "by kv_idx - q_idx"
    std::string way;      ///< "along diagonals of 64 rows x 16 columns, in shared memory, ..."
  };

  /// Of a spec with gradients: its backward kernel for aligned tensors.
  struct Backward {
    std::string kernel;        ///< "backward_masked"
    std::string tactic = {};   ///< "hopper columns=128 rows=64"; empty where it cannot be made
    std::string why_not = {};  ///< why it cannot: score_mod's derivative is unknown
    std::optional<SnippetLocation> place = {};
    /// How it sums the gradients of buffers and scalars: one for each scalar and read of a buffer.
    std::vector<Sum> sums = {};
  };
  std::optional<Backward> backward = {};

  /// The keys of `tilewright explain --json`: backward, fast_paths, kernel, tactic. Two spaces of
  /// indentation, no newline at the end.
  std::string to_json() const;
};

/// Renders and compiles nothing.
/// @throws Error as validate(spec); with code spec where the forced tactic does not fit the target
Explanation explain(const Spec& spec, const Target& target);

}  // namespace tilewright
