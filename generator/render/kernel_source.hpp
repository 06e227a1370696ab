#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../snippet/spec_facts.hpp"
#include "../spec/target.hpp"
#include "../tactic/kernel_variant.hpp"
#include "../tactic/tactic.hpp"
#include "engine/engine.hpp"
#include "extrema_table.hpp"
#include "source_map.hpp"

namespace tilewright {

/// How a GPU kernel is launched; part of its source.
struct KernelLaunch {
  std::int64_t q_tile = 0;        ///< rows of q that a block of threads handles
  std::int64_t threads = 0;       ///< of a block
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
  /// Rows of the boxes of k and v in the tensor maps that the kernel takes; 0: it takes none.
  std::int64_t kv_box_rows = 0;
  /// Rows of k that a sequence may have in a kernel that keeps them (KernelVariant::resident).
  std::int64_t resident_rows = 0;
  /// Rows of the tiles of q that pass by the columns of a block, which adds to their sums of dq; of
  /// portable backward kernels of one sweep alone.
  std::int64_t passing_rows = 0;
  /// Blocks of threads: one for each multiprocessor, which handles several q tiles, and not one for
  /// each q tile.
  bool is_persistent = false;
  /// Blocks of threads that run on a multiprocessor at once; of decode kernels alone.
  std::int64_t blocks_per_sm = 0;
  /// Factors that it can multiply scores by before score_mod (abi::cuda::Scaling::factor). Calls
  /// with another one are for the unaligned kernel.
  float least_factor = std::numeric_limits<float>::lowest();
  float greatest_factor = std::numeric_limits<float>::max();
  /// Keys that a call has at least; calls with fewer are for the unaligned kernel. A fixed maximum
  /// makes the weight of an only key a number that P rounds, where maxima make it 1.
  std::int64_t least_kv_len = 0;
};

/// One rendered translation unit: all that a compiler needs, and the way back from its messages.
struct KernelSource {
  KernelVariant variant;
  Target target;
  std::string text;
  SourceMap map;
  std::vector<std::string> template_files;  ///< every file that took part, in order of first use
  std::vector<std::string> options;         ///< options that the text needs from its compiler
  std::vector<std::string> entry_points;    ///< extern "C" symbols
  /// Those of entry_points that are launched without dynamic shared memory: all others have
  /// `launch`.
  std::vector<std::string> plain_entry_points = {};
  KernelLaunch launch = {};                       ///< of forward kernels for a GPU
  std::vector<ExtremaTable> extrema_tables = {};  ///< that a mask_proved kernel reads, in order
  /// Gives the same result where this kernel does not compile, as a snippet may hold more C++ than
  /// the interpretation of an optimisation understands.
  std::optional<KernelVariant> fallback = {};
};

/// Of a block of threads that runs an entry point, whose name is one of source.entry_points.
std::int64_t dynamic_shared_bytes(const KernelSource& source, std::string_view entry_point);

/// Every kernel that this spec can ask for on this target (what is precompiled), without those that
/// only verify asks for (evaluate_*). A spec without a mask_mod still has forward_masked, for masks
/// that come as lists.
std::vector<KernelVariant> kernel_set(const SpecFacts& facts, const Target& target);

/// The kernel that decides the tiles of a spec's mask: mask_proved, or mask_exact where
/// the right operand of `&&` or `||` may change a variable: the proof evaluates both operands.
/// In packed layouts plan_proved or plan_exact, which makes the plan of a spec without mask_mod
/// too.
KernelVariant mask_kernel(const SpecFacts& facts);

/// The forward kernel that a call with aligned tensors launches: masked where the spec has a
/// mask_mod or the caller brings block masks.
/// @param target any that is of the device's kind
KernelVariant forward_kernel(const Spec& spec, const Target& target, bool takes_block_mask = false);

/// The backward kernel of a spec with gradients.
KernelVariant backward_kernel(const Spec& spec, bool takes_block_mask = false);

/// The kernel of a spec whose outputs name weights.
KernelVariant weights_kernel(const Spec& spec, bool takes_block_mask = false);

/// Renders one kernel.
/// @param loader where templates come from; default_template_loader() unless a test passes another
/// @throws Error with code usage for a kernel that the target does not have, kernel_template for a
///         wrong template
KernelSource render_kernel(const SpecFacts& facts, const Target& target,
                           const KernelVariant& variant, const jinja::Loader& loader);

/// All that render_kernel says of a kernel but its text: options, entry points, launch. Costs a
/// fraction of it.
/// @throws Error with code usage for a kernel that the target does not have
KernelSource kernel_metadata(const SpecFacts& facts, const Target& target,
                             const KernelVariant& variant);

/// The kernel's text with `#line` directives before every change of origin, for profilers and
/// debuggers; never what is compiled by default.
std::string with_line_directives(const KernelSource& source);

}  // namespace tilewright
