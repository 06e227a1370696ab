#include "generator/snippet/dropout_note.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright {
namespace {

bool is_usual(double value) {
  return value >= 0 && value < 1;
}

bool reads_values_of_a_call(const Spec& spec) {
  const Snippet dropout = check_snippet(SnippetKind::dropout, spec.dropout);
  const auto reads = [&](const auto& named) { return dropout.mentions(named.first); };
  return std::any_of(spec.scalars.begin(), spec.scalars.end(), reads) ||
         std::any_of(spec.buffers.begin(), spec.buffers.end(), reads);
}

}  // namespace

std::optional<ProbabilityNote> probability_note(double value, const std::string& text) {
  if (is_usual(value)) return std::nullopt;
  constexpr const char* kEvery = "every weight is dropped, and out is 0";
  constexpr const char* kUsual = "write a probability from 0 to below 1, such as 0.1f";
  if (std::isnan(value)) {
    return ProbabilityNote{fmt::format("dropout is {}: {}", text, kEvery), kUsual};
  }
  if (value < 0) {
    return ProbabilityNote{fmt::format("dropout is {}, and below 0 no weight is dropped", text),
                           kUsual};
  }
  const bool is_per_cent = value > 1 && value < 100;
  return ProbabilityNote{
      fmt::format("dropout is {}, and from 1 on {}", text, kEvery),
      is_per_cent ? fmt::format("for {:g} % write {:g}f", value, value / 100) : kUsual};
}

std::optional<SnippetNote> dropout_note(const Spec& spec, std::span<const double> of_heads) {
  const auto first =
      std::find_if(of_heads.begin(), of_heads.end(), [](double p) { return !is_usual(p); });
  if (first == of_heads.end() || !reads_values_of_a_call(spec)) return std::nullopt;
  const std::string value =
      std::isnan(*first) ? "NaN" : fmt::format("{}", static_cast<float>(*first));
  const bool is_of_all = std::none_of(of_heads.begin(), of_heads.end(), is_usual);
  const std::string where =
      is_of_all ? " by this call's values" : fmt::format(" in head {}", first - of_heads.begin());
  const auto note = probability_note(*first, value + where);
  return SnippetNote{.place = place_at(to_string(SnippetKind::dropout), spec.dropout, 0),
                     .message = note->message,
                     .hint = note->hint};
}

}  // namespace tilewright
