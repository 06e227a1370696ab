#include "generator/snippet/function_declarations.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "generator/snippet/names.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

constexpr std::array<std::string_view, 14> kTypeWords = {
    "auto", "bool",  "char",   "const",    "double", "float",    "int",
    "long", "short", "signed", "unsigned", "void",   "volatile", "wchar_t"};

constexpr std::array<std::string_view, 7> kHeads = {"if",    "for",       "while",   "switch",
                                                    "catch", "constexpr", "noexcept"};

class Declarations {
 public:
  explicit Declarations(const SnippetBrackets& snippet) : snippet_(snippet) { find_aliases(); }

  void run() const {
    for (std::size_t i = 0; i < snippet_.size(); ++i) {
      if (snippet_.text(i) == "decltype") check_decltype(i);
      if (snippet_.text(i) == "(" && i > 0) check_list(i);
    }
  }

 private:
  // Names that `using T = ...` and `typedef ... T` give to types.
  void find_aliases() {
    for (std::size_t i = 0; i + 2 < snippet_.size(); ++i) {
      if (snippet_.text(i) == "using" && snippet_.text(i + 2) == "=") {
        aliases_.push_back(snippet_.text(i + 1));
      }
      if (snippet_.text(i) != "typedef") continue;
      std::size_t end = i;
      while (end < snippet_.size() && snippet_.text(end) != ";") end = snippet_.next(end);
      if (end > i + 1) aliases_.push_back(snippet_.text(end - 1));
    }
  }

  bool is_type(std::string_view word) const {
    return is_one_of(word, kTypeWords) || is_one_of(word, aliases_);
  }

  // Whether the brackets hold parameters: `(float)`, `(const int n)`; not `(float(x))`, a value.
  bool holds_parameters(std::size_t open) const {
    const std::string_view behind = snippet_.text(open + 2);
    return is_type(snippet_.text(open + 1)) && behind != "(" && behind != "{";
  }

  void check_list(std::size_t open) const {
    const std::size_t name = open - 1;
    const bool is_empty = snippet_.text(open + 1) == ")";
    if (snippet_.text(name) == ")") return check_bracketed_name(open);
    if (!is_identifier(snippet_.tokens()[name]) || is_one_of(snippet_.text(name), kHeads)) return;
    // return (int)x, sizeof(float), not (int)x
    if (is_cpp_keyword(snippet_.text(name)) && !is_type(snippet_.text(name))) return;
    const bool is_alias = name >= 2 && snippet_.text(name - 1) == "=" &&
                          is_type(snippet_.text(name)) && name >= 3 &&
                          snippet_.text(name - 3) == "using";
    const bool names_type = name > 0 && ends_type(name - 1);
    if (holds_parameters(open) || (is_empty && (names_type || is_alias))) fail(name);
  }

  // float (f)(float), and not float (*f)(float) or (f)(x)
  void check_bracketed_name(std::size_t open) const {
    const std::size_t first = snippet_.partner(open - 1);
    const bool is_one_name = open - 1 == first + 2 && is_identifier(snippet_.tokens()[first + 1]);
    const bool is_declared = first > 0 && is_type(snippet_.text(first - 1));
    const bool is_empty = snippet_.text(open + 1) == ")";
    if (!is_one_name) return;
    if (holds_parameters(open) || (is_declared && is_empty)) fail(first + 1);
  }

  // Whether token i may be the last of a type before a declared name: `float f`, `float* f`.
  bool ends_type(std::size_t i) const {
    while (i > 0 && (snippet_.text(i) == "*" || snippet_.text(i) == "&")) --i;
    if (snippet_.text(i) == ")") return snippet_.before(snippet_.partner(i)) == "decltype";
    if (snippet_.text(i) == ",") return false;
    return is_type(snippet_.text(i));
  }

  // decltype(exp) f;
  void check_decltype(std::size_t i) const {
    const bool is_function = snippet_.text(i + 1) == "(" && snippet_.text(i + 3) == ")" &&
                             is_one_of(snippet_.text(i + 2), snippet_functions());
    if (is_function) fail(i + 2);
  }

  [[noreturn]] void fail(std::size_t name) const {
    snippet_.fail(name, "a snippet must not declare a function: nothing would define it",
                  "define a lambda, const auto f = [](float x) { return x * x; }; functions that "
                  "are there need no declaration");
  }

  const SnippetBrackets& snippet_;
  std::vector<std::string_view> aliases_;
};

}  // namespace

void refuse_function_declarations(const SnippetBrackets& snippet) {
  Declarations(snippet).run();
}

}  // namespace tilewright
