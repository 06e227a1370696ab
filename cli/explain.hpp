#pragma once

#include <string>

namespace tilewright::cli {

/// `tilewright cache explain`: for each kernel of a spec, every ingredient, where its entry was
/// looked for, and why it was missed.
/// @param target a name; empty: this machine's CPU
/// @throws Error as spec_from_file; with code usage for a wrong target
void explain(const std::string& spec_path, const std::string& target, bool json);

}  // namespace tilewright::cli
