#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/verb.hpp"
#include "generator/spec/spec.hpp"

namespace tilewright::cli {

/// Finds the verb that the words after `tilewright` begin with and reads the others into it. Help
/// and the version are printed here.
/// @return the verb to execute; null where printing was all that was asked for
/// @throws Error with code usage, naming the nearest verb or option
Verb* parse_command_line(const std::vector<std::string>& words,
                         const std::vector<std::unique_ptr<Verb>>& verbs);

/// Gives `app` the arguments of a verb, and --verbose, which every verb has.
void declare_arguments(CLI::App& app, Verb& verb);

/// Whether errors are wanted as JSON too. Asked before anything is parsed, so that it is known for
/// words that do not parse.
bool asks_for_json(const std::vector<std::string>& words);

/// Whether --verbose is among the words.
bool asks_for_the_log(const std::vector<std::string>& words);

/// The positional argument SPEC.
void add_spec_argument(CLI::App& app, std::string& path);

/// --json
void add_json_flag(CLI::App& app, bool& json);

/// Refuses a number that a float would make infinite or 0.
CLI::Validator held_by_a_float();

/// Reads `NAME=NUMBER`, repeated.
/// @throws Error with code usage for another form, a seed that a double rounds, or a name that is
///         given twice
std::map<std::string, double> parse_scalars(const std::vector<std::string>& texts,
                                            const Spec& spec);

/// Splits at commas, empty parts included. An empty text has no parts.
std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace tilewright::cli
