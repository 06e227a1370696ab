#include "generator/snippet/notes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"
#include "generator/snippet/brackets.hpp"
#include "generator/snippet/dropout_note.hpp"
#include "generator/snippet/names.hpp"
#include "generator/snippet/number.hpp"
#include "generator/snippet/operand_types.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

using Range = SnippetBrackets::Range;

bool is_bitwise(std::string_view text) {
  constexpr std::array<std::string_view, 6> kNotedOperators = {"&",      "|",     "^",
                                                               "bitand", "bitor", "xor"};
  return is_one_of(text, kNotedOperators);
}

bool is_and(std::string_view text) {
  return text == "&&" || text == "and";
}

class Reader {
 public:
  Reader(const Spec& spec, const SnippetBrackets& snippet)
      : snippet_(snippet), types_(spec, snippet) {}

  std::vector<SnippetNote> run() {
    for (std::size_t i = 0; i < snippet_.size(); ++i) {
      check_number(i);
      check_exclusive_or(i);
      check_negation(i);
      check_quotient(i);
      check_remainder(i);
    }
    for (const Range level : snippet_.levels()) {
      check_bits_beside_comparison(level);
      check_and_beside_or(level);
    }
    check_statements();
    check_score();
    check_probability();
    std::stable_sort(notes_.begin(), notes_.end(), [](const SnippetNote& a, const SnippetNote& b) {
      return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
    });
    return std::move(notes_);
  }

 private:
  void note(std::size_t i, std::string message, std::string hint) {
    const std::size_t offset = snippet_.tokens()[i].offset;
    notes_.push_back({.place = place_at(to_string(snippet_.kind()), snippet_.source(), offset),
                      .message = std::move(message),
                      .hint = std::move(hint)});
  }

  bool is_binary(std::size_t i) const { return i > 0 && snippet_.ends_value(i - 1); }

  bool is_whole_literal(Range range) const {
    return range.end == range.begin + 1 &&
           snippet_.tokens()[range.begin].kind == SnippetToken::Kind::number &&
           !read_number(snippet_.text(range.begin)).is_floating;
  }

  void check_number(std::size_t i) {
    const SnippetToken& token = snippet_.tokens()[i];
    const bool is_octal = token.kind == SnippetToken::Kind::number && token.text.size() > 1 &&
                          token.text.find_first_not_of("01234567'") == std::string_view::npos &&
                          token.text[0] == '0';
    if (!is_octal) return;
    note(i, fmt::format("{} begins with 0 and so is octal", token.text),
         "leave out the 0 for a decimal number");
  }

  void check_exclusive_or(std::size_t i) {
    if ((snippet_.text(i) != "^" && snippet_.text(i) != "xor") || !is_binary(i)) return;
    const Range left = snippet_.operand_before(i);
    const Range right = snippet_.operand_from(i + 1);
    const bool are_whole =
        types_.of(left) == OperandType::integer && types_.of(right) == OperandType::integer;
    if (!are_whole) return;
    note(i, "^ is exclusive or of bits",
         fmt::format("for a power write pow({}, {})", snippet_.excerpt(left),
                     snippet_.excerpt(right)));
  }

  // !a == b
  void check_negation(std::size_t i) {
    if ((snippet_.text(i) != "!" && snippet_.text(i) != "not") || i + 1 >= snippet_.size()) return;
    const Range operand = snippet_.operand_from(i + 1);
    const std::size_t comparison = operand.end;
    if (!is_comparison(snippet_.text(comparison)) || snippet_.opens(comparison)) return;
    const Range right = snippet_.operand_from(comparison + 1);
    if (types_.of(right) == OperandType::truth) return;
    const std::string compared = fmt::format("{} {} {}", snippet_.excerpt(operand),
                                             snippet_.text(comparison), snippet_.excerpt(right));
    note(i, fmt::format("C++ negates {} alone, before it compares", snippet_.excerpt(operand)),
         fmt::format("to negate the comparison write !({})", compared));
  }

  // 1 / 2, 1 / h
  void check_quotient(std::size_t i) {
    if (snippet_.text(i) != "/" || !is_binary(i)) return;
    const Range left = snippet_.operand_before(i);
    const Range right = snippet_.operand_from(i + 1);
    if (!is_whole_literal(left)) return;
    const std::string_view dividend = snippet_.text(left.begin);
    const bool is_one = dividend == "1" && types_.of(right) == OperandType::integer;
    const bool are_literals =
        is_whole_literal(right) && dividend.size() < 9 && snippet_.text(right.begin).size() < 9;
    if (!is_one && !are_literals) return;
    if (are_literals) {
      const long divisor = std::strtol(std::string(snippet_.text(right.begin)).c_str(), nullptr, 0);
      const long number = std::strtol(std::string(dividend).c_str(), nullptr, 0);
      if (divisor == 0 || number % divisor == 0) return;
    }
    note(i, "a quotient of whole numbers is cut to a whole number",
         fmt::format("for a fraction write {}.0f / {}", dividend, snippet_.excerpt(right)));
  }

  // -a % n, (a - b) % n, unless only whether it is 0 counts
  void check_remainder(std::size_t i) {
    if (snippet_.text(i) != "%" || !is_binary(i)) return;
    const Range left = snippet_.operand_before(i);
    const Range right = snippet_.operand_from(i + 1);
    const bool has_sign =
        left.begin > 0 && snippet_.text(left.begin - 1) == "-" && !is_binary(left.begin - 1);
    bool is_difference = snippet_.text(left.begin) == "(" && snippet_.next(left.begin) == left.end;
    if (is_difference) {
      const Range inside = snippet_.inside(left.begin);
      is_difference = false;
      for (std::size_t j = inside.begin; j < inside.end; j = snippet_.next(j)) {
        is_difference |= snippet_.text(j) == "-";
      }
    }
    const std::string_view after = snippet_.text(right.end);
    const bool asks_for_zero = (after == "==" || after == "!=" || after == "not_eq") &&
                               snippet_.text(right.end + 1) == "0";
    if ((!has_sign && !is_difference) || asks_for_zero) return;
    note(i, "the remainder of a negative number is negative or 0",
         fmt::format(
             "for one from 0 up write floor_mod({}{}, {})", has_sign ? "-" : "",
             is_difference ? snippet_.excerpt(snippet_.inside(left.begin)) : snippet_.excerpt(left),
             snippet_.excerpt(right)));
  }

  // a & b == c
  void check_bits_beside_comparison(Range level) {
    std::size_t begin = level.begin;
    std::size_t bits = level.end;        // the last bitwise operator
    std::size_t comparison = level.end;  // the first comparison after begin
    bool compares_before = false;        // a comparison before the operator
    const auto restart = [&](std::size_t at) {
      begin = at;
      bits = comparison = level.end;
      compares_before = false;
    };
    for (std::size_t i = level.begin; i < level.end; i = snippet_.next(i)) {
      const std::string_view text = snippet_.text(i);
      if (is_bitwise(text) && is_binary(i)) {
        compares_before = comparison != level.end;
        if (compares_before && bits == level.end) note_bits_behind(begin, comparison, i);
        bits = i;
        comparison = level.end;
        begin = i + 1;
      } else if (is_comparison(text) && !snippet_.opens(i)) {
        comparison = i;
        if (bits != level.end && !compares_before) {
          const Range left = snippet_.operand_before(bits);
          const std::string masked = snippet_.excerpt({left.begin, i});
          note(
              bits,
              fmt::format("C++ compares first: {} ({} {} {})",
                          snippet_.excerpt({left.begin, bits + 1}), snippet_.excerpt({bits + 1, i}),
                          text, snippet_.excerpt(snippet_.operand_from(i + 1))),
              fmt::format("to compare what {} gives write ({}) {} {}", snippet_.text(bits), masked,
                          text, snippet_.excerpt(snippet_.operand_from(i + 1))));
        }
      } else if (binds_weaker_than_comparison(text) || text == "return" || text == "{") {
        restart(i + 1);
      }
    }
  }

  // c == a & b, where b compares nothing
  void note_bits_behind(std::size_t begin, std::size_t comparison, std::size_t bits) {
    const Range right = snippet_.operand_from(bits + 1);
    if (is_comparison(snippet_.text(right.end))) return;
    if (types_.of(right) != OperandType::integer) return;
    note(bits,
         fmt::format("C++ compares first: ({}) {} {}", snippet_.excerpt({begin, bits}),
                     snippet_.text(bits), snippet_.excerpt(right)),
         fmt::format("to compare what {} gives write {} ({})", snippet_.text(bits),
                     snippet_.excerpt({begin, comparison + 1}),
                     snippet_.excerpt({comparison + 1, right.end})));
  }

  void check_and_beside_or(Range level) {
    std::size_t both = level.end;
    std::size_t either = level.end;
    for (std::size_t i = level.begin; i <= level.end;
         i = i < level.end ? snippet_.next(i) : i + 1) {
      const std::string_view text = i < level.end ? snippet_.text(i) : ";";
      if (is_and(text) && is_binary(i)) both = i;
      if (text == "||" || text == "or") either = i;
      const bool ends = text == ";" || text == "," || text == "?" || text == ":" || text == "{" ||
                        text == "=" || text == "return";
      if (!ends) continue;
      if (both != level.end && either != level.end) {
        note(either, "&& binds stronger than ||", "put the && into brackets to say so");
      }
      both = either = level.end;
    }
  }

  // score * 2; h == 1;
  void check_statements() {
    for (std::size_t i = 0; i < snippet_.size(); ++i) {
      if (snippet_.text(i) != ";") continue;
      std::size_t begin = i;
      bool changes = false;
      bool computes = false;
      while (begin > 0 && !snippet_.opens(begin - 1) && snippet_.text(begin - 1) != ";" &&
             snippet_.text(begin - 1) != "}") {
        const std::size_t last = begin - 1;
        begin = snippet_.closes(last) ? snippet_.partner(last) : last;
        const std::string_view text = snippet_.text(begin);
        changes |= is_assignment(text) || is_cpp_keyword(text) || text == "[" || text == "{";
        computes |= is_comparison(text) ||
                    ((text == "*" || text == "/" || text == "+" || text == "-" || text == "%") &&
                     is_binary(begin));
      }
      const bool is_in_head = begin > 0 && snippet_.text(begin - 1) == "(";
      const bool is_last_of_head =
          begin > 0 && snippet_.text(begin - 1) == ";" && is_inside_parentheses(i);
      if (changes || !computes || is_in_head || is_last_of_head || begin == i) continue;
      note(begin, "this statement computes a value and drops it",
           "assign it, return it, or delete it");
    }
  }

  bool is_inside_parentheses(std::size_t i) const {
    for (std::size_t j = i; j > 0; --j) {
      if (snippet_.closes(j - 1)) {
        j = snippet_.partner(j - 1) + 1;
      } else if (snippet_.opens(j - 1)) {
        return snippet_.text(j - 1) == "(";
      }
    }
    return false;
  }

  void check_score() {
    if (snippet_.kind() != SnippetKind::score_mod) return;
    const auto is_score = [](const SnippetToken& token) { return token.text == "score"; };
    const auto& tokens = snippet_.tokens();
    if (std::any_of(tokens.begin(), tokens.end(), is_score)) return;
    note(0, "score_mod does not read the score, so q and k do not matter",
         "write score + ... to change the score");
  }

  // Of dropout, where it is a number alone: "1.5", "-0.1f", "NAN".
  void check_probability() {
    if (snippet_.kind() != SnippetKind::dropout) return;
    const bool has_sign = snippet_.text(0) == "-";
    const std::size_t last = has_sign ? 1 : 0;
    if (snippet_.size() != last + 1) return;
    if (snippet_.text(last) == "NAN") {
      return note_probability(std::numeric_limits<double>::quiet_NaN(), "NaN");
    }
    if (snippet_.tokens()[last].kind != SnippetToken::Kind::number) return;
    const NumberLiteral literal = read_number(snippet_.text(last));
    const double value =
        literal.is_floating ? literal.floating : static_cast<double>(literal.integer);
    note_probability(has_sign ? -value : value, snippet_.excerpt({0, last + 1}));
  }

  void note_probability(double value, const std::string& text) {
    if (const auto found = probability_note(value, text)) note(0, found->message, found->hint);
  }

  const SnippetBrackets& snippet_;
  OperandTypes types_;
  std::vector<SnippetNote> notes_;
};

}  // namespace

std::string to_string(const SnippetNote& note) {
  return fmt::format("{}: {}; {}", to_string(note.place), note.message, note.hint);
}

std::vector<SnippetNote> snippet_notes(const Spec& spec) {
  std::vector<SnippetNote> notes;
  for (const SnippetKind kind : snippet_kinds()) {
    const std::string& text = snippet_text(spec, kind);
    if (text.empty()) continue;
    const SnippetBrackets snippet(kind, text, tokenize(text, kind));
    std::vector<SnippetNote> found = Reader(spec, snippet).run();
    notes.insert(notes.end(), found.begin(), found.end());
  }
  return notes;
}

}  // namespace tilewright
