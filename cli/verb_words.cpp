#include "cli/verb_words.hpp"

#include "cli/arguments.hpp"
#include "generator/spec/target.hpp"

namespace tilewright::cli {
namespace {

std::vector<std::string> choices_of(const Verb& verb, const std::string& argument) {
  if (argument == "--device" || argument == "--beside") return {"auto", "cpu", "cuda"};
  if (argument == "--target" || argument == "--targets") return Target::all_names();
  if (argument == "--dtype") return {"f32", "f16", "bf16"};
  return verb.choices(argument);
}

ArgumentWords words_of(const CLI::Option& option, const Verb& verb) {
  const bool is_flag = option.get_items_expected_max() == 0;
  ArgumentWords words;
  words.description = option.get_description();
  words.required = option.get_required();
  if (option.get_positional()) {
    words.value = option.get_name(true);
    words.choices = choices_of(verb, words.value);
    return words;
  }
  words.long_name = "--" + option.get_lnames().front();
  if (!option.get_snames().empty()) words.short_name = "-" + option.get_snames().front();
  if (!is_flag) words.value = option.get_type_name();
  words.choices = choices_of(verb, words.long_name);
  return words;
}

VerbWords words_of(Verb& verb) {
  CLI::App app;
  declare_arguments(app, verb);
  VerbWords words{verb.name(), verb.summary(), verb.example(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? words.positionals : words.options)
        .push_back(words_of(*option, verb));
  }
  return words;
}

}  // namespace

std::vector<VerbWords> words_of(const VerbList& verbs) {
  std::vector<VerbWords> words;
  for (const auto& verb : verbs) words.push_back(words_of(*verb));
  return words;
}

}  // namespace tilewright::cli
