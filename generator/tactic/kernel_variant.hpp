#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../spec/target.hpp"

namespace tilewright {

/// What a kernel computes.
enum class KernelRole : std::uint8_t {
  forward,          ///< attention
  backward,         ///< gradients of what the spec names
  weights,          ///< the softmax's weights, after a forward kernel has written lse
  mask_lists,       ///< lists the tiles that mask_exact or mask_proved classified; GPUs only
  mask_exact,       ///< classifies the block mask's tiles by evaluating mask_mod
  mask_proved,      ///< the same, by interval arithmetic wherever it decides
  plan_exact,       ///< plans a step of packed sequences; decides tiles by evaluating mask_mod
  plan_proved,      ///< the same, by interval arithmetic wherever it decides
  merge,            ///< attention over several parts of the columns becomes one over all of them
  append,           ///< copies new rows of k and v into a pool of pages
  quantise,         ///< stores q, k or v of 16 or 32 bits as numbers of one byte
  evaluate_float,   ///< the snippets alone, as forward kernels read them; CPUs only, for verify
  evaluate_double,  ///< the snippets alone, in double; CPUs only, for verify
  evaluate_slopes_float,   ///< derivatives of score_mod in float; CPUs only, for verify
  evaluate_slopes_double,  ///< the same in double
  evaluate_checked,        ///< the snippets alone, each operation checked; CPUs only, for verify
};

/// The rows of q that a forward kernel computes.
enum class KernelRows : std::uint8_t {
  all,
  prefill,  ///< on GPUs, in packed calls, the rows of sequences with many rows of q
  decode,   ///< on GPUs, those of sequences with few, which share their reads of k and v
};

/// Which of a spec's kernels: its role, and for a forward kernel what its calls have in common. A
/// new axis of calls is one more field here, whose default gives the names that exist already.
struct KernelVariant {
  KernelRole role = KernelRole::forward;
  /// forward, backward, weights: follows a block mask. A forward kernel without one asks mask_mod
  /// for every element.
  bool masked = false;
  KernelRows rows = KernelRows::all;  ///< forward
  bool lse = false;                   ///< forward: also writes the log-sum-exp of each row
  bool split = false;  ///< forward, GPUs: blocks of threads share the columns of a tile's rows
  /// forward of packed calls, GPUs: a block of threads keeps all of a sequence's k and v of one
  /// head while rows of q pass by
  bool resident = false;
  bool aligned = true;  ///< these, GPUs: all bases and strides are multiples of 16 bytes
  /// backward, GPUs: equal calls give equal bits, where the kernel for any calls does not promise
  /// it
  bool deterministic = false;

  bool is_forward() const { return role == KernelRole::forward; }
  bool has_snippets() const { return role != KernelRole::merge && role != KernelRole::append; }
  bool is_evaluation() const { return role >= KernelRole::evaluate_float; }

  /// "forward_masked_lse_unaligned", "mask_exact": what files, messages and the command line say.
  std::string name() const;

  /// The variant with this name, or nothing.
  static std::optional<KernelVariant> find(std::string_view name);

  /// The same.
  /// @throws Error with code usage for a name that no variant has, with the nearest one
  static KernelVariant parse(std::string_view name);

  friend bool operator==(const KernelVariant&, const KernelVariant&) = default;
};

/// All variants that targets of this kind have, whatever the spec, in the order in which messages
/// and lists name them.
std::vector<KernelVariant> kernel_variants(const Target& target);

}  // namespace tilewright
