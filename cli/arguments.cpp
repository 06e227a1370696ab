#include "cli/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "base/version.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "generator/messages/usual_mistakes.hpp"
#include "generator/spec/number_range.hpp"
#include "generator/spec/validate.hpp"

namespace tilewright::cli {
namespace {

using Verbs = std::vector<std::unique_ptr<Verb>>;

std::string help_text(const Verbs& verbs) {
  std::string text =
      "tilewright: attention kernels from C++ snippets\n\n"
      "Usage: tilewright VERB [ARGUMENTS]\n\nVerbs:\n";
  for (const auto& verb : verbs) {
    text += fmt::format("  {:<12} {}\n", verb->name(), verb->summary());
  }
  text +=
      "\nOptions:\n"
      "  -h,--help   this text; after a verb, its arguments\n"
      "  --version   the version of tilewright\n"
      "\nExample:\n"
      "  tilewright check examples/alibi.json --inputs random:1,4,2,300,300\n"
      "\nExit status: 0 done; 1 a verdict is negative; 2 the usage, spec, snippet or input file is "
      "wrong;\n3 the machine lacks or refuses something.\n";
  return text;
}

Verb* find_verb(const std::string& name, const Verbs& verbs) {
  std::vector<std::string> names;
  for (const auto& verb : verbs) {
    if (verb->name() == name) return verb.get();
    names.push_back(verb->name());
  }
  const bool is_option = name.starts_with('-');
  std::string hint(usual_mistake(MistakeIn::verb, name));
  if (hint.empty() && !is_option) hint = did_you_mean(name, names);
  if (hint.empty()) hint = "tilewright --help lists the verbs";
  throw Error(ErrorCode::usage,
              is_option ? fmt::format("the first word is a verb, but it is \"{}\"", name)
                        : fmt::format("unknown verb \"{}\"", name),
              hint);
}

// CLI11 would complain about what is missing first, which is no help with a misspelt option.
void refuse_unknown_options(const std::vector<std::string>& words, const CLI::App& app,
                            const std::string& verb) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::count(known.begin(), known.end(), name) > 0) continue;
    std::string hint(usual_mistake(MistakeIn::option, name));
    if (hint.empty()) hint = did_you_mean(name, known);
    if (hint.empty()) hint = fmt::format("tilewright {} --help lists the options", verb);
    throw Error(ErrorCode::usage, fmt::format("unknown option \"{}\"", name), hint);
  }
}

// No option of any verb takes an empty text: an empty variable of a script is a mistake.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (option->get_items_expected_max() == 0) continue;  // a flag
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    const std::string name = option->get_positional() ? option->get_name(true) : option->get_name();
    throw Error(ErrorCode::usage, fmt::format("{} is empty", name),
                "give it a value, or leave it out; a variable of the script may be unset");
  }
}

void refuse_empty_assignments(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return;
    const bool is_assignment = word.starts_with("--") && word.find('=') == word.size() - 1;
    if (!is_assignment) continue;
    throw Error(ErrorCode::usage, fmt::format("{} is empty", word.substr(0, word.size() - 1)),
                "give it a value, or leave it out; a variable of the script may be unset");
  }
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// True if the verb is to be executed, false if help was printed instead.
bool parse_words(std::vector<std::string> words, Verb& verb) {
  CLI::App app(verb.summary(), "tilewright " + verb.name());
  app.footer("\nExample:\n  " + verb.example());
  declare_arguments(app, verb);
  if (!app.get_allow_extras()) refuse_unknown_options(words, app, verb.name());
  refuse_empty_assignments(words);
  std::reverse(words.begin(), words.end());  // CLI11 wants the last word first
  try {
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::usage, one_line(error.what()),
                fmt::format("tilewright {} --help shows the arguments; for example: {}",
                            verb.name(), verb.example()));
  }
  refuse_empty_values(app);
  return true;
}

// from_chars takes no + and returns 0 for what underflows.
void require_held(const std::string& name, std::string_view number) {
  const std::string_view unsigned_number = number.substr(number.starts_with('-') ? 1 : 0);
  const bool is_word = unsigned_number.starts_with('i') || unsigned_number.starts_with('n');
  if (is_word || f64_range(unsigned_number) == FloatRange::holds) return;
  throw Error(ErrorCode::usage,
              fmt::format("scalar \"{}\": no type holds the number {}", name, number),
              "an f32 is 0, or from 1.4e-45 to 3.4028235e38");
}

// Refuses a seed that a double rounds. The library refuses NaN and infinities.
void require_exact(const std::string& name, std::string_view number) {
  const bool is_word = number.find_first_of("iInN") != std::string_view::npos;
  if (is_word || is_exact_seed(number)) return;
  throw Error(ErrorCode::usage,
              fmt::format("scalar \"{}\" is {}, but must {}", name, number, range_rule(DType::i64)),
              std::string(kSeedHint));
}

}  // namespace

void declare_arguments(CLI::App& app, Verb& verb) {
  verb.declare(app);
  // A verb may have one that says more of something else too. asks_for_the_log() reads the words.
  if (!app.get_option_no_throw("--verbose")) {
    app.add_flag("--verbose")->description("show a compiler's log below an error in a snippet too");
  }
}

Verb* parse_command_line(const std::vector<std::string>& words, const Verbs& verbs) {
  if (words.empty()) {
    throw Error(ErrorCode::usage, "a verb is missing", "tilewright --help lists the verbs");
  }
  if (words[0] == "--help" || words[0] == "-h") {
    print(help_text(verbs));
    return nullptr;
  }
  if (words[0] == "--version") {
    print(fmt::format("tilewright {}\n", version()));
    return nullptr;
  }
  Verb* verb = find_verb(words[0], verbs);
  return parse_words({words.begin() + 1, words.end()}, *verb) ? verb : nullptr;
}

bool asks_for_the_log(const std::vector<std::string>& words) {
  return std::count(words.begin(), words.end(), "--verbose") > 0;
}

bool asks_for_json(const std::vector<std::string>& words) {
  return std::count(words.begin(), words.end(), "--json") > 0;
}

void add_spec_argument(CLI::App& app, std::string& path) {
  app.add_option("SPEC", path, "the spec, a JSON file (docs/spec.md)")->required();
}

void add_json_flag(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "print facts as JSON; errors too");
}

CLI::Validator held_by_a_float() {
  return CLI::Validator(
      [](const std::string& text) {
        const std::string_view number =
            std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
        const bool is_number =
            !number.empty() && (number[0] == '.' || std::isdigit(number[0]) != 0);
        return is_number && f32_range(number) != FloatRange::holds
                   ? text + " is a number that no float holds"
                   : std::string();
      },
      "");
}

std::map<std::string, double> parse_scalars(const std::vector<std::string>& texts,
                                            const Spec& spec) {
  std::map<std::string, double> scalars;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    double value = 0;
    const char* begin = text.data() + (equals == std::string::npos ? text.size() : equals + 1);
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(begin, end, value);
    const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
    const bool is_read = failure == std::errc() || failure == std::errc::result_out_of_range;
    if (!name.empty() && is_read && stop == end && begin != end) require_held(name, digits);
    if (name.empty() || failure != std::errc() || stop != end) {
      throw Error(ErrorCode::usage, fmt::format("--scalar: \"{}\" is no scalar", text),
                  "write --scalar NAME=NUMBER, for example --scalar cap=30");
    }
    const auto declared = spec.scalars.find(name);
    if (declared != spec.scalars.end() && declared->second.dtype == DType::i64) {
      require_exact(name, digits);
    }
    if (!scalars.emplace(name, value).second) {
      throw Error(ErrorCode::usage, fmt::format("scalar \"{}\" is given twice", name));
    }
  }
  return scalars;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace tilewright::cli
