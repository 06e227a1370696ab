#pragma once

#include <map>
#include <string>
#include <vector>

#include "../../base/error.hpp"
#include "spec.hpp"

namespace tilewright {

/// A mask_mod with what it reads: what mask_and and mask_or combine.
struct MaskMod {
  /// One snippet of a combination: its own text, and where that begins in the combined one.
  struct Part {
    std::string name;
    std::string text;
    int first_line = 1;  ///< from 1

    friend bool operator==(const Part&, const Part&) = default;
  };

  std::string text = {};  ///< C++, as Spec::mask_mod; empty: keeps every element
  std::map<std::string, BufferSpec> buffers = {};
  std::map<std::string, ScalarSpec> scalars = {};
  std::string name = {};         ///< for messages; none: "mask 1", "mask 2", ... by position
  std::vector<Part> parts = {};  ///< of a combination, in order; empty for a single snippet

  friend bool operator==(const MaskMod&, const MaskMod&) = default;
};

/// Keeps what every mask keeps. The snippets stay as they are, each on separate lines with its
/// columns; bodies with `return` become lambdas. Buffers and scalars of all masks are declared; a
/// name that two of them declare alike is one buffer or scalar.
///
///     const MaskMod causal = {.text = "q_idx >= kv_idx"};
///     spec = with_mask(spec, mask_and({causal, mask_of(spec_from_file("documents.json"))}));
///
/// @throws Error with code usage for an empty list; with code snippet, in the snippet's own lines,
///         as check_snippet; with code spec for a name that two masks declare differently
MaskMod mask_and(const std::vector<MaskMod>& masks);

/// Keeps what at least one mask keeps; otherwise as mask_and.
MaskMod mask_or(const std::vector<MaskMod>& masks);

/// The mask_mod of a spec with those buffers and scalars that it reads.
/// @throws Error with code snippet
MaskMod mask_of(const Spec& spec);

/// The spec with another mask. Buffers and scalars that only its old mask_mod read go.
/// @throws Error with code spec for a name that both declare differently
Spec with_mask(Spec spec, const MaskMod& mask);

/// An error about a combined mask_mod, placed in the part that it is about, by that part's own name
/// and lines. Any other error is returned as it is.
Error in_its_part(const Error& error, const MaskMod& mask);

}  // namespace tilewright
