#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/output.hpp"
#include "cli/verb_words.hpp"

namespace tilewright::cli {
namespace {

const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::vector<std::string> option_names(const VerbWords& verb) {
  std::vector<std::string> names;
  for (const ArgumentWords& option : verb.options) names.push_back(option.long_name);
  return names;
}

std::vector<std::string> verb_names(const std::vector<VerbWords>& verbs) {
  std::vector<std::string> names;
  for (const VerbWords& verb : verbs) names.push_back(verb.name);
  return names;
}

// Without a candidate, `-o default` lets bash complete names of files.
std::string bash_script(const std::vector<VerbWords>& verbs) {
  std::string values;
  std::string options;
  for (const VerbWords& verb : verbs) {
    for (const ArgumentWords& option : verb.options) {
      if (option.value.empty()) continue;
      values += fmt::format("    {}:{}) words='{}' ;;\n", verb.name, option.long_name,
                            fmt::join(option.choices, " "));
    }
    std::string first;
    if (!verb.positionals.empty()) {
      first = fmt::format("{}", fmt::join(verb.positionals.front().choices, " "));
    }
    options += fmt::format("    {}) options='{}' first='{}' ;;\n", verb.name,
                           fmt::join(option_names(verb), " "), first);
  }
  return fmt::format(
      R"(# bash completion of tilewright; made by `tilewright completions bash`
_tilewright() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local verb=${{COMP_WORDS[1]}} words= options= first=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case $verb:$previous in
{}    *)
      case $verb in
{}      esac
      [ "$COMP_CWORD" -ne 2 ] || words=$first
      [[ $current != -* ]] || words=$options ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _tilewright tilewright
)",
      fmt::join(verb_names(verbs), " "), values, options);
}

// Of a value of _arguments: 'NAME[DESCRIPTION]:VALUE:ACTION' in single quotes.
std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) {
    text = replace_all(std::move(text), special, std::string("\\") + special);
  }
  return replace_all(std::move(text), "'", "'\\''");
}

std::string zsh_action(const ArgumentWords& words) {
  if (words.choices.empty()) return "_files";
  return fmt::format("({})", fmt::join(words.choices, " "));
}

std::string zsh_script(const std::vector<VerbWords>& verbs) {
  std::string names;
  std::string cases;
  for (const VerbWords& verb : verbs) {
    names += fmt::format("    '{}:{}'\n", verb.name, zsh_text(verb.summary));
    cases += fmt::format("    {})\n      _arguments", verb.name);
    for (const ArgumentWords& option : verb.options) {
      cases +=
          fmt::format(" \\\n        '{}[{}]{}'", option.long_name, zsh_text(option.description),
                      option.value.empty() ? "" : ":" + option.value + ":" + zsh_action(option));
    }
    int place = 0;
    for (const ArgumentWords& positional : verb.positionals) {
      cases +=
          fmt::format(" \\\n        '{}:{}:{}'", ++place, positional.value, zsh_action(positional));
    }
    cases += " ;;\n";
  }
  return fmt::format(
      R"(#compdef tilewright
# zsh completion of tilewright; made by `tilewright completions zsh`
_tilewright() {{
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
}}
if [ "$funcstack[1]" = _tilewright ]; then
  _tilewright "$@"
else
  compdef _tilewright tilewright
fi
)",
      names, cases);
}

std::string fish_text(std::string text) {
  text = replace_all(std::move(text), "\\", "\\\\");
  return replace_all(std::move(text), "'", "\\'");
}

std::string fish_script(const std::vector<VerbWords>& verbs) {
  std::string text = "# fish completion of tilewright; made by `tilewright completions fish`\n";
  for (const VerbWords& verb : verbs) {
    text += fmt::format("complete -c tilewright -n __fish_use_subcommand -f -a {} -d '{}'\n",
                        verb.name, fish_text(verb.summary));
  }
  for (const VerbWords& verb : verbs) {
    const std::string when =
        fmt::format("complete -c tilewright -n '__fish_seen_subcommand_from {}'", verb.name);
    for (const ArgumentWords& option : verb.options) {
      const std::string name = when + " -l " + option.long_name.substr(2);
      text += fmt::format("{}{} -d '{}'\n", name, option.value.empty() ? "" : " -r",
                          fish_text(option.description));
      // By itself: fish shows a description next to each value too.
      if (option.choices.empty()) continue;
      text += fmt::format("{} -x -a '{}'\n", name, fmt::join(option.choices, " "));
    }
    for (const ArgumentWords& positional : verb.positionals) {
      if (positional.choices.empty()) continue;
      text += fmt::format("{} -f -a '{}'\n", when, fmt::join(positional.choices, " "));
    }
  }
  return text;
}

class CompletionsVerb : public Verb {
 public:
  explicit CompletionsVerb(std::function<VerbList()> verbs)
      : Verb("completions", "print a shell's completion script",
             "tilewright completions bash > ~/.local/share/bash-completion/completions/tilewright"),
        verbs_(std::move(verbs)) {}

  void declare(CLI::App& app) override {
    app.add_option("SHELL", shell_, "bash, zsh or fish")->required();
  }

  std::vector<std::string> choices(std::string_view argument) const override {
    return argument == "SHELL" ? kShells : std::vector<std::string>();
  }

  ExitStatus execute() override {
    print_verbatim(completion_script(shell_, words_of(verbs_())));
    return kDone;
  }

 private:
  std::function<VerbList()> verbs_;
  std::string shell_;
};

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<VerbWords>& verbs) {
  if (shell == "bash") return bash_script(verbs);
  if (shell == "zsh") return zsh_script(verbs);
  if (shell == "fish") return fish_script(verbs);
  std::string hint = did_you_mean(shell, kShells);
  if (hint.empty()) hint = "allowed: " + one_of(kShells);
  throw Error(ErrorCode::usage, fmt::format("no completions for the shell \"{}\"", shell), hint);
}

std::unique_ptr<Verb> make_completions_verb(std::function<VerbList()> verbs) {
  return std::make_unique<CompletionsVerb>(std::move(verbs));
}

}  // namespace tilewright::cli
