#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "generator/render/engine/bound_arguments.hpp"
#include "generator/render/engine/filters.hpp"
#include "generator/render/engine/literals.hpp"
#include "generator/render/engine/operators.hpp"

namespace tilewright::jinja::filters {
namespace {

void check_size(std::size_t bytes, Budget& budget) {
  if (bytes > kMaxStringBytes) throw Complaint{"a string is longer than 16 MiB"};
  budget.charge_bytes(bytes);
}

}  // namespace

Value upper(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter upper", arguments, {});
  std::string text = text_of("upper", input);
  budget.charge_bytes(text.size());
  for (char& c : text) c = to_upper(c);
  return text;
}

Value lower(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter lower", arguments, {});
  std::string text = text_of("lower", input);
  budget.charge_bytes(text.size());
  for (char& c : text) c = to_lower(c);
  return text;
}

Value trim(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments bound("the filter trim", arguments, {"chars"});
  const std::string& text = text_of("trim", input);
  budget.charge_bytes(text.size());
  const std::string chars = bound.string_or(0, " \t\n\v\f\r");
  const std::size_t begin = text.find_first_not_of(chars);
  if (begin == std::string::npos) return std::string();
  return text.substr(begin, text.find_last_not_of(chars) + 1 - begin);
}

Value replace(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments bound("the filter replace", arguments, {"old", "new", "count"});
  const std::string& text = text_of("replace", input);
  const std::string& from = bound.string(0);
  const std::string& to = bound.string(1);
  std::int64_t left = bound.integer_or(2, -1);
  if (from.empty()) throw Complaint{"the filter replace cannot replace an empty string"};
  budget.charge_bytes(text.size());
  std::string result;
  std::size_t begin = 0;
  for (std::size_t found = text.find(from); found != std::string::npos && left != 0;
       found = text.find(from, begin), --left) {
    check_size(result.size() + (found - begin) + to.size(), budget);
    result.append(text, begin, found - begin).append(to);
    begin = found + from.size();
  }
  check_size(result.size() + text.size() - begin, budget);
  return result.append(text, begin);
}

Value indent(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments bound("the filter indent", arguments, {"width", "first", "blank"});
  const std::string& text = text_of("indent", input);
  const Value* const width = bound.find(0);
  std::string margin;
  if (width && width->as_string()) {
    margin = *width->as_string();
  } else {
    const std::int64_t spaces = bound.integer_or(0, 4);
    if (spaces < 0 || spaces > 1000) {
      throw Complaint{fmt::format("the filter indent takes 0 to 1000 spaces and got {}", spaces)};
    }
    margin.assign(static_cast<std::size_t>(spaces), ' ');
  }
  const bool blank = bound.boolean_or(2, false);
  std::string result = bound.boolean_or(1, false) ? margin : "";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] != '\n') continue;
    const bool line_is_blank = i + 1 == text.size() || text[i + 1] == '\n';
    if (blank || !line_is_blank) result += margin;
    check_size(result.size() - (result.size() - margin.size() - 1), budget);
    if (result.size() > kMaxStringBytes) check_size(result.size(), budget);
  }
  check_size(result.size(), budget);
  return result;
}

Value quote(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter quote", arguments, {});
  const std::string& text = text_of("quote", input);
  budget.charge_bytes(text.size());
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f || c == '?') {
      // Three octal digits end by themselves; hexadecimal ones would swallow a digit that follows.
      // '?' is among them because of trigraphs.
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  check_size(result.size(), budget);
  return result + '"';
}

Value string(const Value& input, const Arguments& arguments, Budget& budget) {
  const BoundArguments none("the filter string", arguments, {});
  std::string text = to_text(input);
  budget.charge_bytes(text.size());
  return text;
}

}  // namespace tilewright::jinja::filters
