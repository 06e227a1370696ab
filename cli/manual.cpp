#include <string_view>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/version.hpp"
#include "cli/output.hpp"
#include "cli/verb_words.hpp"

namespace tilewright::cli {
namespace {

// man(7) reads a backslash, a hyphen, and a dot or an apostrophe at the start of a line as markup.
std::string plain(std::string_view text) {
  std::string result;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    is_line_start = c == '\n';
  }
  return result;
}

std::string argument(const ArgumentWords& words) {
  std::string name = plain(words.long_name);
  if (!words.short_name.empty()) name = plain(words.short_name) + "\\fR, \\fB" + name;
  std::string text = ".TP\n";
  if (name.empty()) {
    text += fmt::format("\\fI{}\\fR", plain(words.value));
  } else {
    text += fmt::format("\\fB{}\\fR", name);
    if (!words.value.empty()) text += fmt::format(" \\fI{}\\fR", plain(words.value));
  }
  if (words.required) text += " (required)";
  return text + '\n' + plain(words.description) + '\n';
}

std::string section(const VerbWords& verb) {
  std::string text = fmt::format(".SS {}\n{}.\n.PP\n\\fBtilewright {}\\fR", verb.name,
                                 plain(verb.summary), verb.name);
  for (const ArgumentWords& words : verb.positionals) {
    const std::string name = fmt::format("\\fI{}\\fR", plain(words.value));
    text += words.required ? " " + name : " [" + name + "]";
  }
  text += " [\\fIoptions\\fR]\n";
  for (const ArgumentWords& words : verb.positionals) text += argument(words);
  for (const ArgumentWords& words : verb.options) text += argument(words);
  return text + fmt::format(".PP\nExample:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n", plain(verb.example));
}

std::string environment_section() {
  std::string text = ".SH ENVIRONMENT\n";
  for (const EnvironmentVariable& variable : environment_variables()) {
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", variable.name, plain(variable.meaning));
  }
  return text + ".TP\n\\fBNO_COLOR\\fR\nerrors on a terminal have no colours, whatever its value\n";
}

class ManualVerb : public Verb {
 public:
  explicit ManualVerb(std::function<VerbList()> verbs)
      : Verb("manual", "print the manual page", "tilewright manual | man -l -"),
        verbs_(std::move(verbs)) {}

  void declare(CLI::App& /*app*/) override {}

  ExitStatus execute() override {
    print_verbatim(manual_page(words_of(verbs_())));
    return kDone;
  }

 private:
  std::function<VerbList()> verbs_;
};

}  // namespace

std::string manual_page(const std::vector<VerbWords>& verbs) {
  std::string text = fmt::format(
      ".TH TILEWRIGHT 1 \"\" \"tilewright {}\" \"User Commands\"\n"
      ".SH NAME\ntilewright \\- attention kernels from C++ snippets\n"
      ".SH SYNOPSIS\n\\fBtilewright\\fR \\fIVERB\\fR [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\nA spec (a JSON file) holds two C++ snippets: what happens to one score, "
      "and "
      "which elements are\nkept. tilewright makes an attention kernel of them, compiles it, keeps "
      "the binary and runs it.\n.SH VERBS\n",
      version());
  for (const VerbWords& verb : verbs) text += section(verb);
  text +=
      ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\na verdict is negative: check, fuzz or cache verify "
      "found something wrong\n.TP\n2\nthe usage, spec, snippet or input file is wrong\n.TP\n3\nthe "
      "machine lacks or refuses something\n";
  return text + environment_section();
}

std::unique_ptr<Verb> make_manual_verb(std::function<VerbList()> verbs) {
  return std::make_unique<ManualVerb>(std::move(verbs));
}

}  // namespace tilewright::cli
