#include "fuzz/random_scales.hpp"

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "fuzz/rewrite.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright::verify::fuzz {
namespace {

// A text whose {0} is a buffer of these dimensions; none where it reads nothing.
struct Form {
  std::string_view text;
  std::array<BufferDim, 2> dims = {};
  int rank = 0;
};

constexpr std::array<double, 2> kRangeOfScales = {0.25, 2};
constexpr std::array<double, 2> kRangeOfSinks = {-3, 6};

Form form_of(SnippetKind kind, std::int64_t which) {
  const bool is_of_q = kind == SnippetKind::q_scale || kind == SnippetKind::sink;
  switch (which) {
    case 0:
      return {.text = kind == SnippetKind::k_scale ? "-0.5" : "1.25"};
    case 1:
      return is_of_q ? Form{"{0}[h]", {NamedDim::num_q_heads}, 1}
                     : Form{"{0}[h_kv]", {NamedDim::num_kv_heads}, 1};
    case 2:
      return is_of_q ? Form{"{0}(b, h)", {NamedDim::batch, NamedDim::num_q_heads}, 2}
                     : Form{"{0}(b, h_kv)", {NamedDim::batch, NamedDim::num_kv_heads}, 2};
    case 3:
      return is_of_q ? Form{"{0}[q_idx]", {FreeDim{}}, 1} : Form{"{0}[kv_idx]", {FreeDim{}}, 1};
    default:
      return is_of_q ? Form{"{0}(h, q_idx) + 0.5", {NamedDim::num_q_heads, FreeDim{}}, 2}
                     : Form{"{0}(h_kv, kv_idx) * 0.5", {NamedDim::num_kv_heads, FreeDim{}}, 2};
  }
}

void add(SnippetKind kind, Spec& spec, Random& random) {
  const Form form = form_of(kind, random.integer(0, 4));
  if (form.rank == 0) {
    snippet_text(spec, kind) = form.text;
    return;
  }
  const std::string name =
      unused_name(spec, kind == SnippetKind::sink ? "sinks" : fmt::format("{}s", to_string(kind)));
  BufferSpec& buffer = spec.buffers[name];
  buffer.dtype = random.integer(0, 3) == 0 ? DType::f16 : DType::f32;
  buffer.shape.assign(form.dims.begin(), form.dims.begin() + form.rank);
  buffer.range = kind == SnippetKind::sink ? kRangeOfSinks : kRangeOfScales;
  snippet_text(spec, kind) = fmt::format(fmt::runtime(form.text), name);
}

}  // namespace

void add_random_scales(Spec& spec, Random& random) {
  for (const SnippetKind kind :
       {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale, SnippetKind::sink}) {
    if (random.integer(0, 2) == 0) add(kind, spec, random);
  }
}

void add_random_sink(Spec& spec, Random& random) {
  if (random.integer(0, 2) == 0) add(SnippetKind::sink, spec, random);
}

}  // namespace tilewright::verify::fuzz
