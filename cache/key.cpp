#include "cache/key.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cache {
namespace {

constexpr std::string_view kDomain = "tilewright-ingredients-1";

void require_unique_tags(std::span<const Ingredient> sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].tag.empty()) {
      throw Error(ErrorCode::internal, "an ingredient of a cache key has no tag");
    }
    if (i > 0 && sorted[i].tag == sorted[i - 1].tag) {
      throw Error(ErrorCode::internal,
                  fmt::format("the ingredient \"{}\" is twice in a cache key", sorted[i].tag),
                  "join both values under one tag, or name them apart");
    }
  }
}

void add_number(Sha256& hash, std::uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(number >> (8 * i) & 0xff);
  hash.update(bytes);
}

void add_text(Sha256& hash, std::string_view text) {
  add_number(hash, text.size());
  hash.update(text);
}

Digest digest_of_sorted(std::span<const Ingredient> sorted) {
  require_unique_tags(sorted);
  Sha256 hash;
  hash.update(kDomain);
  add_number(hash, sorted.size());
  for (const Ingredient& ingredient : sorted) {
    add_text(hash, ingredient.tag);
    add_text(hash, ingredient.value);
  }
  return hash.finish();
}

}  // namespace

Digest digest_of(std::span<const Ingredient> ingredients) {
  return make_request({ingredients.begin(), ingredients.end()}).digest;
}

Request make_request(std::vector<Ingredient> ingredients) {
  std::sort(ingredients.begin(), ingredients.end(),
            [](const Ingredient& a, const Ingredient& b) { return a.tag < b.tag; });
  const Digest digest = digest_of_sorted(ingredients);
  return {digest, std::move(ingredients)};
}

Key make_key(const Request& request, std::string_view compiler_identity) {
  const Ingredient parts[] = {{"compiler", std::string(compiler_identity)},
                              {"request", request.digest.hex()}};
  return {digest_of(parts)};
}

}  // namespace tilewright::cache
