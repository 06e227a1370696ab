#include "generator/score_mod_reads.hpp"

#include <algorithm>

#include "generator/hoisted_reads.hpp"
#include "generator/snippet.hpp"

namespace tilewright {

ScoreModReads score_mod_reads(const Spec& spec) {
  if (spec.score_mod.empty() || spec.buffers.empty()) return ScoreModReads::none;
  const Snippet snippet = check_snippet(SnippetKind::score_mod, spec.score_mod);
  if (std::none_of(spec.buffers.begin(), spec.buffers.end(),
                   [&](const auto& buffer) { return snippet.mentions(buffer.first); })) {
    return ScoreModReads::none;
  }
  return reads_for_heads_only(snippet, spec) ? ScoreModReads::for_heads : ScoreModReads::more;
}

}  // namespace tilewright
