#pragma once

#include <string>

namespace tilewright::cli {

/// Whether a text is what profilers show of a kernel, or its last eight hexadecimal digits:
/// "tw_forward_masked_1a2b3c4d", "1a2b3c4d".
bool is_kernel_name(const std::string& text);

/// `tilewright cache explain NAME`: which spec, target and kernel have this name in the cache and
/// in the bundles, and where.
/// @throws Error with code usage where nothing that is kept has it
void explain_kernel_name(const std::string& name, bool json);

}  // namespace tilewright::cli
