#pragma once

#include <string>

namespace tilewright::cli {

/// `tilewright cache explain`: how many kernels of a spec are found, then for each where, or why it
/// was missed.
/// @param target a name; empty: this machine's CPU
/// @param verbose also every place that was asked, and every ingredient; JSON always has them
/// @throws Error as spec_from_file; with code usage for a wrong target
void explain(const std::string& spec_path, const std::string& target, bool json, bool verbose);

}  // namespace tilewright::cli
