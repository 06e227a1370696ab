#include "generator/kernel_context.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "generator/hoisted_reads.hpp"
#include "generator/snippet.hpp"
#include "generator/snippet_words.hpp"
#include "generator/tactic_fields.hpp"

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

struct Snippets {
  std::optional<Snippet> score_mod;
  std::optional<Snippet> mask_mod;

  explicit Snippets(const Spec& spec) {
    if (!spec.score_mod.empty()) score_mod = check_snippet(SnippetKind::score_mod, spec.score_mod);
    if (!spec.mask_mod.empty()) mask_mod = check_snippet(SnippetKind::mask_mod, spec.mask_mod);
  }

  bool mention(const std::string& name) const {
    return (score_mod && score_mod->mentions(name)) || (mask_mod && mask_mod->mentions(name));
  }
};

// Names that mean what the spec and its snippets say. Compilers predefine macros of such names
// (NULL, assert and 150 more in NVRTC), so the templates undefine each.
List own_names(const Snippets& snippets) {
  std::set<std::string> names;
  for (const auto* snippet : {&snippets.score_mod, &snippets.mask_mod}) {
    if (*snippet) names.insert((*snippet)->names.begin(), (*snippet)->names.end());
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
bool calls_functions(const Snippets& snippets) {
  const auto mentions = [&](const std::string& name) { return snippets.mention(name); };
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

// With `reads`, what can be read ahead of the loop over lanes is added to them.
Value snippet_value(const Spec& spec, const std::optional<Snippet>& snippet, LiteralType literals,
                    std::vector<HoistedRead>* reads) {
  if (!snippet) return {};
  jinja::Splice body = splice_snippet(*snippet, literals);
  if (reads != nullptr) body = HoistedReads(*snippet, spec, *reads).replace_in(body);
  const auto mentioned = [&](const std::string& name) { return snippet->mentions(name); };
  return Map{{"body", std::move(body)},
             {"buffers", used_values(spec.buffers, buffer_value, mentioned)},
             {"scalars", used_values(spec.scalars, scalar_value, mentioned)}};
}

List read_values(const Spec& spec, const std::vector<HoistedRead>& reads, ReadAhead read_ahead) {
  List values;
  for (const HoistedRead& read : reads) {
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

std::string_view tensor_type(DType dtype) {
  return dtype == DType::f32 ? "float" : dtype == DType::f16 ? "Half" : "BFloat16";
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

Map snippet_context(const Spec& spec, const Reading& reading, ReadAhead read_ahead) {
  const Snippets snippets(spec);
  const auto mentioned = [&](const std::string& name) { return snippets.mention(name); };
  std::vector<HoistedRead> reads;
  std::vector<HoistedRead>* const hoisted = read_ahead != ReadAhead::no ? &reads : nullptr;
  Map context = {{"reading", reading_value(reading)},
                 {"buffers", used_values(spec.buffers, buffer_value, mentioned)},
                 {"scalars", used_values(spec.scalars, scalar_value, mentioned)},
                 {"index_differences", false},
                 {"linear_reads", {}},
                 {"own_names", own_names(snippets)},
                 {"calls_functions", calls_functions(snippets)},
                 {"score_mod", snippet_value(spec, snippets.score_mod, reading.literals, hoisted)},
                 {"mask_mod", snippet_value(spec, snippets.mask_mod, reading.literals, hoisted)}};
  context["reads"] = read_values(spec, reads, read_ahead);
  return context;
}

Map cpu_context(const Spec& spec, const CpuTactic& tactic, const Reading& reading,
                ReadAhead read_ahead, bool masked, bool lse) {
  const RegisterBlock registers = register_block(tactic);
  Map context = snippet_context(spec, reading, read_ahead);
  context.merge(tactic_variables(tactic));
  context.merge(Map{{"head_dim", spec.head_dim},
                    {"value_dim", spec.value_head_dim()},
                    {"register_rows", registers.rows},
                    {"register_group", registers.group},
                    {"block", List{spec.block[0], spec.block[1]}},
                    {"masked", masked},
                    {"lse", lse},
                    {"q_type", tensor_type(spec.dtype)},
                    {"kv_type", tensor_type(spec.key_value_dtype())},
                    {"out_type", tensor_type(spec.output_dtype())}});
  return context;
}

}  // namespace tilewright
