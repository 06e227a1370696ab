#pragma once

#include <string>

#include "base/error.hpp"

namespace tilewright::cli {

/// A text of the library with the options and verbs of the command line where it names functions of
/// the library: "--device cpu" for Device::cpu(), "`tilewright cache clear`" for
/// cache::Store::clear().
std::string in_command_line_words(std::string text);

/// An error with its hint and notes in those words.
Error in_command_line_words(const Error& error);

}  // namespace tilewright::cli
