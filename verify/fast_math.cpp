#include "verify/fast_math.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "generator/snippet/snippet.hpp"

namespace tilewright::verify {
namespace {

constexpr std::array<std::string_view, 15> kTranscendental = {
    "cos",  "erf", "erfc",  "exp", "exp2", "expm1", "log", "log1p",
    "log2", "pow", "rsqrt", "sin", "sqrt", "tan",   "tanh"};

}  // namespace

bool uses_fast_math(const Spec& spec, const Device& device) {
  if (device.kind() != Device::Kind::cuda || spec.has_precise_functions() ||
      spec.score_mod.empty()) {
    return false;
  }
  const Snippet snippet = check_snippet(SnippetKind::score_mod, spec.score_mod);
  return std::any_of(kTranscendental.begin(), kTranscendental.end(), [&](std::string_view name) {
    return snippet.mentions(name) || snippet.mentions(std::string(name) + "f");
  });
}

}  // namespace tilewright::verify
