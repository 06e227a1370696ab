#include "generator/messages/compiler_messages.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "generator/messages/compiler_wording.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/messages/text_scan.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kMaxLogLines = 20;
constexpr std::size_t kMaxLineBytes = 200;
constexpr std::string_view kLogTitle = "the compiler's log, with lines of the rendered kernel:";

// What compilers say of rendered headers, with the two lines that show where.
constexpr std::string_view kOwnWarning = "#pragma once in main file";

// `kernel.cpp:12:5: error: text`, `kernel.cpp:12:5:   required from here`.
std::optional<CompilerMessage> parse_line(std::string_view line, std::string_view source_name) {
  take_prefix(line, "./");
  if (!take_prefix(line, source_name) || !take_prefix(line, ":")) return std::nullopt;
  CompilerMessage message;
  const std::optional<int> number = take_number(line);
  if (!number || !take_prefix(line, ":")) return std::nullopt;
  message.line = *number;
  if (const std::optional<int> column = take_number(line)) {
    message.column = *column;
    take_prefix(line, ":");
  }
  while (take_prefix(line, " ")) {
  }
  message.is_error = take_prefix(line, "error: ") || take_prefix(line, "fatal error: ");
  message.text = std::string(line);
  return message;
}

struct Blame {
  Origin origin;
  const CompilerMessage* error;
  bool is_behind = false;  // the error lies just after the snippet
};

// The function that a linker or ptxas did not find, as it writes it; empty: all were found.
std::string undefined_symbol(std::string_view log) {
  constexpr std::array<std::string_view, 3> kPhrases = {
      "undefined reference to ", "undefined symbol: ", "Unresolved extern function "};
  for (const std::string_view phrase : kPhrases) {
    const std::size_t found = log.find(phrase);
    if (found == std::string_view::npos) continue;
    const std::string_view rest = log.substr(found + phrase.size());
    return std::string(rest.substr(0, rest.find('\n')));
  }
  return {};
}

// Whether a symbol is of this function: `tw_snippet::erff(float)`, `_ZN10tw_snippet4erffEf`.
bool names_function(std::string_view symbol, std::string_view name) {
  const std::string mangled = std::to_string(name.size()) + std::string(name);
  return symbol.find(fmt::format("::{}(", name)) != std::string_view::npos ||
         symbol.find(mangled) != std::string_view::npos ||
         symbol.find(fmt::format("`{}(", name)) != std::string_view::npos;
}

bool is_boundary(const CompilerMessage& message) {
  return message.is_error || message.text.starts_with("warning: ");
}

class Reporter {
 public:
  Reporter(const Spec& spec, const KernelSource& source,
           const std::vector<CompilerMessage>& messages, std::string_view log)
      : spec_(spec), source_(source), messages_(messages), log_(log) {}

  Error run() const {
    if (const std::string symbol = undefined_symbol(log_); !symbol.empty()) {
      if (const std::optional<Error> error = undefined_report(symbol)) return *error;
    }
    if (!source_.map.empty()) {
      for (std::size_t i = 0; i < messages_.size(); ++i) {
        if (!messages_[i].is_error) continue;
        if (const std::optional<Blame> blame = blame_snippet(i)) return snippet_report(*blame);
      }
      for (const CompilerMessage& message : messages_) {
        if (message.is_error && !is_missing_header(message.text)) return template_report(message);
      }
    }
    return compiler_report();
  }

 private:
  // An error lies in a snippet, or in a template that the snippet had instantiated, or at the first
  // token after the snippet (a return or a ; is missing).
  std::optional<Blame> blame_snippet(std::size_t index) const {
    const CompilerMessage& error = messages_[index];
    const Origin own = origin_of(error);
    if (own.in_snippet) return Blame{own, &error};
    for (std::size_t i = index; i > 0 && !is_boundary(messages_[i - 1]); --i) {
      const CompilerMessage& context = messages_[i - 1];
      const bool leads_here = context.text.find("required from") != std::string::npos ||
                              context.text.find("' expansion of '") != std::string::npos;
      if (leads_here && origin_of(context).in_snippet) return Blame{origin_of(context), &error};
    }
    for (std::size_t i = index + 1; i < messages_.size() && !is_boundary(messages_[i]); ++i) {
      const CompilerMessage& context = messages_[i];
      const bool leads_here = context.text.find("requested here") != std::string::npos ||
                              context.text.find("expansion of macro") != std::string::npos;
      if (leads_here && origin_of(context).in_snippet) return Blame{origin_of(context), &error};
    }
    const int line = line_before(error.line);
    if (line > 0) {
      const Origin before = source_.map.origin_of(line, last_column(line));
      if (before.in_snippet) return Blame{before, &error, true};
    }
    return std::nullopt;
  }

  Origin origin_of(const CompilerMessage& message) const {
    return source_.map.origin_of(message.line, message.column);
  }

  // The line that a message about a closing brace is really about; 0 where there is none.
  int line_before(int line) const {
    for (--line; line > 0; --line) {
      const std::string_view text = rendered_line(line);
      const std::size_t start = text.find_first_not_of(" \t");
      const bool says_nothing =
          start == std::string_view::npos || text[start] == '#' || text.substr(start) == "}";
      if (!says_nothing) return line;
      if (source_.map.origin_of(line, last_column(line)).in_snippet) return line;
    }
    return 0;
  }

  int last_column(int line) const {
    return std::max(1, static_cast<int>(rendered_line(line).size()));
  }

  std::string_view rendered_line(int line) const {
    std::string_view text = source_.text;
    for (int i = 1; i < line && !text.empty(); ++i) {
      text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    }
    return text.substr(0, text.find('\n'));
  }

  // The snippet that names the function which the linker did not find; none: neither does.
  std::optional<Error> undefined_report(const std::string& symbol) const {
    for (const SnippetKind kind : snippet_kinds()) {
      const std::string& text = snippet_text(spec_, kind);
      for (const SnippetToken& token : tokenize(text, kind)) {
        if (!is_identifier(token) || !names_function(symbol, token.text)) continue;
        return snippet_error(kind, text, token.offset,
                             fmt::format("\"{}\" is declared here and defined nowhere", token.text),
                             "a snippet calls the functions that are there, and lambdas of its own",
                             {origin_note(), log_note()});
      }
    }
    return std::nullopt;
  }

  Error snippet_report(const Blame& blame) const {
    const auto is_blamed = [&](SnippetKind each) { return blame.origin.file == to_string(each); };
    const auto found = std::find_if(snippet_kinds().begin(), snippet_kinds().end(), is_blamed);
    const SnippetKind kind = found == snippet_kinds().end() ? SnippetKind::mask_mod : *found;
    const std::string& text = snippet_text(spec_, kind);
    const Wording wording = reword(blame.error->text, spec_, kind);
    return Error({.code = ErrorCode::snippet,
                  .message = wording.message,
                  .place = place_in(to_string(kind), text, blame),
                  .notes = {names_available(spec_, kind), origin_note(), log_note()},
                  .hint = wording.hint});
  }

  // Never outside the snippet: what follows it is shown at its end.
  static SourceLocation place_in(std::string_view file, std::string_view text, const Blame& blame) {
    const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
    const SourceLocation last = place_at(file, text, end);
    const std::pair position(blame.origin.line, blame.origin.column);
    if (blame.is_behind || position > std::pair(last.line, last.column)) return last;
    return place_at_line(file, text, position.first, position.second);
  }

  Error template_report(const CompilerMessage& error) const {
    const Origin origin = origin_of(error);
    return Error(
        {.code = ErrorCode::kernel_template,
         .message = fmt::format("the compiler refuses a template: {}",
                                printable(error.text, kMaxLineBytes)),
         .place =
             SourceLocation{
                 .file = origin.file, .line = origin.line, .column = origin.column, .excerpt = {}},
         .notes = {fmt::format("rendered line {}: {}", error.line,
                               printable(rendered_line(error.line), kMaxLineBytes)),
                   origin_note(), log_note()},
         .hint = "another compiler may take it: set TILEWRIGHT_CXX; else report a defect"});
  }

  Error compiler_report() const {
    const bool lacks_header =
        std::any_of(messages_.begin(), messages_.end(),
                    [](const CompilerMessage& message) { return is_missing_header(message.text); });
    return Error({.code = ErrorCode::compiler,
                  .message = lacks_header
                                 ? "the compiler lacks one of its own headers"
                                 : "the compiler failed for a reason that is not a snippet's",
                  .place = std::nullopt,
                  .notes = {origin_note(), log_note()},
                  .hint = lacks_header ? "install the compiler's C++ library (apt-get install g++)"
                                       : "try another compiler: set TILEWRIGHT_CXX"});
  }

  std::string origin_note() const {
    return fmt::format("while compiling {} for {}", source_.variant.name(), source_.target.name());
  }

  std::string log_note() const {
    std::string note(kLogTitle);
    std::string_view rest = log_;
    std::size_t lines = 0;
    std::size_t left_out = 0;  // of the next lines
    while (!rest.empty()) {
      if (lines == kMaxLogLines) return note + "\n(and more)";
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.find(kOwnWarning) != std::string_view::npos) left_out = 3;
      if (left_out > 0) {
        --left_out;
        continue;
      }
      note += '\n' + printable(line, kMaxLineBytes);
      ++lines;
    }
    return note;
  }

  const Spec& spec_;
  const KernelSource& source_;
  const std::vector<CompilerMessage>& messages_;
  std::string_view log_;
};

}  // namespace

std::vector<CompilerMessage> parse_host_messages(std::string_view log,
                                                 std::string_view source_name) {
  std::vector<CompilerMessage> messages;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    if (auto message = parse_line(log.substr(0, end), source_name)) {
      messages.push_back(*std::move(message));
    }
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return messages;
}

bool is_compiler_log(std::string_view note) {
  return note.starts_with(kLogTitle);
}

Error compile_error(const Spec& spec, const KernelSource& source,
                    const std::vector<CompilerMessage>& messages, std::string_view log) {
  return Reporter(spec, source, messages, log).run();
}

}  // namespace tilewright
