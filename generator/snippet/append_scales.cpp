#include "generator/snippet/append_scales.hpp"

#include <array>

#include <fmt/format.h>

namespace tilewright {

bool append_divides(const Spec& spec) {
  return !spec.k_scale.empty() || !spec.v_scale.empty();
}

std::string first_named(const Spec& spec, SnippetKind scale,
                        std::span<const std::string_view> names) {
  const std::string& text = snippet_text(spec, scale);
  if (text.empty()) return {};
  const Snippet snippet = check_snippet(scale, text);
  for (const std::string_view name : names) {
    if (snippet.mentions(name)) return fmt::format("{} names {}", to_string(scale), name);
  }
  return {};
}

std::string named_beside_slots(const Spec& spec) {
  constexpr std::array<std::string_view, 4> kUnknown = {"b", "kv_idx", "q_len", "kv_len"};
  const std::string of_k = first_named(spec, SnippetKind::k_scale, kUnknown);
  return of_k.empty() ? first_named(spec, SnippetKind::v_scale, kUnknown) : of_k;
}

}  // namespace tilewright
