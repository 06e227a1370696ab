#pragma once

#include <optional>
#include <vector>

#include "../../cache/entry.hpp"
#include "../../cache/key.hpp"
#include "../../generator/render/kernel_source.hpp"

namespace tilewright {

/// What a kernel is wanted by, whichever machine compiles it: source (by its digest), options in
/// any order, kernel, target, and the format of binaries.
cache::Request kernel_request(const KernelSource& source);

/// What an equal kernel of an equal spec is found by without rendering it: a digest over the spec,
/// without what never reaches a kernel, and the generator (generator_digest()). Only true for the
/// templates that are embedded.
cache::Digest kernel_memo(const Spec& spec, const Target& target, const KernelVariant& id);

/// What is recorded with a binary, so that it can be loaded and found, and a miss explained:
/// kernel, target, names, spec (its name), spec_json, generator, and the ingredients of the
/// request.
cache::Metadata kernel_metadata(const Spec& spec, const KernelSource& source);

/// The request whose ingredients kernel_metadata() recorded; nothing where they are not all there.
std::optional<cache::Request> recorded_request(const cache::Metadata& metadata);

/// The spec without what never reaches a kernel: name, scale, hints for random contents, defaults
/// of scalars.
Spec kernel_spec(Spec spec);

/// The fields of a spec that a kernel depends on, defaults resolved: {"dtype", "bf16"}, ...,
/// {"buffers.slopes", ...}.
std::vector<cache::Ingredient> spec_ingredients(const Spec& spec);

/// What a bundle records of a kernel in addition to its request.
cache::Metadata bundle_metadata(cache::Metadata metadata);

}  // namespace tilewright
