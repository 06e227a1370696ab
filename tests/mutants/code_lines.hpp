#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::mutants {

/// A line of a template that holds C++ code which a kernel executes.
struct CodeLine {
  std::string whole;    ///< as it stands
  std::string code;     ///< without a comment at its end
  std::string trimmed;  ///< `code` without white space around it
  std::size_t indent = 0;
  std::size_t position = 0;  ///< of its first byte in the template
  int number = 0;            ///< from 1
  /// A statement begins and ends here, as far as the lines around it tell.
  bool begins_statement = false;
  bool is_before_else = false;  ///< the next line begins with else

  bool is_quoted(std::size_t column) const;
};

/// The lines of a template, without comments (C++'s and Jinja's), Jinja's statements, directives of
/// the preprocessor, and lines that declare for the compiler alone.
std::vector<CodeLine> code_lines(std::string_view text);

}  // namespace tilewright::mutants
