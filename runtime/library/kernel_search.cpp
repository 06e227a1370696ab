#include "runtime/library/kernel_search.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/compile/cpu_identity.hpp"
#include "runtime/library/kernel_facts.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kShownBytes = 80;
constexpr std::size_t kShownBadEntries = 5;

std::string value_of(const cache::Metadata& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string() : found->second;
}

// The request's own ingredients without the source, which the spec and the generator say better.
std::vector<cache::Ingredient> own_ingredients(const std::vector<cache::Ingredient>& ingredients) {
  std::vector<cache::Ingredient> own;
  for (const char* tag : {"kernel", "target", "format", "options"}) {
    for (const cache::Ingredient& i : ingredients) {
      if (i.tag == tag) own.push_back(i);
    }
  }
  return own;
}

// The fields of the spec that was recorded; none where this version does not understand it.
std::vector<cache::Ingredient> recorded_spec(const cache::Metadata& metadata) {
  try {
    return spec_ingredients(spec_from_json(value_of(metadata, "spec_json")));
  } catch (const Error&) {
    return {};
  }
}

std::vector<cache::Ingredient> wanted_ingredients(const Spec& spec, const KernelSource& source) {
  std::vector<cache::Ingredient> all = spec_ingredients(spec);
  const std::vector<cache::Ingredient> own = own_ingredients(kernel_request(source).ingredients);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::vector<cache::Ingredient> recorded_ingredients(const RecordedKernel& kernel) {
  std::vector<cache::Ingredient> all = recorded_spec(kernel.metadata);
  const std::vector<cache::Ingredient> own = own_ingredients(kernel.ingredients);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

// "cpu" asks for the highest level that this machine runs, so any of those will do.
bool is_equal(const std::string& tag, const std::string& wanted, const std::string& recorded) {
  if (tag == "target" && wanted == "cpu") {
    const std::vector<Target>& targets = cpu_targets();
    return std::any_of(targets.begin(), targets.end(),
                       [&](const Target& target) { return target.name() == recorded; });
  }
  return wanted == recorded;
}

// Fields that take another one's value where they are not given. Where both do, they say nothing
// new.
constexpr std::pair<std::string_view, std::string_view> kFollowers[] = {{"v_head_dim", "head_dim"},
                                                                        {"kv_dtype", "dtype"},
                                                                        {"out_dtype", "dtype"},
                                                                        {"kv_layout", "layout"}};

std::string_view value_in(const std::vector<cache::Ingredient>& ingredients, std::string_view tag) {
  for (const cache::Ingredient& i : ingredients) {
    if (i.tag == tag) return i.value;
  }
  return {};
}

bool only_follows(const std::string& tag, const std::vector<cache::Ingredient>& wanted,
                  const std::vector<cache::Ingredient>& recorded) {
  for (const auto& [follower, leader] : kFollowers) {
    if (tag != follower) continue;
    return value_in(wanted, follower) == value_in(wanted, leader) &&
           value_in(recorded, follower) == value_in(recorded, leader);
  }
  return false;
}

std::vector<KernelDifference> differences(const std::vector<cache::Ingredient>& wanted,
                                          const std::vector<cache::Ingredient>& recorded) {
  std::map<std::string, std::string> rest;
  for (const cache::Ingredient& i : recorded) rest.emplace(i.tag, i.value);
  std::vector<KernelDifference> found;
  const bool is_cpu_jit = std::any_of(wanted.begin(), wanted.end(), [](const auto& i) {
    return i.tag == "target" && i.value == "cpu";
  });
  for (const cache::Ingredient& i : wanted) {
    const auto other = rest.find(i.tag);
    const std::string there = other == rest.end() ? "none" : other->second;
    if (other != rest.end()) rest.erase(other);
    if (is_cpu_jit && i.tag == "options") continue;  // they follow the target
    if (only_follows(i.tag, wanted, recorded)) continue;
    if (!is_equal(i.tag, i.value, there)) found.push_back({i.tag, i.value, there});
  }
  for (const auto& [tag, value] : rest) found.push_back({tag, "none", value});
  return found;
}

// What a difference says against two kernels being meant to be the same.
int weight(const KernelDifference& difference) {
  if (difference.ingredient.ends_with("_mod")) return 4;
  return difference.ingredient == "kernel" ? 2 : 1;
}

int weight(const std::vector<KernelDifference>& differences) {
  int sum = 0;
  for (const KernelDifference& difference : differences) sum += weight(difference);
  return sum;
}

std::string host_digest() {
  return cache::sha256(cpu_identity()).hex();
}

std::string looked_in(const cache::Bundles& bundles, const cache::Store& store) {
  std::string text = "looked in:";
  for (const cache::Bundles::Opened& opened : bundles.opened()) {
    text += opened.bundle ? fmt::format("\nthe bundle \"{}\", {} kernels", opened.path.native(),
                                        opened.bundle->size())
                          : "\n" + opened.problem;
  }
  if (bundles.empty()) text += "\nno bundle, because TILEWRIGHT_BUNDLES names none";
  if (store.directory()) {
    const std::string problem = store.problem();
    text += problem.empty() ? fmt::format("\nthe cache \"{}\", {} kernels",
                                          store.directory()->native(), store.stats().entries)
                            : "\n" + problem;
  }
  return text;
}

// The entries of a store that cannot say what they are, one a line.
std::string bad_entries(const cache::Store& store) {
  std::string text;
  std::size_t count = 0;
  for (const cache::Listing& listing : store.ls()) {
    if (listing.problem.empty() || ++count > kShownBadEntries) continue;
    text += fmt::format("\n{}: {}", listing.key.digest.hex(), listing.problem);
  }
  if (count > kShownBadEntries) text += fmt::format("\nand {} more", count - kShownBadEntries);
  return text;
}

// The very kernel that is wanted, whose binary was refused; or null.
const RecordedKernel* damaged_kernel(const KernelSource& source,
                                     std::span<const RecordedKernel> recorded) {
  const cache::Digest wanted = kernel_request(source).digest;
  for (const RecordedKernel& kernel : recorded) {
    if (cache::digest_of(kernel.ingredients) == wanted) return &kernel;
  }
  return nullptr;
}

std::string describe(const NearestKernel& nearest) {
  const cache::Metadata& metadata = nearest.kernel->metadata;
  const std::string what = describe(nearest.differences);
  return fmt::format("the nearest entry is {} of \"{}\" for {} in \"{}\"; what differs:\n{}",
                     value_of(metadata, "kernel"), value_of(metadata, "spec"),
                     value_of(metadata, "target"), nearest.kernel->where,
                     what.empty() ? "nothing that is recorded" : what);
}

}  // namespace

std::vector<RecordedKernel> recorded_kernels(const cache::Bundles& bundles) {
  std::vector<RecordedKernel> kernels;
  for (const cache::Bundles::Opened& opened : bundles.opened()) {
    for (std::size_t entry = 0; opened.bundle && entry < opened.bundle->size(); ++entry) {
      std::optional<cache::BundleFacts> facts = opened.bundle->facts(entry);
      if (!facts) continue;
      kernels.push_back({.where = opened.path.native(),
                         .ingredients = std::move(facts->ingredients),
                         .metadata = std::move(facts->metadata)});
    }
  }
  return kernels;
}

std::vector<RecordedKernel> recorded_kernels(const cache::Store& store) {
  std::vector<RecordedKernel> kernels;
  for (cache::Listing& listing : store.ls()) {
    std::optional<cache::Request> request = recorded_request(listing.metadata);
    if (!request) continue;
    kernels.push_back({.where = store.directory()->native(),
                       .ingredients = std::move(request->ingredients),
                       .metadata = std::move(listing.metadata)});
  }
  return kernels;
}

std::optional<NearestKernel> nearest_kernel(const Spec& spec, const KernelSource& source,
                                            std::span<const RecordedKernel> recorded) {
  const std::vector<cache::Ingredient> wanted = wanted_ingredients(spec, source);
  std::optional<NearestKernel> nearest;
  for (const RecordedKernel& kernel : recorded) {
    std::vector<KernelDifference> found = differences(wanted, recorded_ingredients(kernel));
    if (nearest && weight(nearest->differences) <= weight(found)) continue;
    nearest = NearestKernel{&kernel, std::move(found)};
  }
  if (!nearest || !nearest->differences.empty()) return nearest;
  // All that a user wrote is the same, so it was rendered or compiled otherwise.
  const std::string ours = value_of(kernel_metadata(spec, source), "generator");
  const std::string theirs = value_of(nearest->kernel->metadata, "generator");
  if (ours != theirs) {
    nearest->differences.push_back({"generator", ours.substr(0, 12), theirs.substr(0, 12)});
  }
  return nearest;
}

// Options are recorded line by line.
std::string on_one_line(std::string value) {
  while (value.ends_with('\n')) value.pop_back();
  std::replace(value.begin(), value.end(), '\n', ' ');
  return printable(value, kShownBytes);
}

std::string describe(const std::vector<KernelDifference>& differences) {
  std::string text;
  for (const KernelDifference& difference : differences) {
    if (!text.empty()) text += "\n";
    text += fmt::format("{}: wanted {}, recorded {}", difference.ingredient,
                        on_one_line(difference.wanted), on_one_line(difference.recorded));
    if (difference.ingredient == "generator") {
      text += " (templates and generator of another version of tilewright)";
    }
  }
  return text;
}

std::string manifest_line(const Spec& spec) {
  std::string line;
  bool skips = false;
  for (const char c : to_json(spec)) {
    if (c == '\n') skips = true;
    if (skips && (c == '\n' || c == ' ')) continue;
    if (skips && !line.empty() && line.back() == ',') line += ' ';
    skips = false;
    line += c;
  }
  return fmt::format("{{\"spec\": {}}}", line);
}

std::shared_ptr<const cache::Entry> find_by_request(cache::Store& store,
                                                    const cache::Request& request) {
  for (const cache::Listing& listing : store.ls()) {
    const std::optional<cache::Request> recorded = recorded_request(listing.metadata);
    if (!recorded || recorded->digest != request.digest) continue;
    const std::string host = value_of(listing.metadata, "host");
    if (!host.empty() && host != host_digest()) continue;
    if (auto entry = store.load(listing.key)) return entry;
  }
  return nullptr;
}

std::string how_to_get(const KernelSource& source, const Spec& spec, const cache::Bundles& bundles,
                       const cache::Store& store, bool has_bad_entries) {
  if (source.variant.is_evaluation()) {
    return "the double-precision reference is never precompiled; unset TILEWRIGHT_JIT to check "
           "results";
  }
  const auto is_refused = [](const cache::Bundles::Opened& opened) { return !opened.bundle; };
  const bool refuses_one =
      std::any_of(bundles.opened().begin(), bundles.opened().end(), is_refused);
  std::string first;
  if (!store.problem().empty()) {
    first = "first mend the cache above that was refused; if the kernel is not in it, ";
  } else if (refuses_one) {
    first = "first mend the bundle above that was refused; if the kernel is not in it, ";
  } else if (has_bad_entries) {
    first = "if it is one of the damaged entries above, copy or fill the cache again; else ";
  }
  return fmt::format("{}add this to \"specs\" of the manifest and precompile() it for {}:\n{}",
                     first, source.target.name(), manifest_line(spec));
}

Error missing_kernel(const Spec& spec, const KernelSource& source, const cache::Bundles& bundles,
                     const cache::Store& store) {
  const std::vector<RecordedKernel> recorded = recorded_kernels(bundles);
  const std::optional<NearestKernel> nearest = nearest_kernel(spec, source, recorded);
  const RecordedKernel* const damaged = damaged_kernel(source, recorded);
  const std::string bad = bad_entries(store);
  std::vector<std::string> notes = {looked_in(bundles, store)};
  if (!bad.empty()) notes.push_back("entries of the cache that must not be used:" + bad);
  if (nearest && !damaged) notes.push_back(describe(*nearest));
  const std::string name = spec.name.empty() ? "this spec" : fmt::format("\"{}\"", spec.name);
  const std::string why =
      damaged ? fmt::format("is damaged in \"{}\"", damaged->where) : "was not precompiled";
  return Error(
      {.code = ErrorCode::missing_kernel,
       .message = fmt::format("{} of {} for {} {}, and TILEWRIGHT_JIT=off forbids compiling",
                              source.variant.name(), name, source.target.name(), why),
       .place = std::nullopt,
       .notes = std::move(notes),
       .hint = damaged ? "copy the bundle again, or build it again with precompile()"
                       : how_to_get(source, spec, bundles, store, !bad.empty())});
}

}  // namespace tilewright
