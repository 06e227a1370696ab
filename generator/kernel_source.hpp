#pragma once

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
///     forward, forward_masked                     attention; without and with a block mask
///     forward_lse, forward_masked_lse             the same, writing lse too
///     mask_exact                                  classifies tiles of the block mask by evaluation
///     evaluate_float, evaluate_double, evaluate_checked
///                                                 the snippets alone, in one reading each, for
///                                                 verify
struct KernelId {
  std::string name;
  friend bool operator==(const KernelId&, const KernelId&) = default;
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
};

/// Every kernel that this spec can ask for on this target (what is precompiled). A spec without a
/// mask_mod still has forward_masked, for masks that come as lists.
std::vector<KernelId> kernel_set(const Spec& spec, const Target& target);

/// Renders one kernel.
/// @param loader where templates come from; default_template_loader() unless a test passes another
/// @throws Error with code usage for an unknown kernel, kernel_template for a wrong template
KernelSource render_kernel(const Spec& spec, const Target& target, const KernelId& id,
                           const jinja::Loader& loader);

/// The kernel's text with `#line` directives before every change of origin, for profilers and
/// debuggers; never what is compiled by default.
std::string with_line_directives(const KernelSource& source);

}  // namespace tilewright
