#include "runtime/library/kernel_names.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "runtime/library/kernel_facts.hpp"

namespace tilewright {
namespace {

// How every entry point of a template begins.
constexpr std::string_view kNameBeginning = "tilewright_";

// "plan_columns" of "tilewright_backward_plan_columns".
std::string_view own_words(std::string_view entry_point) {
  return entry_point.substr(entry_point.find('_', kNameBeginning.size()) + 1);
}

std::size_t end_of_identifier(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_name_part(text[end])) ++end;
  return end;
}

std::size_t place_of(std::string_view entry, const std::vector<std::string>& entries) {
  return static_cast<std::size_t>(std::find(entries.begin(), entries.end(), entry) -
                                  entries.begin());
}

std::string named_text(const KernelSource& source, const std::vector<std::string>& names) {
  const std::string_view text = source.text;
  std::string named;
  std::size_t copied = 0;
  for (std::size_t begin = text.find(kNameBeginning); begin != std::string_view::npos;
       begin = text.find(kNameBeginning, begin + 1)) {
    if (begin > 0 && is_name_part(text[begin - 1])) continue;
    const std::size_t end = end_of_identifier(text, begin);
    const std::size_t place = place_of(text.substr(begin, end - begin), source.entry_points);
    if (place == source.entry_points.size()) continue;
    named += text.substr(copied, begin - copied);
    named += names[place];
    copied = end;
  }
  return named += text.substr(copied);
}

}  // namespace

std::string name_digits(const std::vector<cache::Ingredient>& ingredients) {
  std::vector<cache::Ingredient> named;
  for (const cache::Ingredient& i : ingredients) {
    if (i.tag == "source" || i.tag == "target" || i.tag == "options") named.push_back(i);
  }
  return cache::digest_of(named).hex().substr(0, kNameDigits);
}

std::vector<std::string> kernel_names(const KernelSource& source) {
  const std::string variant = source.variant.name();
  const std::string digits = name_digits(kernel_request(source).ingredients);
  if (source.target.is_cpu() || source.entry_points.size() == 1) {
    return {fmt::format("tw_{}_{}", variant, digits)};
  }
  std::vector<std::string> names;
  for (const std::string& entry : source.entry_points) {
    names.push_back(fmt::format("tw_{}_{}_{}", variant, own_words(entry), digits));
  }
  return names;
}

KernelSource with_names(const KernelSource& source) {
  KernelSource named = source;
  if (source.target.is_cpu()) return named;
  named.entry_points = kernel_names(source);
  named.text = named_text(source, named.entry_points);
  for (std::string& plain : named.plain_entry_points) {
    plain = named.entry_points[place_of(plain, source.entry_points)];
  }
  return named;
}

std::vector<std::string> recorded_names(const cache::Metadata& metadata) {
  const auto found = metadata.find("names");
  if (found == metadata.end()) return {};
  std::istringstream words(found->second);
  std::vector<std::string> names;
  for (std::string name; words >> name;) names.push_back(std::move(name));
  return names;
}

}  // namespace tilewright
