#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// What kind of thing went wrong. The command line turns it into an exit status: the first group is
/// the caller's to mend (2), the second is the machine's (3).
enum class ErrorCode {
  usage,            ///< a function or a command was called with arguments that make no sense
  spec,             ///< the spec is not JSON, has a wrong key or value, or contradicts itself
  snippet,          ///< score_mod or mask_mod is refused, or does not compile
  kernel_template,  ///< a template is wrong (only seen by people who work on templates)
  tensor,           ///< a tensor's rank, shape, dtype or strides do not fit the spec
  block_mask,       ///< a block mask does not fit the call, or its lists are wrong
  file,             ///< an input file is unreadable, truncated or lies about its contents

  device,          ///< no such device, or the device refuses
  compiler,        ///< no compiler, or it failed for a reason that is not the snippet's
  missing_kernel,  ///< not precompiled, and compiling is forbidden (TILEWRIGHT_JIT=off)
  memory,          ///< an allocation failed
  disk,            ///< a file could not be written
  internal,        ///< a defect of tilewright
};

/// The code's name as it is printed: "spec", "kernel_template", ...
std::string_view to_string(ErrorCode code);

/// A position in a text that the user or a template's author wrote.
struct SourceLocation {
  /// A path, or what the text is called: "score_mod", "cpu/kernels/forward.cpp.jinja".
  std::string file;
  int line = 0;         ///< from 1; 0: the whole file
  int column = 0;       ///< from 1, counted in bytes; 0: the whole line
  std::string excerpt;  ///< the text of that line, shown with a caret below the column
};

/// "my.json:3:3"; a line or column of 0 is left out.
std::string to_string(const SourceLocation& place);

/// The one exception type that tilewright throws. what() is the whole report, ready to print:
///
///     error[spec]: unknown key "head_dims"
///       --> my.json:3:3
///        |   "head_dims": 64,
///        |   ^
///       hint: did you mean "head_dim"?
///       note: allowed keys are ...
class Error : public std::exception {
 public:
  struct Details {
    ErrorCode code = ErrorCode::internal;
    std::string message;  ///< one sentence, no full stop: what is wrong, with the value
    std::optional<SourceLocation> place;  ///< where
    std::vector<std::string>
        notes;         ///< further facts: the chain of includes, names available, a log
    std::string hint;  ///< what to do next; empty where nothing useful can be said
  };

  explicit Error(Details details);
  Error(ErrorCode code, std::string message, std::string hint = {});

  const char* what() const noexcept override { return report_.c_str(); }
  ErrorCode code() const noexcept { return details_.code; }
  const std::string& message() const noexcept { return details_.message; }
  const std::optional<SourceLocation>& place() const noexcept { return details_.place; }
  const std::vector<std::string>& notes() const noexcept { return details_.notes; }
  const std::string& hint() const noexcept { return details_.hint; }

 private:
  Details details_;
  std::string report_;
};

}  // namespace tilewright
