#include "generator/render/proved_context.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "generator/render/extrema_table.hpp"
#include "generator/render/promised_buffers.hpp"
#include "generator/render/template_variables.hpp"
#include "generator/snippet/interpretation.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/splice.hpp"
#include "generator/snippet/tree.hpp"

namespace tilewright {
namespace {

using jinja::List;
using jinja::Map;
using jinja::Value;

std::string_view number_type(bool is_wide) {
  return is_wide ? "long long" : "int";
}

std::string buffer_type(const BufferSpec& buffer, bool has_table) {
  if (is_floating(buffer.dtype)) return fmt::format("tw_RealBuffer<{}>", buffer.shape.size());
  const char* const range_read = buffer.sorted.is_promised() ? "ends"
                                 : has_table                 ? "table"
                                                             : "unknown";
  return fmt::format("tw_Buffer<{}, {}, {}, RangeRead::{}>", element_type(buffer.dtype),
                     number_type(is_wide_integer(buffer.dtype)), buffer.shape.size(), range_read);
}

List buffer_values(const Spec& spec, const Snippet& snippet,
                   const std::vector<ExtremaTable>& tables) {
  List values;
  std::size_t index = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    const auto table = std::find_if(tables.begin(), tables.end(),
                                    [&](const ExtremaTable& t) { return t.buffer == index; });
    const bool has_table = table != tables.end();
    if (snippet.mentions(name)) {
      values.push_back(
          Map{{"name", name},
              {"type", buffer_type(buffer, has_table)},
              {"rank", static_cast<std::int64_t>(buffer.shape.size())},
              {"index", static_cast<std::int64_t>(index)},
              {"table",
               has_table ? Value(static_cast<std::int64_t>(table - tables.begin())) : Value()}});
    }
    ++index;
  }
  return values;
}

List scalar_values(const Spec& spec, const Snippet& snippet) {
  List values;
  std::int64_t index = 0;
  for (const auto& [name, scalar] : spec.scalars) {
    const bool is_real = is_floating(scalar.dtype);
    if (snippet.mentions(name)) {
      values.push_back(Map{{"name", name},
                           {"type", is_real ? "tw_Real" : "tw_Int"},
                           {"member", is_real ? "as_f32" : "as_i32"},
                           {"index", index}});
    }
    ++index;
  }
  return values;
}

Map typed_buffer(const Spec& spec, std::size_t index) {
  const BufferSpec& buffer =
      std::next(spec.buffers.begin(), static_cast<std::ptrdiff_t>(index))->second;
  return {{"buffer", static_cast<std::int64_t>(index)},
          {"element", element_type(buffer.dtype)},
          {"number", number_type(is_wide_integer(buffer.dtype))},
          {"rank", static_cast<std::int64_t>(buffer.shape.size())}};
}

// C++ converts the integer of `c ? x : 1.0f` to a float. Intervals convert either way, so the text
// says which.
std::vector<Replacement> mixed_conditionals(const snippet::SnippetTree& tree) {
  using snippet::Type;
  std::vector<Replacement> edits;
  snippet::for_each_node(tree.statements, [&](const snippet::Expression& node) {
    if (node.op != snippet::Op::conditional) return;
    for (const std::size_t i : {1, 2}) {
      const snippet::Expression &one = node.operands[i], &other = node.operands[3 - i];
      if (one.type == Type::floating || other.type != Type::floating) continue;
      edits.push_back({one.range.begin, one.range.begin, "tw_Real("});
      edits.push_back({one.range.end, one.range.end, ")"});
    }
  });
  return edits;
}

}  // namespace

Value proved_context(const SpecFacts& facts, std::string_view undecided_header,
                     const std::vector<ExtremaTable>& tables) {
  const Spec& spec = facts.spec;
  const Interpretation& types = interpretation("interval");
  const Snippet& snippet = facts.required_mask_mod();
  List words;
  for (const Interpretation::Word& word : types.words) {
    words.push_back(Map{{"word", word.word}, {"type", word.type}});
  }
  return Map{
      {"header", types.header},
      {"buffer_header", types.buffer_header},
      {"undecided_header", undecided_header},
      {"words", std::move(words)},
      {"packed", spec.is_packed()},
      {"q_token", spec.is_packed() && snippet.mentions("q_token")},
      {"kv_token", spec.is_packed() && snippet.mentions("kv_token")},
      {"body", splice_snippet(snippet, types.literals, mixed_conditionals(facts.mask_mod->tree))},
      {"buffers", buffer_values(spec, snippet, tables)},
      {"scalars", scalar_values(spec, snippet)}};
}

List tables_context(const SpecFacts& facts) {
  List values;
  for (const ExtremaTable& table : extrema_tables(facts)) {
    values.push_back(typed_buffer(facts.spec, table.buffer));
  }
  return values;
}

List promised_context(const SpecFacts& facts) {
  List values;
  for (const PromisedBuffer& promised : promised_buffers(facts)) {
    values.push_back(typed_buffer(facts.spec, promised.buffer));
  }
  return values;
}

}  // namespace tilewright
