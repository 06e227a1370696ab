#include "runtime/library/tuned_tactic.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/report.hpp"
#include "base/switch_variable.hpp"
#include "cache/bundles.hpp"
#include "cache/key.hpp"
#include "cache/sha256.hpp"
#include "cache/store.hpp"
#include "generator/render/generator_digest.hpp"
#include "generator/render/kernel_source.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/library/kernel_facts.hpp"
#include "runtime/library/kernel_library.hpp"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "1";               // of a record
constexpr const char* kAnyNote = "tuned tactics";  // kept where a store has ever had a record

// What a record is found by.
std::vector<cache::Ingredient> ingredients_of(const Spec& spec, const DeviceKind& device) {
  Spec free = kernel_spec(spec);
  free.tactic.reset();
  return {{"device", device.name},
          {"generator", std::string(generator_digest())},
          {"spec", cache::sha256(to_json(free)).hex()},
          {"tuned_tactic", kFormat}};
}

std::string note_name(const Spec& spec, const DeviceKind& device) {
  return "tuned tactic " + cache::digest_of(ingredients_of(spec, device)).hex();
}

std::string text_of(const TunedTactic& tuned) {
  Json record = {{"gain", tuned.gain}, {"shapes", tuned.shapes}, {"date", tuned.date}};
  if (tuned.tactic) {
    record["tactic"] = {{"name", tuned.tactic->name}, {"parameters", tuned.tactic->parameters}};
  }
  return record.dump();
}

// Returns nothing if a value is not a whole number, or if int64 cannot hold it: Json would convert
// it to another number.
std::optional<std::map<std::string, std::int64_t>> parameters_of(const Json& object) {
  std::map<std::string, std::int64_t> parameters;
  for (const auto& [name, value] : object.items()) {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
    if (!fits) return std::nullopt;
    parameters[name] = value.get<std::int64_t>();
  }
  return parameters;
}

// Nothing for a text that is no record: it counts as if nothing was remembered.
std::optional<TunedTactic> record_of(std::string_view text) {
  try {
    const Json record = Json::parse(text);
    TunedTactic tuned{.gain = record.at("gain").get<double>(),
                      .shapes = record.at("shapes").get<std::string>(),
                      .date = record.at("date").get<std::string>()};
    if (record.contains("tactic")) {
      const Json& tactic = record.at("tactic");
      auto parameters = parameters_of(tactic.at("parameters"));
      if (!parameters) return std::nullopt;
      tuned.tactic = {.name = tactic.at("name").get<std::string>(),
                      .parameters = std::move(*parameters)};
    }
    if (tuned.date.empty()) return std::nullopt;  // what was remembered is forgotten
    return tuned;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

cache::BundleItem record_item(const Spec& spec, const DeviceKind& device,
                              const TunedTactic& tuned) {
  const std::string text = text_of(tuned);
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  auto entry = std::make_shared<cache::Entry>();
  entry->payload.assign(bytes, bytes + text.size());
  return {.request = cache::make_request(ingredients_of(spec, device)),
          .memos = {},
          .metadata = {{"kernel", "tuned_tactic"},
                       {"spec", spec.name},
                       {"target", device.targets.back().name()},
                       {"device", device.name}},
          .entry = std::move(entry)};
}

// Why the kernels of a spec with a tactic cannot be made; nothing where they can.
std::optional<std::string> why_unfit(const Spec& spec, const Target& target,
                                     bool takes_block_mask) {
  const SpecFacts facts(spec);
  KernelVariant kernel = forward_kernel(spec, target, takes_block_mask);
  try {
    static_cast<void>(choose_tactic(facts, target, kernel));
    kernel.aligned = false;
    static_cast<void>(choose_tactic(facts, target, kernel));
    return std::nullopt;
  } catch (const Error& error) {
    return error.message();
  }
}

// Where it was remembered, bundles aside.
std::string folder_of(const Toolchain& toolchain) {
  const bool has_folder = toolchain.store && toolchain.store->directory();
  return has_folder ? toolchain.store->directory()->string() : "a bundle";
}

// Another one is chosen then.
void say_unfit(const Spec& spec, const std::string& why, const Toolchain& toolchain) {
  report(toolchain.diagnostics, Severity::warning,
         fmt::format("the tactic that {} remembers of spec \"{}\" is ignored: {}; tilewright tune "
                     "SPEC --forget removes it",
                     folder_of(toolchain), spec.name, why));
}

// Whatever the device.
bool may_have_tuned_tactic(const Spec& spec, const AttentionOptions& options) {
  if (spec.tactic || spec.is_packed() || options.masks_only || !uses_tuned_tactics()) return false;
  const Toolchain toolchain = with_defaults(options.kernels);
  if (*toolchain.jit && toolchain.store->note(kAnyNote)) return true;
  return !toolchain.bundles->empty() && toolchain.bundles->has_ingredient("tuned_tactic", kFormat);
}

}  // namespace

bool uses_tuned_tactics() {
  return switch_variable("TILEWRIGHT_TUNED",
                         "set it to \"0\" to use no remembered tactic, or unset it")
      .value_or(true);
}

std::optional<TunedTactic> remembered_tactic(const Spec& spec, const DeviceKind& device,
                                             const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  if (!toolchain.bundles->empty()) {
    const cache::Request request = cache::make_request(ingredients_of(spec, device));
    if (const auto entry = toolchain.bundles->load(request.digest).entry) {
      const auto* const text = reinterpret_cast<const char*>(entry->payload.data());
      return record_of({text, entry->payload.size()});
    }
  }
  if (!*toolchain.jit) return std::nullopt;
  const std::optional<std::string> note = toolchain.store->note(note_name(spec, device));
  return note ? record_of(*note) : std::nullopt;
}

void remember_tactic(const Spec& spec, const DeviceKind& device, const TunedTactic& tuned,
                     const Toolchain& given) {
  const Toolchain toolchain = with_defaults(given);
  const std::string name = note_name(spec, device), text = text_of(tuned);
  toolchain.store->keep_note(kAnyNote, kFormat);
  toolchain.store->keep_note(name, text);
  if (toolchain.store->note(name) == text) return;
  const auto& directory = toolchain.store->directory();
  throw Error(ErrorCode::disk,
              directory ? fmt::format("the tactic could not be kept in {}", directory->string())
                        : "the tactic could not be kept: no cache directory is known",
              "set TILEWRIGHT_CACHE to a folder of yours with room, or write the tactic into the "
              "spec");
}

TunedSpecs tuned_specs(std::span<const ManifestSpec> specs, const DeviceKind& device,
                       const Toolchain& toolchain) {
  TunedSpecs found;
  // A CPU's own target has no place in a bundle. An older target of a GPU may lack the tactic.
  const bool is_cpu = device.targets.front().is_cpu();
  const auto first = device.targets.begin() + (is_cpu ? 1 : 0);
  found.targets.assign(first, is_cpu ? device.targets.end() : first + 1);
  for (const ManifestSpec& one : specs) {
    if (one.spec.tactic || one.spec.is_packed()) continue;
    const std::optional<TunedTactic> tuned = remembered_tactic(one.spec, device, toolchain);
    if (!tuned || !tuned->tactic) continue;
    ManifestSpec forced = one;
    forced.spec.tactic = tuned->tactic;
    if (const auto why = why_unfit(forced.spec, device.targets.front(), false)) {
      say_unfit(one.spec, *why, with_defaults(toolchain));
      continue;
    }
    found.specs.push_back(std::move(forced));
    found.records.push_back(record_item(one.spec, device, *tuned));
  }
  return found;
}

Spec with_tuned_tactic(Spec spec, const std::function<DeviceKind()>& device_kind,
                       const AttentionOptions& options) {
  if (!may_have_tuned_tactic(spec, options)) return spec;
  const DeviceKind device = device_kind();
  std::optional<TunedTactic> tuned = remembered_tactic(spec, device, options.kernels);
  if (!tuned || !tuned->tactic) return spec;
  Spec forced = spec;
  forced.tactic = std::move(tuned->tactic);
  const auto why = why_unfit(forced, device.targets.front(), options.takes_block_mask);
  if (!why) return forced;
  say_unfit(spec, *why, with_defaults(options.kernels));
  return spec;
}

}  // namespace tilewright
