#include "generator/snippet/names.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "generator/snippet/operators.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright {
namespace {

constexpr auto kKeywords =
    std::to_array<std::string_view>({"alignas",       "alignof",     "and",
                                     "and_eq",        "asm",         "auto",
                                     "bitand",        "bitor",       "bool",
                                     "break",         "case",        "catch",
                                     "char",          "char16_t",    "char32_t",
                                     "char8_t",       "class",       "co_await",
                                     "co_return",     "co_yield",    "compl",
                                     "concept",       "const",       "const_cast",
                                     "consteval",     "constexpr",   "constinit",
                                     "continue",      "decltype",    "default",
                                     "delete",        "do",          "double",
                                     "dynamic_cast",  "else",        "enum",
                                     "explicit",      "export",      "extern",
                                     "false",         "float",       "for",
                                     "friend",        "goto",        "if",
                                     "inline",        "int",         "long",
                                     "mutable",       "namespace",   "new",
                                     "noexcept",      "not",         "not_eq",
                                     "nullptr",       "operator",    "or",
                                     "or_eq",         "private",     "protected",
                                     "public",        "register",    "reinterpret_cast",
                                     "requires",      "return",      "short",
                                     "signed",        "sizeof",      "static",
                                     "static_assert", "static_cast", "struct",
                                     "switch",        "template",    "this",
                                     "thread_local",  "throw",       "true",
                                     "try",           "typedef",     "typeid",
                                     "typename",      "union",       "unsigned",
                                     "using",         "virtual",     "void",
                                     "volatile",      "wchar_t",     "while",
                                     "xor",           "xor_eq"});

struct RefusedKeyword {
  std::string_view name;
  std::string_view reason;
};

constexpr std::string_view kNoDefinitions = "a snippet defines no types or functions but lambdas";
constexpr std::string_view kNoStorage = "a snippet keeps nothing from one element to the next";
constexpr std::string_view kNoExceptions = "kernels have no exceptions";
constexpr std::string_view kNoHeap = "kernels have no heap";
constexpr std::string_view kNoCoroutines = "a snippet is no coroutine";
constexpr std::string_view kNoPointers = "a snippet reads memory through its buffers only";
constexpr std::string_view kNoSizes =
    "a type's size differs between the interpretations of a snippet";

constexpr auto kRefusedKeywords = std::to_array<RefusedKeyword>({
    {"alignof", kNoSizes},
    {"asm", "the same text must mean the same on every target and in every interpretation"},
    {"catch", kNoExceptions},
    {"class", kNoDefinitions},
    {"co_await", kNoCoroutines},
    {"co_return", kNoCoroutines},
    {"co_yield", kNoCoroutines},
    {"concept", kNoDefinitions},
    {"const_cast", kNoPointers},
    {"delete", kNoHeap},
    {"dynamic_cast", kNoPointers},
    {"enum", kNoDefinitions},
    {"explicit", kNoDefinitions},
    {"export", kNoDefinitions},
    {"extern", kNoStorage},
    {"friend", kNoDefinitions},
    {"goto", "jumps keep a compiler from vectorising; use if, loops, break and return"},
    {"import", "a snippet stands alone"},
    {"module", "a snippet stands alone"},
    {"namespace", kNoDefinitions},
    {"new", kNoHeap},
    {"operator", kNoDefinitions},
    {"private", kNoDefinitions},
    {"protected", kNoDefinitions},
    {"public", kNoDefinitions},
    {"register", kNoStorage},
    {"reinterpret_cast", kNoPointers},
    {"requires", kNoDefinitions},
    {"sizeof", kNoSizes},
    {"static", kNoStorage},
    {"struct", kNoDefinitions},
    {"template", kNoDefinitions},
    {"this", "a snippet is no member of a class"},
    {"thread_local", kNoStorage},
    {"throw", kNoExceptions},
    {"try", kNoExceptions},
    {"typeid", kNoPointers},
    {"typename", kNoDefinitions},
    {"union", kNoDefinitions},
    {"virtual", kNoDefinitions},
});

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_identifier(std::string_view name) {
  const auto is_word = [](char c) { return is_name_start(c) || is_digit(c); };
  return !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), is_word);
}

bool is_among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string shape_text(const BufferSpec& buffer) {
  std::string text;
  for (const BufferDim& dim : buffer.shape) {
    if (!text.empty()) text += ", ";
    if (const auto* size = std::get_if<std::int64_t>(&dim)) text += std::to_string(*size);
    if (const auto* named = std::get_if<NamedDim>(&dim)) text += to_string(*named);
    if (std::holds_alternative<FreeDim>(dim)) text += "free";
  }
  return text;
}

std::string buffer_text(const std::string& name, const BufferSpec& buffer) {
  if (buffer.shape.empty()) return fmt::format("{} ({})", name, to_string(buffer.dtype));
  const bool one = buffer.shape.size() == 1;
  return fmt::format("{}{}{}{} ({})", name, one ? "[" : "(", shape_text(buffer), one ? "]" : ")",
                     to_string(buffer.dtype));
}

template <typename Map, typename Describe>
std::string list_line(std::string_view title, const Map& entries, const Describe& describe) {
  std::string text;
  for (const auto& [name, entry] : entries) {
    text += (text.empty() ? "\n" + std::string(title) + ": " : std::string(", ")) +
            describe(name, entry);
  }
  return text;
}

}  // namespace

bool is_cpp_keyword(std::string_view name) {
  return std::binary_search(kKeywords.begin(), kKeywords.end(), name);
}

std::string_view why_keyword_is_refused(std::string_view name) {
  for (const RefusedKeyword& keyword : kRefusedKeywords) {
    if (keyword.name == name) return keyword.reason;
  }
  return {};
}

bool is_reserved_name(std::string_view name) {
  const bool for_the_compiler = name.size() > 1 && name[0] == '_' && is_upper(name[1]);
  return for_the_compiler || name.starts_with("tw_") || name.starts_with("TW_") ||
         name.starts_with("tilewright") || name.find("__") != std::string_view::npos;
}

std::string name_fault(std::string_view name) {
  if (!is_identifier(name)) return "is no C identifier (letters, digits and _, no digit first)";
  if (is_cpp_keyword(name) || !why_keyword_is_refused(name).empty()) return "is a keyword of C++";
  if (is_reserved_name(name)) {
    return "is reserved (tw_*, TW_*, tilewright*, names that contain __ or start with _ and a "
           "capital)";
  }
  if (is_among(snippet_variables(), name))
    return "is what every snippet calls one of its arguments";
  if (is_among(snippet_functions(), name)) return "is a function that every snippet can call";
  if (name == "INFINITY" || name == "NAN") return "is a constant of C";
  return {};
}

bool is_sequence_tensor(std::string_view name) {
  constexpr auto kTensorNames =
      std::to_array<std::string_view>({"q", "k", "v", "k_new", "v_new", "q_begin", "kv_begin",
                                       "page_table", "page_begin", "q_offset", "kv_offset"});
  return std::find(kTensorNames.begin(), kTensorNames.end(), name) != kTensorNames.end();
}

const std::vector<std::string>& snippet_variables() {
  static const auto& kVariables = *new std::vector<std::string>{
      "b",      "h",           "h_kv",         "q_idx", "kv_idx",  "q_len",
      "kv_len", "num_q_heads", "num_kv_heads", "score", "q_token", "kv_token"};
  return kVariables;
}

bool is_token_name(std::string_view name) {
  return name == "q_token" || name == "kv_token";
}

const std::vector<std::string>& snippet_functions() {
  static const auto& kFunctions = *new std::vector<std::string>([] {
    std::vector<std::string> names;
    for (const snippet::Operation& operation : snippet::operations()) {
      for (std::string& name : function_names(operation)) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
  }());
  return kFunctions;
}

std::string names_available(const Spec& spec, SnippetKind kind) {
  std::string text = fmt::format("names available in {}:", to_string(kind));
  for (const std::string& name : snippet_variables()) {
    const bool exists = spec.is_packed() || !is_token_name(name);
    if (name == "score" || !exists || !sees(kind, name)) continue;
    text += (text.ends_with(':') ? " " : ", ") + name;
  }
  if (kind == SnippetKind::score_mod) text += ", score";
  text += list_line("buffers", spec.buffers, buffer_text);
  std::map<std::string, ScalarSpec> scalars = spec.scalars;
  std::erase_if(scalars, [](const auto& scalar) { return !is_read_by_snippets(scalar.second); });
  text += list_line("scalars", scalars, [](const std::string& name, const ScalarSpec& scalar) {
    return fmt::format("{} ({})", name, to_string(scalar.dtype));
  });
  text +=
      "\nfunctions, with and without f: tanh, exp, exp2, log, log2, sqrt, rsqrt, sin, cos, tan, "
      "erf, erfc, log1p, expm1, pow, fabs, fmin, fmax, floor, ceil; also abs, sign, min, max, "
      "clamp, select, floor_div, floor_mod, INFINITY, NAN";
  return text;
}

}  // namespace tilewright
