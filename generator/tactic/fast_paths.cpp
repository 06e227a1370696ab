#include "generator/tactic/fast_paths.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"
#include "generator/snippet/gradient_terms.hpp"
#include "generator/tactic/backward_tactic.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/decode_tactic.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"
#include "generator/tactic/resident_tactic.hpp"
#include "generator/tactic/tactic.hpp"

namespace tilewright {
namespace {

using snippet::BufferRead;
using snippet::SourceRange;

FastPath::SourceLocation place_of(const AnalysedSnippet& analysed, const SourceRange& range) {
  const SnippetKind kind = analysed.snippet.kind;
  const SourceLocation place = place_at(to_string(kind), analysed.snippet.text, range.begin);
  return {kind, place.line, place.column};
}

// The first word of a type that intervals have not.
std::optional<SnippetToken> type_without_intervals(const AnalysedSnippet& analysed) {
  for (const SnippetToken& token : tokenize(analysed.snippet.text, analysed.snippet.kind)) {
    if (token.text == "long" || token.text == "unsigned") return token;
  }
  return {};
}

bool reads_buffers(const Snippet& snippet, const Spec& spec) {
  return std::any_of(spec.buffers.begin(), spec.buffers.end(),
                     [&](const auto& buffer) { return snippet.mentions(buffer.first); });
}

class Explainer {
 public:
  Explainer(const SpecFacts& facts, const Target& target)
      : facts_(facts),
        target_(target),
        is_gpu_(!target.is_cpu()),
        is_hopper_(choose_tactic(facts, target).hopper() != nullptr) {}

  std::vector<FastPath> run() {
    of_score("score_slope", facts_.has_slope(),
             "the result is not score + slope * (kv_idx - q_idx), with a slope that names neither "
             "index");
    of_score("score_factors", facts_.reduction.has_factors(),
             "no number or f32 scalar multiplies every score, or a function that is the whole "
             "result");
    of_score("fixed_maximum", facts_.fixed_max().has_value(), why_no_fixed_max());
    reads("reads_by_head", "names neither q_idx nor kv_idx",
          [](const BufferRead& read) { return !read.names_q_idx && !read.names_kv_idx; });
    reads("reads_by_row", "names q_idx and not kv_idx",
          [](const BufferRead& read) { return read.names_q_idx; });
    reads("reads_by_column", "names kv_idx and not q_idx",
          [](const BufferRead& read) { return read.names_kv_idx; });
    const std::vector<BufferRead> linear = facts_.linear_reads();
    of_score("own_elements",
             std::any_of(linear.begin(), linear.end(),
                         [](const BufferRead& read) { return read.has_own_element; }),
             "no read has q_idx and kv_idx in indices of their own, or another read is not at sums "
             "of indices");
    of_difference();
    of_mask();
    for (const SnippetKind kind :
         {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale}) {
      of_scale(kind);
    }
    add("tensor_maps", is_hopper_, of_hopper_alone(why_not_tensor_maps()));
    const bool decodes = facts_.spec.is_packed() && has_decode_kernel(facts_.spec);
    add("decode", is_gpu_ && decodes, why_not_decode());
    add("split", splits(), why_not_split());
    add("resident", is_resident(), why_no_resident_kernel());
    if (!facts_.spec.gradients.empty()) {
      of_gradients();
    }
    return std::move(paths_);
  }

 private:
  static std::string of_hopper_alone(const std::string& why_not) {
    return why_not.empty() ? why_not
                           : "only Hopper's kernel has it, and cannot serve this: " + why_not;
  }

  // Of the kernel that explain names, which choose_tactic takes without a variant.
  std::string why_not_tensor_maps() const {
    const Spec& spec = facts_.spec;
    const std::string why_not =
        why_not_hopper(facts_, target_, {.masked = !spec.mask_mod.empty(), .aligned = true});
    if (!why_not.empty() || is_hopper_) return why_not;
    return fmt::format("the spec's tactic is \"{}\"", spec.tactic ? spec.tactic->name : kPortable);
  }

  void of_gradients() {
    const char* const name = "gradients_in_one_sweep";
    if (const auto unknown = unknown_derivative(facts_)) {
      const SourceRange range = {unknown->begin, unknown->begin};
      return add(name, false, unknown->message, place_of(*facts_.score_mod, range));
    }
    KernelVariant kernel = {.role = KernelRole::backward,
                            .masked = !facts_.spec.is_packed() && !facts_.spec.mask_mod.empty(),
                            .aligned = true};
    const std::string why_not = why_not_hopper_backward(facts_, target_, kernel);
    if (!is_gpu_) {
      add(name, false, "only kernels for GPUs have it");
    } else if (why_not.empty() || sweeps_backward_once(facts_.spec, kernel)) {
      add(name, true, {});
    } else {
      add(name, false,
          fmt::format("Hopper's kernel cannot serve this: {}; and in one sweep the portable kernel "
                      "cannot: {}",
                      why_not, why_not_one_sweep(facts_.spec, kernel)));
    }
    kernel.deterministic = true;
    const std::string why_not_by_turns =
        of_hopper_alone(why_not_hopper_backward(facts_, target_, kernel));
    add("deterministic_gradients", why_not_by_turns.empty(), why_not_by_turns);
  }

  void add(std::string name, bool used, std::string why_not,
           std::optional<FastPath::SourceLocation> place = {}) {
    paths_.push_back({.name = std::move(name), .used = used});
    if (used) return;
    paths_.back().why_not = std::move(why_not);
    paths_.back().place = place;
  }

  // Says why nothing is known of an opaque snippet; false for any other.
  bool is_opaque(const std::string& name, const std::optional<AnalysedSnippet>& analysed) {
    if (!analysed || !analysed->facts.is_opaque) return false;
    const snippet::Statement& opaque = *snippet::opaque(analysed->tree);
    add(name, false,
        fmt::format("nothing is known of {}: {}", to_string(analysed->snippet.kind), opaque.name),
        place_of(*analysed, opaque.value.range));
    return true;
  }

  void of_score(const std::string& name, bool found, const std::string& why_not) {
    if (!facts_.score_mod) return add(name, false, "the spec has no score_mod");
    if (is_opaque(name, facts_.score_mod)) return;
    if (!is_hopper_) return add(name, false, "only Hopper's kernel has it");
    if (!facts_.spec.may_reshape_score_mod()) {
      return add(name, false, "precise_math keeps score_mod as it is written");
    }
    const std::vector<snippet::Statement>& statements = facts_.score_mod->tree.statements;
    add(name, found, why_not, place_of(*facts_.score_mod, statements.back().value.range));
  }

  void of_difference() {
    const char* const name = "values_by_difference";
    if (!facts_.score_mod) return add(name, false, "the spec has no score_mod");
    if (is_opaque(name, facts_.score_mod)) return;
    const std::string why_not = why_no_difference();
    const std::vector<snippet::Statement>& statements = facts_.score_mod->tree.statements;
    add(name, why_not.empty(), why_not, place_of(*facts_.score_mod, statements.back().value.range));
  }

  std::string why_no_difference() const {
    if (!is_hopper_) return "only Hopper's kernels have it";
    if (!facts_.difference) {
      return "no read and no costly function names q_idx and kv_idx in their difference alone, or "
             "loops, trusted buffers and divisions of integers need bounded indices";
    }
    const Tactic tactic = choose_tactic(facts_, target_);
    const bool fits =
        difference_bytes(facts_, target_, forward_kernel_of(), *tactic.hopper()).has_value();
    return fits ? "" : "its tiles leave no shared memory or registers for them";
  }

  std::string why_no_fixed_max() const {
    if (!facts_.reduction.is_bounded) {
      return "the result is not tanh, sin or cos, with or without a factor";
    }
    if (facts_.spec.dtype != DType::bf16) return "weights relative to it need bf16's exponents";
    if (facts_.spec.outputs.max_scores) return "outputs name max_scores, which are the maxima";
    return "the factor of the result must be known, by a scalar's default, and at most 55";
  }

  // The kernel for any call of the spec.
  bool splits() const {
    return is_hopper_ && facts_.spec.is_packed() &&
           has_split_kernel(facts_, target_, forward_kernel_of());
  }

  KernelVariant forward_kernel_of() const {
    const bool is_masked = !facts_.spec.is_packed() && !facts_.spec.mask_mod.empty();
    return {.masked = is_masked,
            .rows = facts_.spec.is_packed() ? KernelRows::prefill : KernelRows::all};
  }

  std::string why_not_split() const {
    if (!is_hopper_) return of_hopper_alone(why_not_tensor_maps());
    if (!has_split_kernel(facts_, target_, forward_kernel_of())) {
      return "each of its q tiles covers rows of two blocks of the mask, whose tiles it counts on "
             "the way";
    }
    return "dense calls take it where AttentionOptions::decode is set and they have a workspace";
  }

  bool is_resident() const {
    const KernelVariant kernel = {.rows = KernelRows::prefill, .resident = true};
    return is_hopper_ && has_resident_kernel(facts_, target_, kernel);
  }

  std::string why_no_resident_kernel() const {
    return is_hopper_ ? why_not_resident(facts_) : of_hopper_alone(why_not_tensor_maps());
  }

  std::string why_not_decode() const {
    if (!is_gpu_) return "only GPUs have a kernel for sequences with few rows of q";
    if (facts_.spec.is_paged_x()) return "it does not load pages of kv_layout \"paged_x\"";
    if (facts_.spec.has_dropout()) return "the decode kernel has no dropout";
    if (facts_.spec.pads_rows()) {
      return "head_dim and v_head_dim must be multiples of 8 from 16 on";
    }
    if (!uses_tensor_cores(facts_.spec)) {
      return "its products are of f16 or bf16, with k and v of q's dtype or of one byte";
    }
    if (!facts_.spec.is_packed()) {
      return "dense calls, those with few rows of q, take it where AttentionOptions::decode is set";
    }
    return "kv_new: new rows and pages of two dtypes do not share its ring";
  }

  template <typename Wanted>
  void reads(const std::string& name, std::string_view which, const Wanted& wanted) {
    std::optional<FastPath::SourceLocation> place;
    bool has_reads = false;
    for (const auto* analysed : {&facts_.score_mod, &facts_.mask_mod}) {
      if (!*analysed) continue;
      if ((*analysed)->facts.is_opaque) {
        is_opaque(name, *analysed);
        return;
      }
      for (const BufferRead& read : (*analysed)->facts.reads) {
        if (read.is_hoistable && wanted(read)) return add(name, true, "");
        if (!place) place = place_of(**analysed, read.range);
        has_reads = true;
      }
    }
    if (!has_reads) return add(name, false, why_no_reads());
    add(name, false,
        fmt::format("no read of a buffer that is not trusted, at plain indices, {}", which), place);
  }

  // The path is of reads in score_mod and mask_mod.
  std::string why_no_reads() const {
    std::string readers;
    for (const SnippetKind kind : snippet_kinds()) {
      if (!facts_.of(kind) || !reads_buffers(facts_.of(kind)->snippet, facts_.spec)) continue;
      readers += (readers.empty() ? "" : " and ") + std::string(to_string(kind));
    }
    if (readers.empty()) return "the snippets read no buffers";
    return "score_mod and mask_mod read no buffers, and the path is not for " + readers;
  }

  void of_mask() {
    if (!facts_.mask_mod) return add("proved_mask", false, "the spec has no mask_mod");
    if (is_opaque("proved_mask", facts_.mask_mod)) return;
    if (const auto type = type_without_intervals(*facts_.mask_mod)) {
      return add("proved_mask", false,
                 fmt::format("intervals have int, float and bool, and no type {}", type->text),
                 FastPath::SourceLocation{SnippetKind::mask_mod, type->line, type->column});
    }
    add("proved_mask", facts_.may_prove_mask(),
        "the right operand of && or || may change a variable");
  }

  // Of scales that the spec has.
  void of_scale(SnippetKind kind) {
    const std::optional<AnalysedSnippet>& analysed = facts_.of(kind);
    if (!analysed) return;
    const bool is_of_q = kind == SnippetKind::q_scale;
    const bool names_row = analysed->snippet.mentions(is_of_q ? "q_idx" : "kv_idx") ||
                           analysed->snippet.mentions(is_of_q ? "q_token" : "kv_token");
    add(fmt::format("folded_{}", to_string(kind)), facts_.granularity(kind) != Granularity::row,
        names_row ? fmt::format("it is one for each row of {}, so it multiplies each {}",
                                is_of_q                        ? "q"
                                : kind == SnippetKind::k_scale ? "k"
                                                               : "v",
                                kind == SnippetKind::v_scale ? "weight" : "score")
                  : "kv_new: new rows have no scale, so those of pages multiply column by column",
        place_of(*analysed, {0, 0}));
  }

  const SpecFacts& facts_;
  const Target& target_;
  bool is_gpu_;
  bool is_hopper_;
  std::vector<FastPath> paths_ = {};
};

}  // namespace

std::vector<FastPath> fast_paths(const SpecFacts& facts, const Target& target) {
  return Explainer(facts, target).run();
}

}  // namespace tilewright
