#include "tests/compile_matrix/operands.hpp"

#include <cctype>
#include <set>

namespace tilewright::compile_matrix {
namespace {

constexpr std::string_view kStatement = "asm volatile(";

// Behind a string that begins at `at`.
std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// statement: from behind its opening parenthesis on. Its parts are separated by colons: strings,
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

}  // namespace

std::string repeated_operand(std::string_view kernel) {
  for (std::size_t at = kernel.find(kStatement); at != std::string_view::npos;
       at = kernel.find(kStatement, at + 1)) {
    const std::string operand = repeated_in(kernel.substr(at + kStatement.size()));
    if (!operand.empty()) return "an asm statement writes " + operand + " twice";
  }
  return {};
}

}  // namespace tilewright::compile_matrix
