#include "generator/snippet/misread_operators.hpp"

#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "generator/snippet/names.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

using Range = SnippetBrackets::Range;

bool joins_conditions(std::string_view text) {
  return is_conditional_operator(text);
}

bool negates(std::string_view text) {
  return text == "!" || text == "not";
}

// After these words a bracket groups; after other names it calls or declares.
bool is_before_a_group(std::string_view word) {
  constexpr std::array<std::string_view, 12> kWords = {"return", "and",    "or",  "not",
                                                       "case",   "else",   "do",  "if",
                                                       "while",  "switch", "xor", "constexpr"};
  return is_one_of(word, kWords);
}

class Operators {
 public:
  Operators(const SnippetBrackets& snippet, bool is_expression)
      : snippet_(snippet), is_expression_(is_expression) {}

  void run() const {
    const Range all = {0, snippet_.size()};
    if (is_expression_) refuse_comma(all);
    if (is_expression_ && is_mask()) refuse_assignment(all);
    for (std::size_t i = 0; i < snippet_.size(); ++i) {
      check_word(i);
      check_bracket(i);
      check_power(i);
    }
    for (const Range level : snippet_.levels()) check_joined(level);
  }

 private:
  bool is_mask() const { return snippet_.kind() == SnippetKind::mask_mod; }

  void check_word(std::size_t i) const {
    const std::string_view word = snippet_.text(i);
    if (word == "return") check_return({i + 1, end_of_statement(i)});
    if (word == "if" && i > 0 && snippet_.ends_value(i - 1) && !ends_head(i - 1) &&
        snippet_.text(i - 1) != "}") {
      fail_conditional(i);
    }
    const bool has_condition = word == "if" || word == "while" || word == "for";
    const std::size_t open = snippet_.text(i + 1) == "constexpr" ? i + 2 : i + 1;
    if (!has_condition || snippet_.text(open) != "(") return;
    const Range condition =
        word == "for" ? middle_of(snippet_.inside(open)) : last_part_of(snippet_.inside(open));
    refuse_assignment(condition);
    if (!is_declaration(condition)) refuse_comma(condition);
    const std::size_t behind = snippet_.next(open);
    if (word == "if" && snippet_.text(behind) == ";") {
      snippet_.fail(behind, "the ; ends this if, which then guards nothing", "delete the ;");
    }
  }

  void check_return(Range value) const {
    refuse_comma(value);
    if (is_mask()) refuse_assignment(value);
  }

  // x[i, j], (a, b), (x = 1) && y
  void check_bracket(std::size_t i) const {
    if (!snippet_.opens(i)) return;
    if (snippet_.text(i) == "[" && !opens_lambda(snippet_.tokens(), i)) check_index(i);
    if (snippet_.text(i) != "(" || !is_group(i)) return;
    // if (int i = 0, j = 1; i < j)
    const Range value = last_part_of(snippet_.inside(i));
    if (!is_declaration(value)) refuse_comma(value);
    const std::size_t close = snippet_.partner(i);
    const std::string_view after = snippet_.text(close + 1);
    const bool is_condition = joins_conditions(after) || after == "?" ||
                              joins_conditions(snippet_.before(i)) || negates(snippet_.before(i)) ||
                              is_whole_condition(i);
    if (is_condition) refuse_assignment(snippet_.inside(i));
  }

  // The inner brackets of `if ((x = 1))`.
  bool is_whole_condition(std::size_t i) const {
    const std::string_view head = i >= 2 && snippet_.text(i - 1) == "(" ? snippet_.text(i - 2) : "";
    return (head == "if" || head == "while") && snippet_.partner(i - 1) == snippet_.partner(i) + 1;
  }

  bool is_group(std::size_t i) const {
    if (i == 0) return true;
    const SnippetToken& token = snippet_.tokens()[i - 1];
    if (is_identifier(token)) return is_before_a_group(token.text) && token.text != "constexpr";
    return !snippet_.ends_value(i - 1) && !(snippet_.closes(i - 1) && token.text == ">");
  }

  void check_index(std::size_t i) const {
    const Range inside = snippet_.inside(i);
    const std::size_t comma = find_in(inside, ",");
    if (comma == inside.end) return;
    const std::string name = snippet_.excerpt(snippet_.operand_before(i));
    snippet_.fail(comma, "a comma in x[i, j] drops what stands before it",
                  fmt::format("a buffer of more dimensions is read as {}({})", name,
                              snippet_.excerpt(inside)));
  }

  void check_power(std::size_t i) const {
    const bool is_power = i > 0 && snippet_.text(i) == "*" && snippet_.text(i + 1) == "*" &&
                          snippet_.tokens()[i + 1].offset == snippet_.tokens()[i].offset + 1 &&
                          snippet_.ends_value(i - 1);
    if (!is_power) return;
    snippet_.fail(i, "** is no operator of C++",
                  fmt::format("write pow({}, {})", snippet_.excerpt(snippet_.operand_before(i)),
                              snippet_.excerpt(snippet_.operand_from(i + 2))));
  }

  // a && b = c
  void check_joined(Range level) const {
    std::size_t joint = level.end;
    for (std::size_t i = level.begin; i < level.end; i = snippet_.next(i)) {
      const std::string_view text = snippet_.text(i);
      if (text == ";" || text == "{" || text == "," || text == "?") joint = level.end;
      if (text == "=" && joint == level.end) joint = level.end + 1;  // x = a && b
      if (joins_conditions(text) && joint == level.end && !declares_reference(i)) joint = i;
      if (text == "=" && joint < level.end) fail_assignment({joint + 1, level.end}, i);
      if (text == ";" || text == "{" || text == ",") joint = level.end;
    }
  }

  // auto&& r = x
  bool declares_reference(std::size_t i) const {
    constexpr std::array<std::string_view, 4> kValues = {"true", "false", "nullptr", "this"};
    const std::string_view before = snippet_.before(i);
    return is_cpp_keyword(before) && !is_one_of(before, kValues);
  }

  void refuse_comma(Range range) const {
    const std::size_t comma = find_in(range, ",");
    if (comma == range.end) return;
    snippet_.fail(comma, "a comma here drops the value that stands before it",
                  is_mask() ? "write && between two conditions that must both hold"
                            : "write one expression; arguments follow a function's name");
  }

  void refuse_assignment(Range range) const {
    const std::size_t assignment = find_in(range, "=");
    if (assignment == range.end || is_declaration(range)) return;
    fail_assignment(range, assignment);
  }

  [[noreturn]] void fail_assignment(Range range, std::size_t assignment) const {
    std::size_t begin = range.begin;
    std::size_t end = range.end;
    for (std::size_t i = range.begin; i < range.end; i = snippet_.next(i)) {
      const std::string_view text = snippet_.text(i);
      const bool is_boundary = joins_conditions(text) || text == "?" || text == ";";
      if (is_boundary && i < assignment) begin = i + 1;
      if (is_boundary && i > assignment && i < end) end = i;
    }
    snippet_.fail(assignment, "= gives a value; a condition compares with ==",
                  fmt::format("write {} == {}", snippet_.excerpt({begin, assignment}),
                              snippet_.excerpt({assignment + 1, end})));
  }

  // y if c else x
  [[noreturn]] void fail_conditional(std::size_t i) const {
    std::size_t begin = i;
    while (begin > 0 && !begins_here(begin)) {
      begin = snippet_.closes(begin - 1) ? snippet_.partner(begin - 1) : begin - 1;
    }
    std::string hint = "write c ? x : y";
    const std::size_t other = find_in({i, snippet_.size()}, "else");
    if (other < snippet_.size()) {
      std::size_t end = other;
      while (end < snippet_.size() && snippet_.text(end) != ";" && !snippet_.closes(end)) {
        end = snippet_.next(end);
      }
      hint = fmt::format("write {} ? {} : {}", snippet_.excerpt({i + 1, other}),
                         snippet_.excerpt({begin, i}), snippet_.excerpt({other + 1, end}));
    }
    snippet_.fail(i, "x if c else y is Python's; C++ writes c ? x : y", std::move(hint));
  }

  bool begins_here(std::size_t i) const {
    const std::string_view before = snippet_.text(i - 1);
    return snippet_.opens(i - 1) || before == ";" || before == "=" || before == "," ||
           before == "return";
  }

  // Whether token i is the ) of `if (...)`, `for (...)` and so on.
  bool ends_head(std::size_t i) const {
    if (snippet_.text(i) != ")") return false;
    constexpr std::array<std::string_view, 5> kStatements = {"if", "for", "while", "switch",
                                                             "constexpr"};
    return is_one_of(snippet_.before(snippet_.partner(i)), kStatements);
  }

  // `const int x = 3`: a type and a name before the first =.
  bool is_declaration(Range range) const {
    const std::size_t assignment = find_in(range, "=");
    if (assignment == range.end || assignment < range.begin + 2) return false;
    const SnippetToken& name = snippet_.tokens()[assignment - 1];
    const SnippetToken& type = snippet_.tokens()[assignment - 2];
    const bool is_typed = is_identifier(type) && !is_before_a_group(type.text);
    const bool is_reference = type.text == "&" || type.text == "*" || type.text == "&&";
    return is_identifier(name) &&
           (is_typed || (is_reference && is_cpp_keyword(snippet_.text(range.begin))));
  }

  std::size_t end_of_statement(std::size_t i) const {
    while (i < snippet_.size() && snippet_.text(i) != ";" && !snippet_.closes(i)) {
      i = snippet_.next(i);
    }
    return i;
  }

  std::size_t find_in(Range range, std::string_view text) const {
    for (std::size_t i = range.begin; i < range.end; i = snippet_.next(i)) {
      if (snippet_.text(i) == text) return i;
    }
    return range.end;
  }

  Range last_part_of(Range range) const {
    for (std::size_t i = range.begin; i < range.end; i = snippet_.next(i)) {
      if (snippet_.text(i) == ";") range.begin = i + 1;
    }
    return range;
  }

  // b of `for (a; b; c)`; empty for `for (x : y)`.
  Range middle_of(Range range) const {
    const std::size_t first = find_in(range, ";");
    if (first == range.end) return {range.end, range.end};
    return {first + 1, find_in({first + 1, range.end}, ";")};
  }

  const SnippetBrackets& snippet_;
  bool is_expression_;
};

}  // namespace

void refuse_misread_operators(const SnippetBrackets& snippet, bool is_expression) {
  Operators(snippet, is_expression).run();
}

}  // namespace tilewright
