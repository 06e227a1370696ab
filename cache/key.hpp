#pragma once

#include <compare>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sha256.hpp"

namespace tilewright::cache {

/// One thing that decides what a compiled kernel is: {"target", "sm_90a"}.
struct Ingredient {
  std::string tag;    ///< what it is; not empty, and once in a list
  std::string value;  ///< any bytes

  bool operator==(const Ingredient&) const = default;
};

/// SHA-256 over the ingredients, sorted by tag, so that the order in which a caller lists them does
/// not matter. Each tag and value is preceded by its length, so that no two lists look alike:
///
///     "tilewright-ingredients-1" | u64 count | { u64 length | tag | u64 length | value } ...
///
/// with little-endian numbers. Throws Error (internal) for an empty or repeated tag.
Digest digest_of(std::span<const Ingredient> ingredients);

/// What is wanted, whichever machine compiles it: kernel source, target, options and format.
/// Bundles are indexed by it, so they serve a machine that has another compiler or none.
struct Request {
  Digest digest;
  std::vector<Ingredient> ingredients;  ///< sorted by tag; shown where a miss is explained
};

/// Throws as digest_of() does.
Request make_request(std::vector<Ingredient> ingredients);

/// A request and the compiler that serves it: what the writable store is indexed by.
struct Key {
  Digest digest;

  auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): see sha256.hpp
};

/// `compiler_identity` must change whenever the compiler could answer differently: its version and
/// a digest of its binary, not its path or time stamp.
Key make_key(const Request& request, std::string_view compiler_identity);

}  // namespace tilewright::cache

template <>
struct std::hash<tilewright::cache::Key> {
  std::size_t operator()(const tilewright::cache::Key& key) const noexcept {
    return std::hash<tilewright::cache::Digest>()(key.digest);
  }
};
