#include "generator/spec/target.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/messages/usual_mistakes.hpp"

namespace tilewright {
namespace {

constexpr int kOldestSm = 80;

// The architecture of sm_80, sm_90a, sm_100f; 0 for any other text.
int sm_number(std::string_view name) {
  if (!name.starts_with("sm_")) return 0;
  int number = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 3, end, number);
  const bool has_variant = end - rest == 1 && (*rest == 'a' || *rest == 'f');
  return error == std::errc{} && (rest == end || has_variant) ? number : 0;
}

// What people write who know an architecture by another name.
std::string hint_for(std::string_view name) {
  if (name.starts_with("compute_")) {
    return fmt::format("a real architecture is needed: \"sm_{}\"", printable(name.substr(8)));
  }
  if (name == "cuda" || name == "gpu" || name == "native") {
    return "name the architecture, as \"sm_90a\" for compute capability 9.0";
  }
  if (name.starts_with("x86-64") || name == "avx2" || name == "avx512") {
    return "CPU targets are \"cpu\", \"cpu-x86-64-v3\" and \"cpu-x86-64-v4\"";
  }
  const std::string_view advice = usual_mistake(MistakeIn::target, name);
  return advice.empty() ? did_you_mean(name, Target::all_names()) : std::string(advice);
}

}  // namespace

const std::vector<std::string>& Target::all_names() {
  static const auto& kNames = *new std::vector<std::string>{
      "cpu",     "cpu-x86-64-v3", "cpu-x86-64-v4", "sm_80",   "sm_86",   "sm_87",   "sm_88",
      "sm_89",   "sm_90",         "sm_90a",        "sm_100",  "sm_100a", "sm_100f", "sm_103",
      "sm_103a", "sm_103f",       "sm_110",        "sm_110a", "sm_110f", "sm_120",  "sm_120a",
      "sm_120f", "sm_121",        "sm_121a",       "sm_121f"};
  return kNames;
}

Target Target::parse(std::string_view name) {
  const std::vector<std::string>& names = all_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return Target(std::string(name));
  const int sm = sm_number(name);
  if (sm > 0 && sm < kOldestSm) {
    throw Error(ErrorCode::usage, fmt::format("target \"{}\" is too old", name),
                "the oldest CUDA target is sm_80 (Ampere); \"cpu\" runs everywhere");
  }
  throw Error({.code = ErrorCode::usage,
               .message = fmt::format("\"{}\" is not a target", printable(name)),
               .place = std::nullopt,
               .notes = {"targets are " + one_of(names)},
               .hint = hint_for(name)});
}

Target Target::host_cpu() {
  return Target("cpu");
}

int Target::sm() const {
  return sm_number(name_);
}

}  // namespace tilewright
