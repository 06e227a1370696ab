#include "generator/spec/gradients.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright {
namespace {

constexpr std::array<std::string_view, 3> kTensors = {"q", "k", "v"};
// Tensors of a call, in files too.
constexpr std::array<std::string_view, 10> kTaken = {"q",    "k",    "v",  "out", "lse",
                                                     "dout", "dlse", "dq", "dk",  "dv"};

bool is_among(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class GradientChecker {
 public:
  GradientChecker(const Spec& spec, const std::function<void(const SpecProblem&)>& fail)
      : spec_(spec), fail_(fail) {}

  void run() const {
    if (spec_.gradients.empty()) return;
    check_scales();
    for (std::size_t i = 0; i < spec_.gradients.size(); ++i) check(i);
    if (spec_.is_paged()) {
      fail_({.path = {"gradients"},
             .message = "the spec has gradients, and k and v in pages have none",
             .hint = R"(write "kv_layout": "packed", or leave gradients out)"});
    }
    if (!spec_.outputs.lse) {
      fail_({.path = {"gradients"},
             .message = "the spec has gradients, and its outputs do not name lse, which they need",
             .hint = spec_.outputs.max_scores ? R"(write "outputs": ["out", "lse", "max_scores"])"
                                              : R"(write "outputs": ["out", "lse"])"});
    }
    for (const auto& [name, buffer] : spec_.buffers) check_free("buffers", name);
    for (const auto& [name, scalar] : spec_.scalars) check_free("scalars", name);
  }

 private:
  void check_scales() const {
    for (const SnippetKind kind : {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale,
                                   SnippetKind::out_scale}) {
      if (snippet_text(spec_, kind).empty()) continue;
      fail_({.path = {"gradients"},
             .message = fmt::format(
                 "gradients of a spec with {} are reserved and not yet supported", to_string(kind)),
             .hint = fmt::format("leave {} or gradients out", to_string(kind))});
    }
  }

  void check(std::size_t i) const {
    const std::string& name = spec_.gradients[i];
    const auto first = std::find(spec_.gradients.begin(), spec_.gradients.end(), name);
    if (first - spec_.gradients.begin() != static_cast<std::ptrdiff_t>(i)) {
      refuse(i, fmt::format("gradients names \"{}\" twice", printable(name)),
             "delete one of the two");
    }
    if (is_among(kTensors, name)) return;
    const auto buffer = spec_.buffers.find(name);
    const auto scalar = spec_.scalars.find(name);
    if (buffer == spec_.buffers.end() && scalar == spec_.scalars.end()) return refuse_unknown(i);
    const bool is_buffer = buffer != spec_.buffers.end();
    const DType dtype = is_buffer ? buffer->second.dtype : scalar->second.dtype;
    const char* const kind = is_buffer ? "buffer" : "scalar";
    if (!is_floating(dtype)) {
      refuse(i,
             fmt::format("gradients names the {} \"{}\", which is {} and has no gradient", kind,
                         name, to_string(dtype)),
             "take it out of gradients");
    }
    if (is_read_by(SnippetKind::sink, name)) {
      refuse(
          i,
          fmt::format("gradients names the {} \"{}\", which sink reads; its gradient is reserved "
                      "and not yet supported",
                      kind, name),
          "take it out of gradients: those of q, k and v go with a sink");
    }
    if (is_read_by(SnippetKind::score_mod, name)) return;
    refuse(
        i,
        is_read_by(SnippetKind::mask_mod, name)
            ? fmt::format("gradients names the {} \"{}\", which mask_mod alone reads", kind, name)
            : fmt::format("gradients names the {} \"{}\", which score_mod does not read", kind,
                          name),
        "take it out of gradients");
  }

  bool is_read_by(SnippetKind kind, const std::string& name) const {
    const std::string& text = snippet_text(spec_, kind);
    return !text.empty() && check_snippet(kind, text).mentions(name);
  }

  void refuse_unknown(std::size_t i) const {
    std::vector<std::string> names(kTensors.begin(), kTensors.end());
    for (const auto& [name, buffer] : spec_.buffers) {
      if (is_floating(buffer.dtype)) names.push_back(name);
    }
    for (const auto& [name, scalar] : spec_.scalars) {
      if (is_floating(scalar.dtype)) names.push_back(name);
    }
    refuse(i,
           fmt::format("gradients names \"{}\", which is not there; gradients are of {}",
                       printable(spec_.gradients[i]), one_of(names)),
           did_you_mean(spec_.gradients[i], names));
  }

  void check_free(const char* group, const std::string& name) const {
    if (!is_among(kTaken, name) && !name.starts_with("d_")) return;
    fail_({.path = {group, name},
           .message = fmt::format("{}: the name \"{}\" is what a call with gradients names one of "
                                  "its own tensors",
                                  group, printable(name)),
           .hint = "choose another name and use it in the snippets",
           .is_about_key = true});
  }

  void refuse(std::size_t i, std::string message, std::string hint) const {
    fail_({.path = {"gradients", fmt::format("[{}]", i)},
           .message = std::move(message),
           .hint = std::move(hint)});
  }

  const Spec& spec_;
  const std::function<void(const SpecProblem&)>& fail_;
};

}  // namespace

bool has_gradient(const Spec& spec, std::string_view name) {
  return is_among(spec.gradients, name);
}

std::vector<std::string> gradient_names(const Spec& spec) {
  std::vector<std::string> names;
  for (const auto& [name, buffer] : spec.buffers) {
    if (has_gradient(spec, name)) names.push_back(name);
  }
  for (const auto& [name, scalar] : spec.scalars) {
    if (has_gradient(spec, name)) names.push_back(name);
  }
  return names;
}

void check_gradients(const Spec& spec, const std::function<void(const SpecProblem&)>& fail) {
  GradientChecker(spec, fail).run();
}

}  // namespace tilewright
