#include "runtime/parallel/shard_spec.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright::parallel {
namespace {

bool mentions(const Spec& spec, std::string_view name) {
  const auto in = [&](SnippetKind kind, const std::string& text) {
    return !text.empty() && check_snippet(kind, text).mentions(name);
  };
  return in(SnippetKind::score_mod, spec.score_mod) || in(SnippetKind::mask_mod, spec.mask_mod);
}

// A call over pairs of shards knows only the lengths and places of its own rows.
void require_packed_served(const Spec& spec) {
  if (spec.key_value_layout() != Layout::packed) {
    throw Error(ErrorCode::usage, "context parallel does not take k and v in pages",
                R"(use the kv_layout "packed")");
  }
  for (const std::string_view name : {"q_len", "kv_len"}) {
    if (!mentions(spec, name)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("context parallel of packed sequences does not take snippets that read "
                            "{} yet",
                            name),
                R"(read a buffer of lengths: "lengths": {"dtype": "i32", "shape": ["batch"]})");
  }
  for (const std::string_view name : {"q_token", "kv_token"}) {
    if (!mentions(spec, name)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("context parallel of packed sequences does not take snippets that read "
                            "{} yet",
                            name),
                fmt::format("read starts[b] + {} of a buffer \"starts\" of shape [\"batch\"]",
                            name == "q_token" ? "q_idx" : "kv_idx"));
  }
}

void require_served(const Spec& spec) {
  if (spec.is_packed()) require_packed_served(spec);
  if (spec.outputs.max_scores) {
    throw Error(ErrorCode::usage, "context parallel does not join max_scores yet",
                R"(leave "max_scores" out of the spec's outputs)");
  }
  if (spec.outputs.weights) {
    throw Error(ErrorCode::usage, "context parallel does not give weights yet",
                R"(leave "weights" out of the spec's outputs)");
  }
  if (spec.has_dropout()) {
    throw Error(ErrorCode::usage, "context parallel does not take dropout yet",
                "leave dropout out of the spec");
  }
  if (spec.has_scales_or_sink()) {
    throw Error(ErrorCode::usage,
                "context parallel takes neither scales nor a sink yet: each rank's part would have "
                "the sink, and it must count once",
                "leave q_scale, k_scale, v_scale and sink out of the spec");
  }
}

bool is_free_name(const Spec& spec, const std::string& name) {
  return !spec.buffers.contains(name) && !spec.scalars.contains(name) && !mentions(spec, name);
}

// A name with as many letters as `name`, which nothing in the spec has: "kv_000".
std::string stand_in(const Spec& spec, std::string_view name) {
  const std::string prefix(name.substr(0, name.size() - 3));
  for (int i = 0; i < 1000; ++i) {
    std::string candidate = fmt::format("{}{:03}", prefix, i);
    if (is_free_name(spec, candidate)) return candidate;
  }
  throw Error(ErrorCode::usage,
              fmt::format("the spec uses each of the names {}000 to {}999", prefix, prefix));
}

std::string renamed(SnippetKind kind, std::string text, std::string_view from,
                    std::string_view to) {
  if (text.empty()) return text;
  std::vector<std::size_t> places;
  std::string_view before;
  for (const SnippetToken& token : tokenize(text, kind)) {
    if (token.kind == SnippetToken::Kind::identifier && token.text == from && before != ".") {
      places.push_back(token.offset);
    }
    before = token.text;
  }
  for (const std::size_t place : places) text.replace(place, from.size(), to);
  return text;
}

std::string replace_length(Spec& spec, std::string_view name) {
  if (!mentions(spec, name)) return {};
  std::string scalar = stand_in(spec, name);
  spec.score_mod = renamed(SnippetKind::score_mod, spec.score_mod, name, scalar);
  spec.mask_mod = renamed(SnippetKind::mask_mod, spec.mask_mod, name, scalar);
  spec.scalars[scalar] = {.dtype = DType::i32};
  return scalar;
}

bool is_length(const BufferDim& dim) {
  const auto* named = std::get_if<NamedDim>(&dim);
  return named && (*named == NamedDim::q_len || *named == NamedDim::kv_len ||
                   *named == NamedDim::total_q || *named == NamedDim::total_kv);
}

}  // namespace

ShardSpec shard_spec(const Spec& whole) {
  validate(whole);
  require_served(whole);
  ShardSpec result{.spec = whole, .q_length = {}, .kv_length = {}};
  result.q_length = replace_length(result.spec, "q_len");
  result.kv_length = replace_length(result.spec, "kv_len");
  for (auto& [name, buffer] : result.spec.buffers) {
    for (BufferDim& dim : buffer.shape) {
      if (is_length(dim)) dim = FreeDim{};
    }
  }
  result.spec.outputs.lse = true;
  return result;
}

SnippetInputs shard_inputs(const ShardSpec& spec, const Spec& whole_spec, const Shape& whole,
                           const SnippetInputs& inputs) {
  Bindings(whole_spec, inputs).check(whole_spec, whole);
  SnippetInputs result = inputs;
  if (!spec.q_length.empty()) result.scalars[spec.q_length] = static_cast<double>(whole.q_len);
  if (!spec.kv_length.empty()) result.scalars[spec.kv_length] = static_cast<double>(whole.kv_len);
  return result;
}

}  // namespace tilewright::parallel
