#include "generator/messages/compiler_wording.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <regex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/messages/usual_mistakes.hpp"

namespace tilewright {
namespace {

// std::regex recurses over its text.
constexpr std::size_t kMaxMessageBytes = 600;

struct Rewording {
  std::regex pattern;
  const char* text;
};

const std::vector<Rewording>& rewordings() {
  static const auto& kRewordings = *new std::vector<Rewording>([] {
    const std::array<std::pair<const char*, const char*>, 16> sources = {{
        {"\xE2\x80\x98|\xE2\x80\x99", "'"},  // typographic quotes of gcc
        {" \\[-[^\\]]*\\]$", ""},            // [-Werror=return-type]
        {"(\\{anonymous\\}|\\(anonymous namespace\\)|<unnamed>)::", ""},
        {"\\b(tw_\\w+|tilewright|abi)::", ""},  // our namespaces
        {"(const )?tw_\\w*[Bb]uffer<[^<>]*>", "buffer"},
        // gcc's parameters of our templates
        {"call to non-'constexpr' function '[^']*\\bbuffer::operator[^']*'",
         "a buffer's element is not a constant expression"},
        {"call to non-'constexpr' function '[^']*\\bbuffer::size[^']*'",
         "a buffer's size is not a constant expression"},
        {"( const)? requires [^']*(?= \\[with )", ""},
        {" \\[with [^']*\\](?=')", ""},
        {"\\w+\\([^()]*\\)::<lambda", "<lambda"},  // the function around a lambda
        {"\\(lambda at [^()]*\\)", "<lambda>"},
        {"[;,] did you mean '_*(tw_|tilewright|TW_|_)[^']*'\\?",
         ""},  // a name that a snippet may not use
        {"'tw_real'( \\{aka '\\w+'\\}| \\(aka '\\w+'\\))?", "'float'"},
        {"\\btw_real\\b", "float"},
        {"\\btw_(?=\\w)", ""},
        // gcc, of a name that is called in a template
        {"there are no arguments to '(\\w+)' that depend on a template parameter.*",
         "'$1' was not declared in this scope"},
    }};
    std::vector<Rewording> result;
    for (const auto& [pattern, text] : sources) result.push_back({std::regex(pattern), text});
    return result;
  }());
  return kRewordings;
}

std::string clean(std::string_view text) {
  std::string message = printable(text, kMaxMessageBytes);
  for (const Rewording& rewording : rewordings()) {
    message = std::regex_replace(message, rewording.pattern, rewording.text);
  }
  return message;
}

// The identifier that the compiler does not know; empty where the message is about something else.
std::string unknown_name(const std::string& message) {
  static const auto& kPatterns = *new std::array<std::regex, 4>{
      std::regex("'(\\w+)' (was not declared|has not been declared|does not name a type)"),
      std::regex("use of undeclared identifier '(\\w+)'"),
      std::regex("unknown type name '(\\w+)'"),
      std::regex("identifier \"(\\w+)\" is undefined"),
  };
  std::smatch match;
  for (const std::regex& pattern : kPatterns) {
    if (std::regex_search(message, match, pattern)) return match[1];
  }
  return {};
}

std::vector<std::string> declared_names(const Spec& spec) {
  std::vector<std::string> names;
  for (const auto& [name, buffer] : spec.buffers) names.push_back(name);
  for (const auto& [name, scalar] : spec.scalars) {
    if (is_read_by_snippets(scalar)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> available(const Spec& spec, SnippetKind kind) {
  std::vector<std::string> names = snippet_variables();
  std::erase_if(names, [kind](const std::string& name) { return !sees(kind, name); });
  const std::vector<std::string> declared = declared_names(spec);
  names.insert(names.end(), declared.begin(), declared.end());
  names.insert(names.end(), snippet_functions().begin(), snippet_functions().end());
  names.emplace_back("INFINITY");
  return names;
}

std::string hint_for_name(const std::string& name, const Spec& spec, SnippetKind kind) {
  if (name == "score" && kind == SnippetKind::mask_mod) {
    return "only score_mod sees the score; mask_mod decides by position";
  }
  const std::string declared = did_you_mean(name, declared_names(spec));
  if (!declared.empty()) return declared;
  const std::string_view advice = usual_mistake(MistakeIn::snippet, name);
  if (!advice.empty()) return std::string(advice);
  const std::string meant = did_you_mean(name, available(spec, kind));
  if (!meant.empty()) return meant;
  return fmt::format("declare \"{}\" under \"scalars\" or \"buffers\", or as a local variable",
                     name);
}

bool has_text(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string hint_for_message(const std::string& message) {
  const bool about_buffer = has_text(message, "'buffer'") || has_text(message, "'(buffer)") ||
                            has_text(message, "'const buffer'");
  if (about_buffer) {
    return "a buffer of one dimension is read as x[i], one of more as x(i, j), with an index for "
           "each";
  }
  const bool about_operands = has_text(message, "operator^") ||
                              has_text(message, "integral or unscoped enum") ||
                              has_text(message, "invalid operands to binary expression");
  if (about_operands) {
    return "^, %, &, | and << are for whole numbers: write pow(x, y) for a power; a float becomes "
           "one by int(x)";
  }
  constexpr std::string_view kNotConstant[] = {"constant expression", "constant value",
                                               "non-constant", "non-'constexpr'"};
  if (std::any_of(std::begin(kNotConstant), std::end(kNotConstant),
                  [&](std::string_view part) { return has_text(message, part); })) {
    return "positions, scores, buffers and scalars are known when the kernel runs: write const in "
           "place of constexpr";
  }
  constexpr std::string_view kNoValue[] = {"void value", "of type 'void'", "of type \"void\"",
                                           "return-statement with no value",
                                           "return value type does not match"};
  if (std::any_of(std::begin(kNoValue), std::end(kNoValue),
                  [&](std::string_view part) { return has_text(message, part); })) {
    return "a lambda without return gives no value: write return x;";
  }
  if (has_text(message, "read-only") || has_text(message, "const-qualified")) {
    return "positions, lengths, scalars and buffers are constants; copy one into a local variable";
  }
  if (has_text(message, "no return") || has_text(message, "non-void") ||
      has_text(message, "end of non-void")) {
    return "add a return at the end: some way through the snippet reaches it";
  }
  return {};
}

}  // namespace

Wording reword(std::string_view text, const Spec& spec, SnippetKind kind) {
  Wording wording = {.message = clean(text), .hint = {}};
  if (const std::string name = unknown_name(wording.message); !name.empty()) {
    wording.hint = hint_for_name(name, spec, kind);
    // Ours knows what a snippet may use; the compiler's may name anything.
    static const auto& kSuggestion = *new std::regex("[;,] did you mean '[^']*'\\?");
    wording.message = std::regex_replace(wording.message, kSuggestion, "");
  } else {
    wording.hint = hint_for_message(wording.message);
  }
  return wording;
}

bool is_missing_header(std::string_view text) {
  return text.ends_with("No such file or directory") || text.ends_with("file not found");
}

}  // namespace tilewright
