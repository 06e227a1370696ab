#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace tilewright::cli {

using VerbList = std::vector<std::unique_ptr<Verb>>;

/// An argument of a verb, as its help shows it.
struct ArgumentWords {
  std::string long_name;   ///< "--q-len"; empty for a positional argument
  std::string short_name;  ///< "-h" or empty
  std::string value;       ///< "TEXT", "INT"; "SPEC" for a positional argument; empty for a flag
  std::string description;
  bool required = false;
  std::vector<std::string>
      choices;  ///< values that a shell offers; empty where any file or text serves
};

/// A verb with everything that its help says.
struct VerbWords {
  std::string name;
  std::string summary;
  std::string example;
  std::vector<ArgumentWords> positionals;
  std::vector<ArgumentWords> options;
};

/// The verbs with their arguments, in the order of `verbs`.
std::vector<VerbWords> words_of(const VerbList& verbs);

/// The completion script of "bash", "zsh" or "fish".
/// @throws Error with code usage for another shell
std::string completion_script(const std::string& shell, const std::vector<VerbWords>& verbs);

/// The manual page tilewright(1) in man(7)'s markup.
std::string manual_page(const std::vector<VerbWords>& verbs);

/// `tilewright completions SHELL`. `verbs` makes the verbs that the script completes.
std::unique_ptr<Verb> make_completions_verb(std::function<VerbList()> verbs);

/// `tilewright manual`
std::unique_ptr<Verb> make_manual_verb(std::function<VerbList()> verbs);

}  // namespace tilewright::cli
