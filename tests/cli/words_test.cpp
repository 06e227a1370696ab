#include <algorithm>
#include <array>
#include <sstream>

#include "cli/colour.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

struct HelpOfVerb {
  std::string name;
  std::vector<std::string> options;  // long names, as --help shows them
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What the help texts name: the words that the manual and the completions must have.
std::vector<HelpOfVerb> verbs_by_help() {
  std::vector<HelpOfVerb> verbs;
  bool is_in_list = false;
  for (const std::string& line : lines_of(start({"--help"}).out)) {
    if (line.empty()) is_in_list = false;
    if (is_in_list) verbs.push_back({line.substr(2, line.find(' ', 2) - 2), {}});
    if (line == "Verbs:") is_in_list = true;
  }
  for (HelpOfVerb& verb : verbs) {
    for (const std::string& line : lines_of(start({verb.name, "--help"}).out)) {
      const std::size_t begin = line.find("--");
      if (!line.starts_with("  -") || begin > 5) continue;
      verb.options.push_back(line.substr(begin, line.find_first_of(" ", begin) - begin));
    }
  }
  return verbs;
}

// What bash offers for the last of the words.
std::string offered_by_bash(const std::string& words) {
  const Ended ended =
      shell("eval \"$(\"$tilewright\" completions bash)\"; COMP_WORDS=(" + words +
            "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tilewright; echo \"${COMPREPLY[*]}\"");
  REQUIRE(ended.status == 0);
  REQUIRE(ended.err.empty());
  return ended.out;
}

// What a terminal shows of a command's stderr. `script` is of util-linux.
std::string on_terminal(const std::string& command) {
  const Ended ended = shell("export TERM=xterm; unset NO_COLOR; script -qec '" + command +
                            "' /dev/null </dev/null");
  return ended.out;
}

std::string without_escapes(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      result += text[i];
  }
  return result;
}

}  // namespace

TEST_CASE("words: the manual page has each verb, each of its options and each variable") {
  const Ended manual = start({"manual"});
  REQUIRE(manual.status == 0);
  REQUIRE_THAT(manual.out, StartsWith(".TH TILEWRIGHT 1 "));
  const std::vector<HelpOfVerb> verbs = verbs_by_help();
  REQUIRE(verbs.size() >= 13);
  for (const HelpOfVerb& verb : verbs) {
    CAPTURE(verb.name);
    const std::size_t begin = manual.out.find(".SS " + verb.name + "\n");
    REQUIRE(begin != std::string::npos);
    const std::string section = manual.out.substr(begin, manual.out.find("\n.S", begin) - begin);
    REQUIRE(verb.options.size() >= 2);
    for (std::string option : verb.options) {
      for (std::size_t at = 0; (at = option.find('-', at)) != std::string::npos; at += 2) {
        option.replace(at, 1, "\\-");
      }
      CHECK_THAT(section, ContainsSubstring("\\fB" + option + "\\fR"));
    }
  }
  for (const char* variable : {"TILEWRIGHT_CACHE", "TILEWRIGHT_NVRTC", "NO_COLOR"}) {
    CHECK_THAT(manual.out, ContainsSubstring(std::string("\\fB") + variable + "\\fR"));
  }
}

TEST_CASE("words: no line of the manual page is markup by accident") {
  const std::array known = {".TH ", ".SH ", ".SS ", ".TP", ".PP", ".nf", ".fi", ".RS", ".RE"};
  for (const std::string& line : lines_of(start({"manual"}).out)) {
    if (line.empty() || (line[0] != '.' && line[0] != '\'')) continue;
    CAPTURE(line);
    CHECK(std::any_of(known.begin(), known.end(),
                      [&](const char* macro) { return line.starts_with(macro); }));
  }
}

TEST_CASE("words: every shell's completions have each verb and each option") {
  const std::string shell_name = GENERATE("bash", "zsh", "fish");
  const Ended script = start({"completions", shell_name});
  REQUIRE(script.status == 0);
  const std::string prefix = shell_name == "fish" ? " -l " : "--";
  for (const HelpOfVerb& verb : verbs_by_help()) {
    CHECK_THAT(script.out, ContainsSubstring(verb.name));
    for (const std::string& option : verb.options) {
      CHECK_THAT(script.out, ContainsSubstring(prefix + option.substr(2)));
    }
  }
}

TEST_CASE("words: bash completes verbs, options, values and actions") {
  CHECK(offered_by_bash("tilewright che") == "check\n");
  CHECK(offered_by_bash("tilewright run --batch-i") == "--batch-invariant\n");
  CHECK(offered_by_bash("tilewright run --device cu") == "cuda\n");
  CHECK(offered_by_bash("tilewright bench --suite serv") == "serving\n");
  CHECK(offered_by_bash("tilewright cache ver") == "verify\n");
  CHECK(offered_by_bash("tilewright compile --target sm_90") == "sm_90 sm_90a\n");
  // Names of files are bash's own.
  CHECK(offered_by_bash("tilewright run --outputs ''") == "\n");
}

TEST_CASE("words: an unknown shell names the nearest one") {
  const Ended ended = start({"completions", "fisch"});
  REQUIRE(ended.status == 2);
  REQUIRE_THAT(ended.err, ContainsSubstring("did you mean \"fish\"?"));
}

TEST_CASE("colours: the code, the place, the caret and the hint; the text stays") {
  const std::string report =
      "error[spec]: unknown key \"a\"\n  --> my.json:3:3\n   |   \"a\": 64,\n   |   ^\n"
      "  hint: did you mean \"b\"?\n        or c\n  note: more";
  const std::string coloured = tilewright::cli::in_colours(report);
  CHECK(without_escapes(coloured) == report);
  CHECK_THAT(coloured, StartsWith("\x1b[1;31merror[spec]:\x1b[0m"));
  CHECK_THAT(coloured, ContainsSubstring("\n\x1b[34m  --> my.json:3:3\x1b[0m\n   |   \"a\""));
  CHECK_THAT(coloured,
             ContainsSubstring("\n\x1b[1;31m   |   ^\x1b[0m\n\x1b[36m  hint:\x1b[0m did"));
  CHECK_THAT(coloured, ContainsSubstring("\n        or c\n\x1b[36m  note:\x1b[0m more"));
}

TEST_CASE("colours: on a terminal alone, and neither with NO_COLOR nor on a dumb one") {
  CHECK_THAT(on_terminal("\"$tilewright\" rnu"), ContainsSubstring("\x1b[1;31merror[usage]:"));
  CHECK(on_terminal("NO_COLOR=1 \"$tilewright\" rnu").find('\x1b') == std::string::npos);
  CHECK(on_terminal("TERM=dumb \"$tilewright\" rnu").find('\x1b') == std::string::npos);
  CHECK_THAT(on_terminal("NO_COLOR= \"$tilewright\" rnu"), ContainsSubstring("\x1b[1;31m"));
  CHECK(start({"rnu"}, {{"TERM", "xterm"}}).err.find('\x1b') == std::string::npos);
}
