#include "tests/compile_matrix/operands.hpp"

#include <cctype>
#include <set>

namespace tilewright::compile_matrix {
namespace {

constexpr std::string_view kStatement = "asm volatile(";
constexpr std::string_view kMacro = "#define ";

// After a string that begins at `at`.
std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// statement: from after its opening parenthesis on. Its parts are separated by colons: strings,
// what it writes, what it reads, what it clobbers.
std::string repeated_in(std::string_view statement) {
  std::set<std::string> written;
  std::string operand;
  int part = 0;
  int depth = 0;
  for (std::size_t at = 0; at < statement.size(); ++at) {
    const char c = statement[at];
    if (c == '"') {
      at = behind_string(statement, at) - 1;
      continue;
    }
    if (c == ')' && depth-- == 0) break;
    if (c == ')' && depth == 0 && part == 1 && !written.insert(operand).second) return operand;
    if (c == ':' && depth == 0) ++part;
    if (depth == 0) operand.clear();
    if (depth > 0 && std::isspace(static_cast<unsigned char>(c)) == 0) operand += c;
    if (c == '(') ++depth;
  }
  return {};
}

// A list of operands that asm statements share: `#define TW_S(kind) kind(s[0]), kind(s[1])`.
// macro: from after `#define ` on.
std::string repeated_in_list(std::string_view macro) {
  const std::size_t open = macro.find('('), close = macro.find(')');
  const std::size_t line_end = macro.find('\n');
  if (open > line_end || close > line_end) return {};
  const std::string kind = std::string(macro.substr(open + 1, close - open - 1)) + "(";
  std::size_t end = line_end;
  while (end != std::string_view::npos && macro[end - 1] == '\\') end = macro.find('\n', end + 1);
  const std::string_view list = macro.substr(close, end - close);
  if (list.find(kind) != list.find_first_not_of(" \\\n", 1)) return {};
  std::set<std::string_view> written;
  for (std::size_t at = list.find(kind); at != std::string_view::npos;
       at = list.find(kind, at + 1)) {
    const std::size_t begin = at + kind.size();
    const std::string_view operand = list.substr(begin, list.find(')', begin) - begin);
    if (!written.insert(operand).second) return std::string(operand);
  }
  return {};
}

}  // namespace

std::string repeated_operand(std::string_view kernel) {
  for (std::size_t at = kernel.find(kMacro); at != std::string_view::npos;
       at = kernel.find(kMacro, at + 1)) {
    const std::string operand = repeated_in_list(kernel.substr(at + kMacro.size()));
    if (!operand.empty()) return "an asm statement writes " + operand + " twice";
  }
  for (std::size_t at = kernel.find(kStatement); at != std::string_view::npos;
       at = kernel.find(kStatement, at + 1)) {
    const std::string operand = repeated_in(kernel.substr(at + kStatement.size()));
    if (!operand.empty()) return "an asm statement writes " + operand + " twice";
  }
  return {};
}

}  // namespace tilewright::compile_matrix
