#include "runtime/library/kernel_facts.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/render/generator_digest.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/compile/cpu_identity.hpp"
#include "runtime/library/kernel_names.hpp"

namespace tilewright {
namespace {

// Raised when a binary of the same source could not serve any more: another layout of
// templates/abi, another set of entry points.
constexpr std::string_view kBinaryFormat = "2";

// How the ingredients of a request are called in the metadata.
constexpr std::string_view kFactsPrefix = "request.";
constexpr std::string_view kTags[] = {"format", "kernel", "options", "source", "target"};

// No option of ours undoes another, so their order says nothing.
std::string sorted_lines(std::vector<std::string> options) {
  std::sort(options.begin(), options.end());
  std::string text;
  for (const std::string& option : options) text += option + '\n';
  return text;
}

std::string dim_text(const BufferDim& dim) {
  if (const auto* size = std::get_if<std::int64_t>(&dim)) return std::to_string(*size);
  if (const auto* named = std::get_if<NamedDim>(&dim)) return std::string(to_string(*named));
  return "null";
}

std::string buffer_text(const BufferSpec& buffer) {
  std::vector<std::string> dims;
  for (const BufferDim& dim : buffer.shape) dims.push_back(dim_text(dim));
  return fmt::format("{} [{}]{}{}", to_string(buffer.dtype), fmt::join(dims, ", "),
                     buffer.bounds == Bounds::trusted ? " trusted" : "",
                     buffer.sorted.is_promised() ? " sorted" : "");
}

std::string tactic_text(const std::optional<TacticSpec>& tactic) {
  if (!tactic) return "chosen";
  std::string text = tactic->name;
  for (const auto& [name, value] : tactic->parameters) text += fmt::format(" {}={}", name, value);
  return text;
}

}  // namespace

cache::Request kernel_request(const KernelSource& source) {
  return cache::make_request({{"format", std::string(kBinaryFormat)},
                              {"kernel", source.variant.name()},
                              {"options", sorted_lines(source.options)},
                              {"source", cache::sha256(source.text).hex()},
                              {"target", source.target.name()}});
}

cache::Digest kernel_memo(const Spec& spec, const Target& target, const KernelVariant& id) {
  const cache::Ingredient ingredients[] = {{"format", std::string(kBinaryFormat)},
                                           {"generator", std::string(generator_digest())},
                                           {"kernel", id.name()},
                                           {"spec", to_json(kernel_spec(spec))},
                                           {"target", target.name()}};
  return cache::digest_of(ingredients);
}

cache::Metadata kernel_metadata(const Spec& spec, const KernelSource& source) {
  cache::Metadata metadata = {{"kernel", source.variant.name()},
                              {"spec", spec.name},
                              {"target", source.target.name()},
                              {"generator", std::string(generator_digest())},
                              {"names", fmt::format("{}", fmt::join(kernel_names(source), " "))}};
  for (const cache::Ingredient& ingredient : kernel_request(source).ingredients) {
    metadata.emplace(std::string(kFactsPrefix) + ingredient.tag, ingredient.value);
  }
  // What "cpu" means is in the compiler's identity alone; without a compiler this must tell.
  if (source.target == Target::host_cpu()) {
    metadata.emplace("host", cache::sha256(cpu_identity()).hex());
  }
  std::string json = to_json(kernel_spec(spec));
  if (json.size() <= cache::kMaxMetadataValue) metadata.emplace("spec_json", std::move(json));
  return metadata;
}

std::optional<cache::Request> recorded_request(const cache::Metadata& metadata) {
  std::vector<cache::Ingredient> ingredients;
  for (const std::string_view tag : kTags) {
    const auto found = metadata.find(std::string(kFactsPrefix) + std::string(tag));
    if (found == metadata.end()) return std::nullopt;
    ingredients.push_back({std::string(tag), found->second});
  }
  return cache::make_request(std::move(ingredients));
}

Spec kernel_spec(Spec spec) {
  spec.name.clear();
  spec.scale.reset();
  for (auto& [name, buffer] : spec.buffers) {
    buffer.range.reset();
    if (!buffer.sorted.is_promised()) buffer.sorted = false;
  }
  for (auto& [name, scalar] : spec.scalars) scalar.default_value.reset();
  return spec;
}

std::vector<cache::Ingredient> spec_ingredients(const Spec& spec) {
  const auto text = [](auto value) { return std::string(to_string(value)); };
  std::vector<cache::Ingredient> fields = {
      {"dtype", text(spec.dtype)},
      {"kv_dtype", text(spec.key_value_dtype())},
      {"out_dtype", text(spec.output_dtype())},
      {"head_dim", std::to_string(spec.head_dim)},
      {"v_head_dim", std::to_string(spec.value_head_dim())},
      {"layout", text(spec.layout)},
      {"kv_layout", text(spec.key_value_layout())},
      {"kv_new", spec.kv_new ? "true" : "false"},
      {"score_mod", spec.score_mod.empty() ? "none" : spec.score_mod},
      {"mask_mod", spec.mask_mod.empty() ? "none" : spec.mask_mod},
      {"block", fmt::format("[{}, {}]", spec.block[0], spec.block[1])},
      {"outputs", fmt::format("{}", fmt::join(output_names(spec.outputs), ", "))},
      {"gradients",
       spec.gradients.empty() ? "none" : fmt::format("{}", fmt::join(spec.gradients, ", "))},
      {"precise_math", !spec.precise_math   ? "not set"
                       : *spec.precise_math ? "true"
                                            : "false"},
      {"f32_products", text(spec.f32_products)},
      {"tactic", tactic_text(spec.tactic)}};
  for (const SnippetKind kind : {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale,
                                 SnippetKind::out_scale, SnippetKind::sink, SnippetKind::dropout}) {
    const std::string& snippet = snippet_text(spec, kind);
    if (!snippet.empty()) fields.push_back({std::string(to_string(kind)), snippet});
  }
  for (const auto& [name, buffer] : spec.buffers) {
    fields.push_back({"buffers." + name, buffer_text(buffer)});
  }
  for (const auto& [name, scalar] : spec.scalars) {
    fields.push_back({"scalars." + name, text(scalar.dtype)});
  }
  return fields;
}

cache::Metadata bundle_metadata(cache::Metadata metadata) {
  std::erase_if(metadata, [](const auto& item) { return item.first.starts_with("request."); });
  return metadata;
}

}  // namespace tilewright
