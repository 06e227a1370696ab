#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/snippet/snippet.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

struct Kind {
  SnippetKind kind;
  std::string_view key;
  std::string Spec::*text;
};

constexpr std::array<Kind, 8> kKinds = {{
    {SnippetKind::score_mod, "score_mod", &Spec::score_mod},
    {SnippetKind::mask_mod, "mask_mod", &Spec::mask_mod},
    {SnippetKind::q_scale, "q_scale", &Spec::q_scale},
    {SnippetKind::k_scale, "k_scale", &Spec::k_scale},
    {SnippetKind::v_scale, "v_scale", &Spec::v_scale},
    {SnippetKind::out_scale, "out_scale", &Spec::out_scale},
    {SnippetKind::sink, "sink", &Spec::sink},
    {SnippetKind::dropout, "dropout", &Spec::dropout},
}};

constexpr const Kind& row_of(SnippetKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

constexpr std::array<std::string_view, 7> kOfQ = {"b",       "h",     "h_kv",  "q_idx",
                                                  "q_token", "q_len", "kv_len"};
constexpr std::array<std::string_view, 6> kOfKv = {"b",        "h_kv",  "kv_idx",
                                                   "kv_token", "q_len", "kv_len"};
constexpr std::array<std::string_view, 2> kOfHeads = {"h", "h_kv"};
constexpr std::array<std::string_view, 2> kHeadCounts = {"num_q_heads", "num_kv_heads"};

std::span<const std::string_view> names_of(SnippetKind kind) {
  switch (kind) {
    case SnippetKind::k_scale:
    case SnippetKind::v_scale:
      return kOfKv;
    case SnippetKind::out_scale:
    case SnippetKind::dropout:
      return kOfHeads;
    default:
      return kOfQ;
  }
}

}  // namespace

std::string_view to_string(SnippetKind kind) {
  return row_of(kind).key;
}

const std::vector<SnippetKind>& snippet_kinds() {
  static const auto& kAll = *new std::vector<SnippetKind>([] {
    std::vector<SnippetKind> kinds;
    for (const Kind& row : kKinds) kinds.push_back(row.kind);
    return kinds;
  }());
  return kAll;
}

const std::string& snippet_text(const Spec& spec, SnippetKind kind) {
  return spec.*row_of(kind).text;
}

std::string& snippet_text(Spec& spec, SnippetKind kind) {
  return spec.*row_of(kind).text;
}

bool sees(SnippetKind kind, std::string_view variable) {
  if (variable == "score") return kind == SnippetKind::score_mod;
  if (kind == SnippetKind::score_mod || kind == SnippetKind::mask_mod) return true;
  return is_one_of(variable, kHeadCounts) || is_one_of(variable, names_of(kind));
}

}  // namespace tilewright
