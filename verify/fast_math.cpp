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

bool multiplies_tf32(const Spec& spec, const Device& device) {
  return device.kind() == Device::Kind::cuda && spec.f32_products == F32Products::tf32;
}

DType product_dtype(const Attention& attention) {
  const Spec& spec = attention.spec();
  if (spec.dtype != DType::f8e4m3) return spec.dtype;
  // Whether a call takes Hopper's kernel depends on its tensors too.
  const bool may_be_hoppers = attention.device().kind() == Device::Kind::cuda &&
                              attention.target().name() == "sm_90a" && !spec.is_paged();
  return may_be_hoppers ? spec.dtype : DType::f32;
}

}  // namespace tilewright::verify
