#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/engine.hpp"
#include "source_map.hpp"
#include "spec.hpp"
#include "tactic.hpp"
#include "target.hpp"

namespace tilewright {

/// One member of a spec's closed set of kernels, by name:
///
///     forward, forward_masked          attention; without and with a block mask
///     forward_lse, forward_masked_lse  the same, writing lse too. Without a block mask a spec's
///                                      mask_mod is asked for every element.
///     ..._unaligned                    on a GPU: for tensors with a base or stride that is no
///                                      multiple of 16 bytes
///     mask_exact                       classifies tiles of the block mask by evaluation
///     mask_proved                      the same, by intervals wherever they decide
///     mask_lists                       on a GPU: what either of these needs beside it and no
///                                      snippet takes part in
///     evaluate_float, evaluate_double, evaluate_checked
///                                      the snippets alone, in one reading each, for verify
struct KernelId {
  std::string name;
  friend bool operator==(const KernelId&, const KernelId&) = default;
};

/// How a GPU kernel is launched; part of its source.
struct KernelLaunch {
  std::int64_t q_tile = 0;        ///< rows of q that a block of threads handles
  std::int64_t threads = 0;       ///< of a block
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
  /// Rows of the boxes of k and v in the tensor maps that the kernel takes; 0: it takes none.
  std::int64_t kv_box_rows = 0;
  /// Blocks of threads: one for each multiprocessor, which handles several q tiles, and not one for
  /// each q tile.
  bool is_persistent = false;
};

/// One rendered translation unit: all that a compiler needs, and the way back from its messages.
struct KernelSource {
  KernelId id;
  Target target;
  std::string text;
  SourceMap map;
  std::vector<std::string> template_files;  ///< every file that took part, in order of first use
  std::vector<std::string> options;         ///< options that the text needs from its compiler
  std::vector<std::string> entry_points;    ///< extern "C" symbols
  KernelLaunch launch = {};                 ///< of forward kernels for a GPU
  /// Gives the same result where this kernel does not compile, as a snippet may hold more C++ than
  /// the reading of an optimisation understands.
  std::optional<KernelId> fallback = {};
};

/// Every kernel that this spec can ask for on this target (what is precompiled), without those that
/// only verify asks for (evaluate_*). A spec without a mask_mod still has forward_masked, for masks
/// that come as lists.
/// @throws Error with code usage for a target without kernels
std::vector<KernelId> kernel_set(const Spec& spec, const Target& target);

/// The kernel that decides the tiles of a spec's block mask: mask_proved, or mask_exact where
/// mask_mod changes a variable behind an `&&` or `||`, of which the proof computes both sides.
/// @throws Error as tokenize does
KernelId mask_kernel(const Spec& spec);

/// Renders one kernel.
/// @param loader where templates come from; default_template_loader() unless a test passes another
/// @throws Error with code usage for an unknown kernel, kernel_template for a wrong template
KernelSource render_kernel(const Spec& spec, const Target& target, const KernelId& id,
                           const jinja::Loader& loader);

/// All that render_kernel says of a kernel but its text: options, entry points, launch. Costs a
/// fraction of it.
/// @throws Error with code usage for an unknown kernel
KernelSource describe_kernel(const Spec& spec, const Target& target, const KernelId& id);

/// The kernel's text with `#line` directives before every change of origin, for profilers and
/// debuggers; never what is compiled by default.
std::string with_line_directives(const KernelSource& source);

}  // namespace tilewright
