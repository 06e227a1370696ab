#include "cli/explain.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "cache/bundles.hpp"
#include "cache/remote_cache.hpp"
#include "cli/call.hpp"
#include "cli/kernels.hpp"
#include "cli/output.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/render/generator_digest.hpp"
#include "generator/render/templates.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/compile/cpu_identity.hpp"
#include "runtime/library/kernel_facts.hpp"
#include "runtime/library/kernel_library.hpp"
#include "runtime/library/kernel_search.hpp"

namespace tilewright::cli {
namespace {

constexpr std::size_t kShownBytes = 100;

// A place where a kernel was looked for.
struct CacheProbe {
  std::string where;
  bool hit = false;
  std::string by;   // what it was looked for by: "memo", "request ...", "key ..."
  std::string why;  // of a miss
};

// What is the same for every kernel of the spec.
struct Search {
  const Spec& spec;
  Toolchain toolchain;
  cache::Store store;
  std::shared_ptr<cache::RemoteCache> remote;  // null: none is named
  std::vector<RecordedKernel> bundled;
  std::vector<RecordedKernel> stored;
};

std::string why_missed(const Search& search, const KernelSource& source,
                       const std::vector<RecordedKernel>& recorded, const std::string& where) {
  std::vector<RecordedKernel> there;
  for (const RecordedKernel& kernel : recorded) {
    if (kernel.where == where) there.push_back(kernel);
  }
  const std::optional<NearestKernel> nearest = nearest_kernel(search.spec, source, there);
  if (!nearest) return "there is nothing to compare with";
  const cache::Metadata& metadata = nearest->kernel->metadata;
  const auto value = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string("?") : found->second;
  };
  const std::string what = describe(nearest->differences);
  return fmt::format("the nearest is {} of \"{}\" for {}; {}", value("kernel"), value("spec"),
                     value("target"),
                     what.empty() ? "another compiler made it: " + value("compiler") : what);
}

std::vector<CacheProbe> look_in_bundles(const Search& search, const KernelSource& source) {
  std::vector<CacheProbe> probes;
  const cache::Digest request = kernel_request(source).digest;
  const cache::Digest memo = kernel_memo(search.spec, source.target, source.variant);
  const bool has_memo = is_embedded(*search.toolchain.templates);
  for (const cache::Bundles::Opened& opened : search.toolchain.bundles->opened()) {
    CacheProbe probe{.where = opened.path.native(), .hit = false, .by = {}, .why = {}};
    if (!opened.bundle) {
      probe.why = opened.problem;
    } else if (has_memo && opened.bundle->find_memo(memo)) {
      probe.by = "memo " + memo.hex();
    } else if (opened.bundle->find(request)) {
      probe.by = "request " + request.hex();
    } else {
      probe.why = why_missed(search, source, search.bundled, probe.where);
    }
    if (!probe.by.empty()) {
      const auto by_memo = opened.bundle->find_memo(memo);
      const auto loaded = opened.bundle->load(by_memo ? *by_memo : *opened.bundle->find(request));
      probe.hit = loaded.entry != nullptr;
      probe.why = loaded.problem;
    }
    probes.push_back(std::move(probe));
  }
  return probes;
}

CacheProbe look_in_store(Search& search, const KernelSource& source, std::string& compiler) {
  CacheProbe probe{
      .where = search.store.directory() ? search.store.directory()->native() : "memory",
      .hit = false,
      .by = {},
      .why = search.store.problem()};
  const cache::Request request = kernel_request(source);
  try {
    compiler = find_compiler(source.target)->identity();
    const cache::Key key = cache::make_key(request, compiler);
    probe.by = "key " + key.digest.hex();
    probe.hit = search.store.load(key) != nullptr;
  } catch (const Error& error) {
    compiler = "none: " + error.message();
    probe.by = "request " + request.digest.hex();
    probe.hit = find_by_request(search.store, request) != nullptr;
  }
  if (probe.hit || !probe.why.empty()) return probe;
  probe.why = why_missed(search, source, search.stored, probe.where);
  return probe;
}

// By key alone, so only where there is a compiler.
std::optional<CacheProbe> look_in_remote(const Search& search, const KernelSource& source,
                                         const std::string& compiler) {
  if (!search.remote) return std::nullopt;
  CacheProbe probe{.where = search.remote->name(), .hit = false, .by = {}, .why = {}};
  try {
    const std::string identity = find_compiler(source.target)->identity();
    const cache::Key key = cache::make_key(kernel_request(source), identity);
    const cache::LoadResult found = search.remote->load(key);
    probe.by = "key " + key.digest.hex();
    probe.hit = found.entry != nullptr;
    probe.why = found.problem.empty() ? "the server has no such key" : found.problem;
  } catch (const Error&) {
    probe.why = "it is asked by key, which needs a compiler: " + compiler;
  }
  return probe;
}

// Everything that decides what the kernel's binary is.
std::vector<cache::Ingredient> ingredients_of(const Spec& spec, const KernelSource& source,
                                              const std::string& compiler) {
  std::vector<cache::Ingredient> all = kernel_request(source).ingredients;
  for (const cache::Ingredient& field : spec_ingredients(spec)) {
    all.push_back({"spec." + field.tag, field.value});
  }
  all.push_back({"generator", std::string(generator_digest())});
  all.push_back({"compiler", compiler});
  return all;
}

Json to_json(const CacheProbe& probe) {
  return {{"where", probe.where},
          {"hit", probe.hit},
          {"by", probe.by.empty() ? Json() : Json(probe.by)},
          {"why", probe.hit || probe.why.empty() ? Json() : Json(probe.why)}};
}

std::string indented(const std::string& text, std::string_view indent) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += indent;
  }
  return result;
}

std::string in_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string describe(const CacheProbe& probe) {
  std::string text = fmt::format("  {} in {}\n", probe.hit ? "found" : "missed", probe.where);
  if (!probe.by.empty()) text += fmt::format("    by {}\n", probe.by);
  if (!probe.hit && !probe.why.empty()) {
    text += fmt::format("    why: {}\n", indented(probe.why, "      "));
  }
  return text;
}

// As the loader does: for this machine's CPU, what bundles hold for its highest level.
Target wanted_target(const Search& search, const std::string& name) {
  const Target target = target_or_default(search.spec, name);
  if (target != Target::host_cpu()) return target;
  const std::vector<KernelVariant> ids = {forward_kernel(search.spec, target)};
  return bundled_target(search.spec, cpu_targets(), ids, search.toolchain).value_or(target);
}

}  // namespace

void explain(const std::string& spec_path, const std::string& target_name, bool json,
             bool verbose) {
  const Spec spec = spec_from_file(spec_path);
  Toolchain toolchain = with_defaults(command_line_toolchain());
  Search search{.spec = spec,
                .toolchain = toolchain,
                .store = cache::Store({.directory = cache::default_directory(),
                                       .diagnostics = diagnostics_to_stderr()}),
                .remote = cache::RemoteCache::from_environment(),
                .bundled = recorded_kernels(*toolchain.bundles),
                .stored = {}};
  search.stored = recorded_kernels(search.store);
  const Target target = wanted_target(search, target_name);
  Json kernels = Json::array();
  std::string text;
  std::map<std::string, int> hits;  // by where
  int count = 0, missed = 0;
  for (const KernelVariant& id : kernel_set(spec, target)) {
    const KernelSource source = requested_source(spec, target, id, toolchain);
    std::vector<CacheProbe> probes = look_in_bundles(search, source);
    std::string compiler;
    probes.push_back(look_in_store(search, source, compiler));
    if (auto remote = look_in_remote(search, source, compiler)) {
      probes.push_back(*std::move(remote));
    }
    const cache::Digest request = kernel_request(source).digest;
    Json ingredients = Json::object();
    Json places = Json::array();
    const auto hit = std::find_if(probes.begin(), probes.end(),
                                  [](const CacheProbe& probe) { return probe.hit; });
    const bool found = hit != probes.end();
    ++count;
    found ? ++hits[hit->where] : ++missed;
    text += found && !verbose ? fmt::format("{}: found in {}\n", id.name(), hit->where)
                              : fmt::format("{}{}\n", id.name(), found ? "" : ": missed");
    if (verbose) text += fmt::format("  request {}\n", request.hex());
    for (const cache::Ingredient& i : ingredients_of(spec, source, compiler)) {
      ingredients[i.tag] = i.value;
      if (!verbose) continue;
      text += fmt::format("    {:<17} {}\n", i.tag, printable(in_one_line(i.value), kShownBytes));
    }
    for (const CacheProbe& probe : probes) {
      places.push_back(to_json(probe));
      if (verbose || !found) text += describe(probe);
    }
    kernels.push_back({{"kernel", id.name()},
                       {"request", request.hex()},
                       {"ingredients", ingredients},
                       {"looked_in", places}});
  }
  if (!json) {
    std::string summary = fmt::format(
        "{} for {}: {} of {} {} found", spec.name.empty() ? spec_path : spec.name, target.name(),
        count - missed, counted(count, "kernel"), is_or_are(count - missed));
    std::string separator = ": ";
    for (const auto& [where, number] : hits) {
      summary += fmt::format("{}{} in {}", std::exchange(separator, ", "), number, where);
    }
    if (missed > 0) {
      summary += fmt::format("; {} missed and {}", missed,
                             *toolchain.jit ? "compiled when a call needs them"
                                            : "an error for a call, as TILEWRIGHT_JIT is off");
    }
    summary +=
        toolchain.bundles->empty() ? "\nno bundles: TILEWRIGHT_BUNDLES names none\n\n" : "\n\n";
    return print(summary + text);
  }
  print_json({{"spec", spec.name},
              {"target", target.name()},
              {"jit", *toolchain.jit},
              {"found", count - missed},
              {"missed", missed},
              {"kernels", kernels}});
}

}  // namespace tilewright::cli
