#include "generator/render/template_variables.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "generator/render/read_ahead.hpp"
#include "generator/render/snippet_comment.hpp"
#include "generator/snippet/append_scales.hpp"
#include "generator/snippet/counted_loops.hpp"
#include "generator/snippet/located_reads.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/words.hpp"
#include "generator/tactic/tactic_fields.hpp"

namespace tilewright {
namespace {

using jinja::List;
using jinja::Map;
using jinja::Value;

// What a snippet gets of it.
std::string_view value_type(DType dtype) {
  if (is_floating(dtype)) return "tw_real";
  return is_wide_integer(dtype) ? "long long" : "int";
}

// Names that mean what the spec and its snippets say. Compilers predefine macros of such names
// (NULL, assert and 150 more in NVRTC), so the templates undefine each. A printed tree has names of
// its locals' versions too.
List own_names(const SpecFacts& facts, ScoreForm form) {
  std::set<std::string> names;
  for (const SnippetKind kind : snippet_kinds()) {
    if (!facts.of(kind)) continue;
    const std::vector<std::string>& own = facts.of(kind)->snippet.names;
    names.insert(own.begin(), own.end());
  }
  if (const snippet::SnippetTree* const printed = facts.printed(form)) {
    snippet::for_each_statement(printed->statements, [&](const snippet::Statement& statement) {
      if (!statement.name.empty()) names.insert(statement.name);
    });
  }
  const auto is_ours = [](const std::string& name) {
    return is_one_of(name, snippet_variables()) || is_one_of(name, snippet_functions()) ||
           name == "INFINITY" || name == "NAN" || name == "defined";  // #undef refuses the last
  };
  List values;
  for (const std::string& name : names) {
    if (!is_ours(name)) values.emplace_back(name);
  }
  return values;
}

// Whether a snippet mentions a function or constant that templates/math/ has.
bool calls_functions(const SpecFacts& facts) {
  const auto mentions = [&](const std::string& name) {
    return std::any_of(snippet_kinds().begin(), snippet_kinds().end(), [&](SnippetKind kind) {
      return facts.of(kind) && facts.of(kind)->snippet.mentions(name);
    });
  };
  return std::any_of(snippet_functions().begin(), snippet_functions().end(), mentions) ||
         mentions("INFINITY") || mentions("NAN");
}

Map buffer_value(const std::string& name, const BufferSpec& buffer, std::int64_t index) {
  return {{"name", name},
          {"element", element_type(buffer.dtype)},
          {"value", value_type(buffer.dtype)},
          {"rank", static_cast<std::int64_t>(buffer.shape.size())},
          {"trusted", buffer.bounds == Bounds::trusted},
          {"index", index}};
}

Map scalar_value(const std::string& name, const ScalarSpec& scalar, std::int64_t index) {
  const bool is_real = is_floating(scalar.dtype), is_wide = scalar.dtype == DType::i64;
  return {{"name", name},
          {"type", is_real   ? "tw_real"
                   : is_wide ? "long long"
                             : "int"},
          {"member", is_real ? "as_f32" : "as_i32"},
          {"wide", is_wide},
          {"index", index}};
}

// Those for which `used(name)`, each with its place in the order of names: the order of the
// arguments.
template <typename Specs, typename ToValue, typename Used>
List used_values(const Specs& specs, ToValue to_value, Used used) {
  List values;
  std::int64_t index = 0;
  for (const auto& [name, spec] : specs) {
    if (used(name)) values.push_back(to_value(name, spec, index));
    ++index;
  }
  return values;
}

// A snippet as one kernel has it: the user's text, or a tree that was made from it.
struct KernelSnippet {
  const AnalysedSnippet* user = nullptr;          // null: there is none
  const snippet::SnippetTree* printed = nullptr;  // null: the user's text
  const snippet::SnippetFacts* facts = nullptr;
  std::vector<std::string> comment = {};

  bool mentions(const std::string& name) const {
    if (user == nullptr) return false;
    if (printed == nullptr) return user->snippet.mentions(name);
    return snippet::has_node(printed->statements,
                             [&](const snippet::Expression& node) { return node.name == name; });
  }
};

KernelSnippet score_mod_of(const SpecFacts& facts, ScoreForm form) {
  if (!facts.score_mod) return {};
  return {&*facts.score_mod, facts.printed(form), &facts.score_facts(form),
          snippet_comment(facts, SnippetKind::score_mod, form)};
}

KernelSnippet mask_mod_of(const SpecFacts& facts) {
  if (!facts.mask_mod) return {};
  return {&*facts.mask_mod, nullptr, &facts.mask_mod->facts,
          snippet_comment(facts, SnippetKind::mask_mod, ScoreForm::as_written)};
}

// A scale, the sink or dropout.
KernelSnippet scale_of(const SpecFacts& facts, SnippetKind kind) {
  if (!facts.of(kind)) return {};
  return {&*facts.of(kind), nullptr, &facts.of(kind)->facts,
          snippet_comment(facts, kind, ScoreForm::as_written)};
}

std::vector<Replacement> checked_edits(const Snippet& snippet, const Spec& spec) {
  std::vector<Replacement> edits = counted_loops(snippet);
  std::vector<Replacement> reads = located_reads(snippet, spec);
  std::move(reads.begin(), reads.end(), std::back_inserter(edits));
  return edits;
}

// With `ahead`, what can be read ahead of the loop over lanes is added to it.
Value snippet_value(const Spec& spec, const KernelSnippet& snippet,
                    const Interpretation& interpretation, ReadsAhead* ahead) {
  if (snippet.user == nullptr) return {};
  const auto mentioned = [&](const std::string& name) { return snippet.mentions(name); };
  const LiteralType literals = interpretation.literals;
  jinja::Splice body =
      interpretation.checked ? splice_snippet(snippet.user->snippet, literals,
                                              checked_edits(snippet.user->snippet, spec))
      : snippet.printed != nullptr
          ? printed_snippet(*snippet.user, *snippet.printed, *snippet.facts, literals, ahead)
          : spliced_snippet(*snippet.user, literals, ahead);
  return Map{{"comment", List(snippet.comment.begin(), snippet.comment.end())},
             {"body", std::move(body)},
             {"buffers", used_values(spec.buffers, buffer_value, mentioned)},
             {"scalars", used_values(spec.scalars, scalar_value, mentioned)}};
}

// What a kernel is told of the scales, the sink and dropout; none where the spec has none of them.
Value scales_value(const SpecFacts& facts, const Interpretation& interpretation) {
  if (!facts.spec.has_other_snippets()) return {};
  List snippets, absent;
  for (const SnippetKind kind : {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale,
                                 SnippetKind::out_scale, SnippetKind::sink, SnippetKind::dropout}) {
    const bool is_of_kv = kind == SnippetKind::k_scale || kind == SnippetKind::v_scale;
    Map named = {{"key", to_string(kind)}, {"index", is_of_kv ? "kv_idx" : "q_idx"}};
    if (facts.of(kind)) {
      const Value snippet =
          snippet_value(facts.spec, scale_of(facts, kind), interpretation, nullptr);
      named.insert(snippet.as_map()->begin(), snippet.as_map()->end());
      snippets.emplace_back(std::move(named));
    } else {
      named["value"] = kind == SnippetKind::sink      ? "-__builtin_inff()"
                       : kind == SnippetKind::dropout ? "0"
                                                      : "1";
      absent.emplace_back(std::move(named));
    }
  }
  const auto has_rows = [&](SnippetKind kind) {
    return facts.granularity(kind) == Granularity::row;
  };
  return Map{{"snippets", std::move(snippets)},
             {"absent", std::move(absent)},
             {"of_scores", facts.q_scale || facts.k_scale},
             {"of_values", facts.v_scale.has_value()},
             {"q_rows", has_rows(SnippetKind::q_scale)},
             {"q_heads", facts.granularity(SnippetKind::q_scale) == Granularity::head},
             {"k_columns", has_rows(SnippetKind::k_scale)},
             {"v_columns", has_rows(SnippetKind::v_scale)},
             {"of_out", facts.out_scale.has_value()},
             {"sink", facts.sink.has_value()},
             {"dropout", facts.dropout.has_value()},
             {"seed", facts.spec.has_seed_buffer() ? "seed()" : "seed"}};
}

List read_values(const Spec& spec, const ReadsAhead& ahead, ReadAhead read_ahead) {
  List values;
  for (const HoistedRead& read : ahead.reads()) {
    values.push_back(
        Map{{"name", read.name},
            {"type", value_type(spec.buffers.at(read.buffer).dtype)},
            {"buffer", read.buffer},
            {"indices", read.indices},
            {"per_row", read.names_q_idx},
            {"per_column", read.names_kv_idx},
            {"per_lane",
             read_ahead == ReadAhead::lanes_are_rows ? read.names_q_idx : read.names_kv_idx}});
  }
  return values;
}

Value interpretation_value(const Interpretation& interpretation) {
  List words;
  for (const Interpretation::Word& word : interpretation.words) {
    words.push_back(Map{{"word", word.word}, {"type", word.type}});
  }
  return Map{{"header", interpretation.header},
             {"buffer_header", interpretation.buffer_header},
             {"fast_math", interpretation.fast_math},
             {"checked", interpretation.checked},
             {"words", std::move(words)}};
}

// A matrix product keeps rows x group vectors in registers: 16 of AVX-512's 32, and of AVX2's 16 as
// many as leave room for the operands.
struct RegisterBlock {
  std::int64_t rows;
  std::int64_t group;
};

RegisterBlock register_block(const CpuTactic& tactic) {
  const std::int64_t vector_bytes = tactic.vector_bytes;
  const std::int64_t chunks = tactic.q_tile * 4 / vector_bytes;
  if (vector_bytes == 64) return {8, chunks % 2 == 0 ? 2 : 1};
  return {4, chunks % 3 == 0 ? 3 : 2};
}

// A stored i8 is a number times a scale, and no integer of a snippet.
std::string_view tensor_type(DType dtype) {
  if (dtype == DType::i8) return "Int8";
  const std::string_view name = element_type(dtype), room = "tw_kernel::";
  return name.starts_with(room) ? name.substr(room.size()) : name;
}

}  // namespace

std::string_view element_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f16:
      return "tw_kernel::Half";
    case DType::bf16:
      return "tw_kernel::BFloat16";
    case DType::i32:
      return "int";
    case DType::i64:
      return "long long";
    case DType::u8:
      return "unsigned char";
    case DType::boolean:
      return "tw_kernel::Bool";
    case DType::f8e4m3:
      return "tw_kernel::Float8E4M3";
    case DType::f8e5m2:
      return "tw_kernel::Float8E5M2";
    case DType::i8:
      return "signed char";
    case DType::f64:
      return "double";
    case DType::i16:
      return "short";
    case DType::u16:
      return "unsigned short";
    case DType::u32:
      return "unsigned";
  }
  return {};
}

Map dtype_context(const Spec& spec) {
  const bool one_byte = is_quantised(spec.dtype) || is_quantised(spec.key_value_dtype()) ||
                        is_quantised(spec.output_dtype());
  return {{"q_type", tensor_type(spec.dtype)},
          {"kv_type", tensor_type(spec.key_value_dtype())},
          {"one_byte", one_byte},
          {"paged_x", spec.is_paged_x()},
          {"kv_one_byte", is_quantised(spec.key_value_dtype())},
          {"scales_rows", false},
          {"padded", spec.pads_rows()},
          {"head_columns", spec.head_dim},
          {"value_columns", spec.value_head_dim()},
          {"out_type", tensor_type(spec.output_dtype())}};
}

Value difference_value(const SpecFacts& facts, const AnalysedDifference& difference,
                       const Interpretation& interpretation, ReadsAhead* ahead) {
  const KernelSnippet value = {&*facts.score_mod, &difference.value, &difference.value_facts};
  return snippet_value(facts.spec, value, interpretation, ahead);
}

Map snippet_context(const SpecFacts& facts, const Interpretation& interpretation,
                    ReadAhead read_ahead, ScoreForm form) {
  const Spec& spec = facts.spec;
  const KernelSnippet score_mod = score_mod_of(facts, form), mask_mod = mask_mod_of(facts);
  const auto mentioned = [&](const std::string& name) {
    return score_mod.mentions(name) || mask_mod.mentions(name) ||
           (form == ScoreForm::without_difference && facts.score_mod &&
            facts.score_mod->snippet.mentions(name)) ||
           (spec.has_dropout() && name == "seed") ||
           std::any_of(snippet_kinds().begin(), snippet_kinds().end(), [&](SnippetKind kind) {
             return kind != SnippetKind::score_mod && scale_of(facts, kind).mentions(name);
           });
  };
  ReadsAhead ahead;
  ReadsAhead* const hoisted = read_ahead != ReadAhead::no ? &ahead : nullptr;
  Map context = {{"interpretation", interpretation_value(interpretation)},
                 {"buffers", used_values(spec.buffers, buffer_value, mentioned)},
                 {"scalars", used_values(spec.scalars, scalar_value, mentioned)},
                 {"index_differences", false},
                 {"linear_reads", {}},
                 {"scalar_entries", static_cast<std::int64_t>(spec.scalar_entries())},
                 {"packed", spec.is_packed()},
                 {"paged", spec.is_paged()},
                 {"kv_new", spec.kv_new},
                 {"max_scores", spec.outputs.max_scores},
                 {"q_token", spec.is_packed() && mentioned("q_token")},
                 {"kv_token", spec.is_packed() && mentioned("kv_token")},
                 {"own_names", own_names(facts, form)},
                 {"calls_functions", calls_functions(facts)},
                 {"scales", scales_value(facts, interpretation)},
                 {"score_mod", snippet_value(spec, score_mod, interpretation, hoisted)},
                 {"mask_mod", snippet_value(spec, mask_mod, interpretation, hoisted)},
                 {"difference_value", {}}};
  if (form == ScoreForm::without_difference && facts.difference) {
    context["difference_value"] =
        difference_value(facts, *facts.difference, interpretation, hoisted);
  }
  context["reads"] = read_values(spec, ahead, read_ahead);
  return context;
}

Map cpu_context(const SpecFacts& facts, const CpuTactic& tactic,
                const Interpretation& interpretation, ReadAhead read_ahead, bool masked, bool lse) {
  const Spec& spec = facts.spec;
  const RegisterBlock registers = register_block(tactic);
  Map context = snippet_context(facts, interpretation, read_ahead);
  context.merge(tactic_variables(tactic));
  // The columns of a tile's row tell which tensor it is of (templates/cpu/padded_rows.hpp).
  const bool is_ambiguous =
      spec.tile_head_dim() == spec.tile_value_dim() && spec.head_dim != spec.value_head_dim();
  context.merge(Map{{"head_dim", spec.tile_head_dim()},
                    {"value_dim", spec.tile_value_dim() + (is_ambiguous ? 8 : 0)},
                    {"register_rows", registers.rows},
                    {"register_group", registers.group},
                    {"block", List{spec.block[0], spec.block[1]}},
                    {"masked", masked || (spec.is_packed() && !spec.mask_mod.empty())},
                    {"lse", lse}});
  context.merge(dtype_context(spec));
  if (spec.pads_rows() && spec.key_value_dtype() == f32) context["kv_type"] = "StoredFloat";
  return context;
}

bool divides(const KernelVariant& variant, const Spec& spec) {
  return variant.role == KernelRole::quantise ||
         (variant.role == KernelRole::append && append_divides(spec));
}

}  // namespace tilewright
