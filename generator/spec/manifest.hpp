#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec.hpp"

namespace tilewright {

/// One spec that a manifest names.
struct ManifestSpec {
  Spec spec;
  std::string pointer;  ///< where it stands, as a JSON pointer: "/specs/2"
};

/// What is to be compiled at deploy time (docs/cache.md):
///
///     {
///       "targets": ["sm_90a", "cpu"],
///       "vary": {"dtype": ["f16", "bf16"]},
///       "specs": [
///         "alibi.json",
///         {"file": "softcap.json", "vary": {"head_dim": [64, 128]}},
///         {"spec": {"mask_mod": "q_idx >= kv_idx"}, "vary": {"head_dim": [64], "outputs":
///         [["out"]]}}
///       ]
///     }
///
/// Files are relative to the manifest. Each combination of what varies is a separate spec; null
/// in a list leaves the key out. The "vary" at the top holds for every spec that does not say
/// otherwise for the same key.
struct Manifest {
  std::vector<std::string> targets;  ///< as they are written; empty: none are named
  std::vector<ManifestSpec> specs;   ///< in the manifest's order, without repetitions
};

/// Reads a manifest and every spec that it names.
/// @param folder what files are relative to
/// @throws Error with code file for a manifest that is wrong, with line, column, JSON pointer and
/// the
///         nearest right name; with code spec or snippet for a spec, with the pointer too
Manifest manifest_from_json(std::string_view text, std::string_view file_name,
                            const std::string& folder);

/// The same for a file, whose folder is what files are relative to.
Manifest manifest_from_file(const std::string& path);

}  // namespace tilewright
