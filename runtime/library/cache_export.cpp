#include "runtime/library/cache_export.hpp"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/render/generator_digest.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/library/kernel_facts.hpp"

namespace tilewright {
namespace {

// The memo under which a stored kernel would be found that this very generator renders from the
// embedded templates. Entries record the generator whatever templates they were rendered from.
std::optional<cache::Digest> memo_of(const cache::Metadata& metadata, const cache::Digest& request,
                                     const jinja::Loader& embedded) {
  const auto generator = metadata.find("generator");
  const auto spec = metadata.find("spec_json");
  if (generator == metadata.end() || generator->second != generator_digest()) return std::nullopt;
  if (spec == metadata.end()) return std::nullopt;
  try {
    const Spec known = spec_from_json(spec->second);
    const Target target = Target::parse(metadata.at("target"));
    const KernelVariant id = KernelVariant::parse(metadata.at("kernel"));
    const KernelSource source = render_kernel(known, target, id, embedded);
    if (kernel_request(source).digest != request) return std::nullopt;
    return kernel_memo(known, target, id);
  } catch (const Error&) {
    return std::nullopt;
  }
}

struct Stored {
  cache::Request request;
  cache::Listing listing;
};

// "forward of "causal" for cpu-x86-64-v3, by g++ 12.2.0"
std::string described(const cache::Metadata& metadata) {
  const auto value = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string("unknown") : found->second;
  };
  return fmt::format("{} of \"{}\" for {}, by {}", value("kernel"), value("spec"), value("target"),
                     value("compiler"));
}

}  // namespace

std::vector<cache::BundleItem> exportable(cache::Store& store, LeftOut* left_out) {
  LeftOut ignored;
  LeftOut& others = left_out ? *left_out : ignored;
  std::map<cache::Digest, Stored> newest;
  for (cache::Listing& listing : store.ls()) {
    std::optional<cache::Request> request = recorded_request(listing.metadata);
    if (!request) {
      ++others.bad;
    } else if (listing.metadata.contains("host")) {
      ++others.own;
    } else {
      Stored stored{*std::move(request), std::move(listing)};
      Stored& kept = newest.try_emplace(stored.request.digest, stored).first->second;
      if (kept.listing.key == stored.listing.key) continue;
      if (kept.listing.created < stored.listing.created) std::swap(kept, stored);
      others.older.push_back(described(stored.listing.metadata));
    }
  }
  const std::unique_ptr<const jinja::Loader> embedded = embedded_template_loader();
  std::vector<cache::BundleItem> items;
  for (auto& [digest, stored] : newest) {
    const cache::Metadata& metadata = stored.listing.metadata;
    cache::BundleItem item{.request = std::move(stored.request),
                           .memos = {},
                           .metadata = bundle_metadata(metadata),
                           .entry = store.load(stored.listing.key)};
    if (!item.entry) continue;  // removed meanwhile
    if (const auto memo = memo_of(metadata, digest, *embedded)) item.memos.push_back(*memo);
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace tilewright
