#include "generator/snippet/operand_types.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "generator/snippet/names.hpp"
#include "generator/snippet/number.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

using Range = SnippetBrackets::Range;

OperandType type_of(DType dtype) {
  return is_floating(dtype) ? OperandType::floating : OperandType::integer;
}

// Of a word of C++ that names a type.
OperandType type_named(std::string_view word) {
  constexpr std::array<std::string_view, 6> kIntegers = {"int",  "long",     "short",
                                                         "char", "unsigned", "signed"};
  if (word == "float" || word == "double") return OperandType::floating;
  if (word == "bool") return OperandType::truth;
  return is_one_of(word, kIntegers) ? OperandType::integer : OperandType::unknown;
}

// What these give has the type of what they are given.
bool has_type_of_arguments(std::string_view function) {
  constexpr std::array<std::string_view, 8> kFunctions = {"abs", "clamp", "floor_div", "floor_mod",
                                                          "max", "min",   "select",    "sign"};
  return is_one_of(function, kFunctions);
}

}  // namespace

OperandType OperandTypes::of(Range range) const {
  OperandType type = OperandType::unknown;
  bool has_unknown = false;
  for (std::size_t i = range.begin; i < range.end; i = snippet_.next(i)) {
    const std::string_view text = snippet_.text(i);
    if (is_comparison(text) || is_conditional_operator(text) || text == "!" || text == "not") {
      return OperandType::truth;
    }
    if (text == "?" || text == "=" || text == "{") return OperandType::unknown;
    OperandType found = OperandType::unknown;
    if (text == "(" && (i == range.begin || !snippet_.ends_value(i - 1))) {
      found = of(snippet_.inside(i));
    } else if (snippet_.tokens()[i].kind == SnippetToken::Kind::punctuation) {
      continue;
    } else {
      found = of_word(i);
    }
    has_unknown |= found == OperandType::unknown;
    type = std::max(type, found);
    const bool is_called =
        i + 1 < range.end && snippet_.opens(i + 1) && snippet_.text(i + 1) != "{";
    if (is_called) ++i;  // next() passes the arguments
    while (i + 1 < range.end && snippet_.text(i) == "<" && snippet_.text(snippet_.next(i)) == "(") {
      i = snippet_.next(i);
    }
  }
  return has_unknown && type != OperandType::floating ? OperandType::unknown : type;
}

OperandType OperandTypes::of_word(std::size_t i) const {
  const SnippetToken& token = snippet_.tokens()[i];
  if (token.kind == SnippetToken::Kind::number) {
    return read_number(token.text).is_floating ? OperandType::floating : OperandType::integer;
  }
  if (!is_identifier(token)) return OperandType::unknown;
  if (token.text == "static_cast") return type_named(snippet_.text(snippet_.partner(i + 1) - 1));
  if (token.text == "true" || token.text == "false") return OperandType::truth;
  return is_cpp_keyword(token.text) ? type_named(token.text) : of_name(i);
}

OperandType OperandTypes::of_name(std::size_t i) const {
  const std::string name(snippet_.text(i));
  if (snippet_.before(i) == ".") return OperandType::integer;  // x.size(0)
  if (const OperandType local = of_local(name); local != OperandType::unknown) return local;
  if (const auto buffer = spec_.buffers.find(name); buffer != spec_.buffers.end()) {
    return snippet_.text(i + 1) == "." ? OperandType::unknown : type_of(buffer->second.dtype);
  }
  if (const auto scalar = spec_.scalars.find(name); scalar != spec_.scalars.end()) {
    return type_of(scalar->second.dtype);
  }
  if (name == "score" || name == "INFINITY" || name == "NAN") return OperandType::floating;
  if (is_one_of(name, snippet_variables())) return OperandType::integer;
  if (snippet_.text(i + 1) != "(" || !is_one_of(name, snippet_functions())) {
    return OperandType::unknown;
  }
  if (!has_type_of_arguments(name)) return OperandType::floating;
  return of(snippet_.inside(i + 1));
}

// Of a variable that the snippet declares with a type's name; of `auto`: unknown.
OperandType OperandTypes::of_local(std::string_view name) const {
  OperandType type = OperandType::unknown;
  for (std::size_t i = 1; i < snippet_.size(); ++i) {
    if (snippet_.text(i) != name || !is_identifier(snippet_.tokens()[i - 1])) continue;
    const OperandType declared = type_named(snippet_.text(i - 1));
    if (declared == OperandType::unknown) continue;
    if (type != OperandType::unknown && type != declared) return OperandType::unknown;
    type = declared;
  }
  return type;
}

}  // namespace tilewright
