#include "generator/render/template_variables.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "generator/render/read_ahead.hpp"
#include "generator/render/snippet_comment.hpp"
#include "generator/snippet/counted_loops.hpp"
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
  return dtype == DType::i64 ? "long long" : "int";
}

// Names that mean what the spec and its snippets say. Compilers predefine macros of such names
// (NULL, assert and 150 more in NVRTC), so the templates undefine each. A printed tree has names of
// its locals' versions too.
List own_names(const SpecFacts& facts, ScoreForm form) {
  std::set<std::string> names;
  for (const auto* analysed : {&facts.score_mod, &facts.mask_mod}) {
    if (!*analysed) continue;
    const std::vector<std::string>& own = (*analysed)->snippet.names;
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
    return (facts.score_mod && facts.score_mod->snippet.mentions(name)) ||
           (facts.mask_mod && facts.mask_mod->snippet.mentions(name));
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
  const bool is_real = is_floating(scalar.dtype);
  return {{"name", name},
          {"type", is_real ? "tw_real" : "int"},
          {"member", is_real ? "as_f32" : "as_i32"},
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

// With `ahead`, what can be read ahead of the loop over lanes is added to it.
Value snippet_value(const Spec& spec, const KernelSnippet& snippet, const Reading& reading,
                    ReadsAhead* ahead) {
  if (snippet.user == nullptr) return {};
  const auto mentioned = [&](const std::string& name) { return snippet.mentions(name); };
  const LiteralType literals = reading.literals;
  jinja::Splice body =
      reading.checked
          ? splice_snippet(snippet.user->snippet, literals, counted_loops(snippet.user->snippet))
      : snippet.printed != nullptr
          ? printed_snippet(*snippet.user, *snippet.printed, *snippet.facts, literals, ahead)
          : spliced_snippet(*snippet.user, literals, ahead);
  return Map{{"comment", List(snippet.comment.begin(), snippet.comment.end())},
             {"body", std::move(body)},
             {"buffers", used_values(spec.buffers, buffer_value, mentioned)},
             {"scalars", used_values(spec.scalars, scalar_value, mentioned)}};
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

Value reading_value(const Reading& reading) {
  List words;
  for (const Reading::Word& word : reading.words) {
    words.push_back(Map{{"word", word.word}, {"type", word.type}});
  }
  return Map{{"header", reading.header},
             {"buffer_header", reading.buffer_header},
             {"fast_math", reading.fast_math},
             {"checked", reading.checked},
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

std::string_view tensor_type(DType dtype) {
  return dtype == DType::f32 ? "float" : dtype == DType::f16 ? "Half" : "BFloat16";
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
  }
  return {};
}

Map dtype_context(const Spec& spec) {
  return {{"q_type", tensor_type(spec.dtype)},
          {"kv_type", tensor_type(spec.key_value_dtype())},
          {"out_type", tensor_type(spec.output_dtype())}};
}

Map snippet_context(const SpecFacts& facts, const Reading& reading, ReadAhead read_ahead,
                    ScoreForm form) {
  const Spec& spec = facts.spec;
  const KernelSnippet score_mod = score_mod_of(facts, form), mask_mod = mask_mod_of(facts);
  const auto mentioned = [&](const std::string& name) {
    return score_mod.mentions(name) || mask_mod.mentions(name);
  };
  ReadsAhead ahead;
  ReadsAhead* const hoisted = read_ahead != ReadAhead::no ? &ahead : nullptr;
  Map context = {{"reading", reading_value(reading)},
                 {"buffers", used_values(spec.buffers, buffer_value, mentioned)},
                 {"scalars", used_values(spec.scalars, scalar_value, mentioned)},
                 {"index_differences", false},
                 {"linear_reads", {}},
                 {"packed", spec.is_packed()},
                 {"paged", spec.is_paged()},
                 {"kv_new", spec.kv_new},
                 {"q_token", spec.is_packed() && mentioned("q_token")},
                 {"kv_token", spec.is_packed() && mentioned("kv_token")},
                 {"own_names", own_names(facts, form)},
                 {"calls_functions", calls_functions(facts)},
                 {"score_mod", snippet_value(spec, score_mod, reading, hoisted)},
                 {"mask_mod", snippet_value(spec, mask_mod, reading, hoisted)}};
  context["reads"] = read_values(spec, ahead, read_ahead);
  return context;
}

Map cpu_context(const SpecFacts& facts, const CpuTactic& tactic, const Reading& reading,
                ReadAhead read_ahead, bool masked, bool lse) {
  const Spec& spec = facts.spec;
  const RegisterBlock registers = register_block(tactic);
  Map context = snippet_context(facts, reading, read_ahead);
  context.merge(tactic_variables(tactic));
  context.merge(Map{{"head_dim", spec.head_dim},
                    {"value_dim", spec.value_head_dim()},
                    {"register_rows", registers.rows},
                    {"register_group", registers.group},
                    {"block", List{spec.block[0], spec.block[1]}},
                    {"masked", masked || (spec.is_packed() && !spec.mask_mod.empty())},
                    {"lse", lse}});
  context.merge(dtype_context(spec));
  return context;
}

}  // namespace tilewright
