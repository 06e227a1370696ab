#include "generator/snippet/scale_note.hpp"

#include <cmath>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"

namespace tilewright {

SnippetNote scale_note(const Spec& spec, SnippetKind kind, double value) {
  const std::string text = std::isnan(value) ? "NaN" : fmt::format("{}", static_cast<float>(value));
  return {.place = place_at(to_string(kind), snippet_text(spec, kind), 0),
          .message = fmt::format("{} is {} by this call's values: what it reaches is not judged",
                                 to_string(kind), text),
          .hint = kind == SnippetKind::out_scale
                      ? "give a number from 1.2e-38 on: a kernel may multiply by its reciprocal"
                      : "give a finite number: what inf or NaN makes of a 0 depends on where a "
                        "kernel multiplies by it"};
}

}  // namespace tilewright
