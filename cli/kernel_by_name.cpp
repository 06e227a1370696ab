#include "cli/kernel_by_name.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/characters.hpp"
#include "base/error.hpp"
#include "cache/store.hpp"
#include "cli/call.hpp"
#include "cli/output.hpp"
#include "runtime/library/kernel_library.hpp"
#include "runtime/library/kernel_names.hpp"
#include "runtime/library/kernel_search.hpp"

namespace tilewright::cli {
namespace {

constexpr std::string_view kPrefix = "tw_";

std::string value_of(const cache::Metadata& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string() : found->second;
}

bool has_name(const RecordedKernel& kernel, const std::string& name) {
  if (!name.starts_with(kPrefix)) return name_digits(kernel.ingredients) == name;
  const std::vector<std::string> names = recorded_names(kernel.metadata);
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<RecordedKernel> kernels_named(const std::string& name) {
  const Toolchain toolchain = with_defaults(command_line_toolchain());
  const cache::Store store(
      {.directory = cache::default_directory(), .diagnostics = diagnostics_to_stderr()});
  std::vector<RecordedKernel> kernels = recorded_kernels(*toolchain.bundles);
  for (RecordedKernel& kernel : recorded_kernels(store)) kernels.push_back(std::move(kernel));
  std::erase_if(kernels, [&](const RecordedKernel& kernel) { return !has_name(kernel, name); });
  return kernels;
}

// A spec too long for an entry's metadata is not recorded.
Json spec_of(const cache::Metadata& metadata) {
  return Json::parse(value_of(metadata, "spec_json"), nullptr, /*allow_exceptions=*/false);
}

Json to_json(const RecordedKernel& kernel) {
  const cache::Metadata& metadata = kernel.metadata;
  const Json spec = spec_of(metadata);
  return {{"names", recorded_names(metadata)},
          {"kernel", value_of(metadata, "kernel")},
          {"target", value_of(metadata, "target")},
          {"spec_name", value_of(metadata, "spec")},
          {"spec", spec.is_discarded() ? Json() : spec},
          {"compiler", value_of(metadata, "compiler")},
          {"where", kernel.where}};
}

std::string describe(const RecordedKernel& kernel) {
  const cache::Metadata& metadata = kernel.metadata;
  const std::string spec = value_of(metadata, "spec_json");
  return fmt::format(
      "{}\n  kernel    {}\n  spec      \"{}\"\n  target    {}\n  compiler  {}\n"
      "  where     {}\n{}\n",
      fmt::join(recorded_names(metadata), " "), value_of(metadata, "kernel"),
      value_of(metadata, "spec"), value_of(metadata, "target"), value_of(metadata, "compiler"),
      kernel.where, spec.empty() ? "its spec is too long to be recorded" : spec);
}

}  // namespace

bool is_kernel_name(const std::string& text) {
  if (text.size() < kNameDigits) return false;
  const std::string_view digits = std::string_view(text).substr(text.size() - kNameDigits);
  if (!std::all_of(digits.begin(), digits.end(), is_hex_digit)) return false;
  return digits.size() == text.size() ||
         (text.starts_with(kPrefix) && text[text.size() - kNameDigits - 1] == '_');
}

void explain_kernel_name(const std::string& name, bool json) {
  const std::vector<RecordedKernel> kernels = kernels_named(name);
  if (kernels.empty()) {
    throw Error(ErrorCode::usage,
                fmt::format("no kernel of the cache or of a bundle is named \"{}\"", name),
                "name the cache or the bundles of the process that ran it: TILEWRIGHT_CACHE, "
                "TILEWRIGHT_BUNDLES");
  }
  if (!json) {
    for (const RecordedKernel& kernel : kernels) print(describe(kernel));
    return;
  }
  Json list = Json::array();
  for (const RecordedKernel& kernel : kernels) list.push_back(to_json(kernel));
  print_json({{"name", name}, {"kernels", list}});
}

}  // namespace tilewright::cli
