#pragma once

#include <string>
#include <string_view>

#include "../../cache/key.hpp"
#include "../../generator/snippet/spec_facts.hpp"
#include "../../generator/spec/target.hpp"
#include "../api/toolchain.hpp"

namespace tilewright {

// Events of Toolchain::events and of TILEWRIGHT_LOG: a word, then name=value pairs.

/// A kernel has been made or found.
/// @param key of its binary, or of what it was found by
void tell_kernel(const SpecFacts& facts, const Target& target, const KernelBuild& build,
                 const cache::Digest& key, const Toolchain& toolchain);

/// No cache holds a kernel: it is about to be compiled. Only the log hears of it, since the cache's
/// lock is held, with which no sink may be called.
void log_miss(const SpecFacts& facts, const Target& target, std::string_view kernel,
              const cache::Digest& key);

/// Toolchain::line_info is ignored, as nothing may be compiled. Once a process.
void tell_ignored_line_info(const Toolchain& toolchain);

/// An Attention is ready: its tactic and fast paths; for debug each that it does not take, and why.
void tell_attention(const Spec& spec, const Target& target, std::string_view device,
                    const Toolchain& toolchain);

}  // namespace tilewright
