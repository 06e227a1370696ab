#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../../base/error.hpp"
#include "../render/kernel_source.hpp"

namespace tilewright {

/// One message of a compiler about a rendered source.
struct CompilerMessage {
  bool is_error = false;  ///< false: a warning, a note, or where a template was instantiated
  int line = 0;           ///< in the rendered source, from 1
  int column = 0;         ///< from 1; 0 where the compiler does not say
  std::string text;
};

/// Reads messages of g++ and clang++: `kernel.cpp:12:5: error: text`. Lines without a place, and
/// places in other files, are left out.
/// @param source_name what the rendered source is called in the log
std::vector<CompilerMessage> parse_host_messages(std::string_view log,
                                                 std::string_view source_name = "kernel.cpp");

/// Reads messages of NVRTC: `kernel.cu(12): error: text`, then the line and a caret. NVRTC shows
/// lines without their indentation, so the column is found with the help of the source; 0 where the
/// two do not fit. Where an error was met during an instantiation, the lines that caused it come
/// before it, as "required from here".
std::vector<CompilerMessage> parse_nvrtc_messages(std::string_view log, std::string_view source,
                                                  std::string_view source_name = "kernel.cu");

/// Whether a note of compile_error's holds the compiler's log, which adds nothing to an error that
/// names a place in a snippet.
bool is_compiler_log(std::string_view note);

/// The error to throw for a failed compile: the first error that lies in a snippet (or in what a
/// snippet called, or just after it), at the snippet's own line and column with its text, a caret
/// and the names that are available; else the first error in a template, with code kernel_template;
/// else the whole log with code compiler. A function that a snippet declares and nothing defines is
/// an error of that snippet. Warnings of our own templates are left out of the log.
Error compile_error(const Spec& spec, const KernelSource& source,
                    const std::vector<CompilerMessage>& messages, std::string_view log);

}  // namespace tilewright
