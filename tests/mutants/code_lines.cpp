#include "tests/mutants/code_lines.hpp"

#include <algorithm>
#include <regex>
#include <utility>

namespace tilewright::mutants {
namespace {

std::string without_comment(const std::string& line) {
  std::size_t at = line.find("//");
  while (at != std::string::npos &&
         std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(at), '"') % 2 != 0) {
    at = line.find("//", at + 1);
  }
  std::string code = line.substr(0, at);
  code.erase(code.find_last_not_of(' ') + 1);
  return code;
}

// Nothing that a kernel executes.
bool is_declaration(const std::string& trimmed) {
  static const std::regex declaration(
      R"(^(#|\{%|template\b|static_assert\b|namespace\b|using\b|struct\b|class\b|enum\b|friend\b|typedef\b|extern\b|TW_INLINE\b|TW_NOINLINE\b|TW_MEMBER\b|static \w+ \w+\(|__forceinline__|public:|private:))");
  static const std::regex compile_time(R"(^(static )?constexpr |\brequires\b)");
  return std::regex_search(trimmed, declaration) || std::regex_search(trimmed, compile_time);
}

bool is_balanced(const std::string& code) {
  const auto count = [&](char c) { return std::count(code.begin(), code.end(), c); };
  return count('(') == count(')') && count('{') == count('}') && count('[') == count(']');
}

// Whether a statement may begin after this line.
bool ends_statement(const std::string& code) {
  return code.empty() || code.back() == ';' || code.back() == '{' || code.back() == '}' ||
         code.back() == ':' || code.front() == '#' || code.starts_with("{%");
}

}  // namespace

bool CodeLine::is_quoted(std::size_t column) const {
  return std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(column), '"') % 2 != 0;
}

std::vector<CodeLine> code_lines(std::string_view text) {
  std::vector<CodeLine> lines;
  std::string previous;
  bool in_comment = false;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    CodeLine line;
    line.whole = std::string(text.substr(begin, end - begin));
    line.position = begin;
    line.number = ++number;
    begin = end + 1;
    const bool opens = line.whole.find("{#") != std::string::npos;
    if (opens) in_comment = true;
    if (in_comment) {
      if (line.whole.find("#}") != std::string::npos) in_comment = false;
      continue;
    }
    line.code = without_comment(line.whole);
    line.indent = std::min(line.code.find_first_not_of(' '), line.code.size());
    line.trimmed = line.code.substr(line.indent);
    if (line.trimmed.empty()) continue;
    if (!lines.empty() && line.trimmed.starts_with("else")) lines.back().is_before_else = true;
    line.begins_statement = line.trimmed.ends_with(';') && is_balanced(line.trimmed) &&
                            ends_statement(previous) && line.indent > 0;
    previous = line.trimmed;
    // A macro's lines are the preprocessor's.
    if (line.trimmed.ends_with('\\') || is_declaration(line.trimmed)) continue;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tilewright::mutants
