#include "fuzz/rewrite.hpp"

#include <set>

#include <fmt/format.h>

namespace tilewright::verify::fuzz {
namespace {

void add_names(SnippetKind kind, std::string_view text, std::set<std::string>& names) {
  for (const SnippetToken& token : tokenize(text, kind)) names.emplace(token.text);
}

std::string_view result_type(SnippetKind kind) {
  return kind == SnippetKind::mask_mod ? "bool" : "float";
}

// A separate line for the end, as the text may end with a comment.
std::string body_of(SnippetKind kind, std::string_view text) {
  const bool is_expression = check_snippet(kind, text).is_expression;
  return is_expression ? fmt::format("return (\n{}\n);", text) : fmt::format("{}\n", text);
}

}  // namespace

std::string unused_name(const Spec& spec, std::string_view stem) {
  std::set<std::string> used;
  for (const auto& [name, buffer] : spec.buffers) used.insert(name);
  for (const auto& [name, scalar] : spec.scalars) used.insert(name);
  for (const SnippetKind kind : snippet_kinds()) add_names(kind, snippet_text(spec, kind), used);
  std::string name(stem);
  for (int i = 2; used.contains(name); ++i) name = fmt::format("{}{}", stem, i);
  return name;
}

std::string with_arguments(SnippetKind kind, std::string_view text, const Arguments& arguments) {
  const Snippet snippet = check_snippet(kind, text);
  std::string parameters, values;
  for (const auto& [name, value] : arguments) {
    if (!snippet.mentions(name)) continue;
    parameters += fmt::format("{}const int {}", parameters.empty() ? "" : ", ", name);
    values += fmt::format("{}{}", values.empty() ? "" : ", ", value);
  }
  if (parameters.empty()) return std::string(text);
  // In a separate block the text may declare what a parameter is called.
  return fmt::format("return [&]({}) -> {} {{\n{{\n{}}}\n}}({});", parameters, result_type(kind),
                     body_of(kind, text), values);
}

std::string as_lambda(SnippetKind kind, std::string_view text, std::string_view name) {
  if (text.empty()) text = kind == SnippetKind::score_mod ? "score" : "true";
  return fmt::format("const auto {} = [&]() -> {} {{\n{}}};\n", name, result_type(kind),
                     body_of(kind, text));
}

std::string around(SnippetKind kind, std::string_view text, std::string_view name,
                   std::string_view result) {
  return fmt::format("{}return {};", as_lambda(kind, text, name), result);
}

}  // namespace tilewright::verify::fuzz
