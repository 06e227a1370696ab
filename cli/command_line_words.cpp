#include "cli/command_line_words.hpp"

#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::cli {
namespace {

using Translation = std::pair<std::regex, const char*>;

}  // namespace

std::string in_command_line_words(std::string text) {
  static const auto& kWords = *new std::vector<Translation>{
      {std::regex(R"(Device::cpu\(\))"), "--device cpu"},
      {std::regex(R"(Device::automatic\(\))"), "--device auto"},
      {std::regex(R"re(pass \.scalars = \{\{"(\w+)", X\}\} to bind\(\))re"), "give --scalar $1=X"},
      {std::regex(R"(cache::Store::clear\(\))"), "`tilewright cache clear`"},
      {std::regex(R"(precompile\(\) it for (\S+))"), "run tilewright precompile with --targets $1"},
      {std::regex(R"(\bprecompile\(\))"), "tilewright precompile"},
      {std::regex(R"(write_bundle\(\) with a SigningKey)"), "tilewright precompile --sign KEY"},
      {std::regex(R"(cache::RemoteCache::probe\(\))"), "tilewright doctor"},
      {std::regex(R"(write_block_mask\(\))"), "tilewright mask SPEC --outputs FILE"},
  };
  for (const auto& [pattern, words] : kWords) text = std::regex_replace(text, pattern, words);
  return text;
}

Error in_command_line_words(const Error& error) {
  Error::Details details{.code = error.code(),
                         .message = error.message(),
                         .place = error.place(),
                         .notes = {},
                         .hint = in_command_line_words(error.hint())};
  for (const std::string& note : error.notes()) {
    details.notes.push_back(in_command_line_words(note));
  }
  return Error(std::move(details));
}

}  // namespace tilewright::cli
