#include "generator/spec/json_position.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/spec/number_range.hpp"

namespace tilewright {
namespace {

constexpr std::size_t kMaxSpecKeys = 10'000;

[[noreturn]] void fail(std::string_view file, std::string_view text, std::size_t at,
                       std::string message, std::string hint) {
  throw Error({.code = ErrorCode::spec,
               .message = std::move(message),
               .place = place_at(file, text, at),
               .notes = {},
               .hint = std::move(hint)});
}

// Past the closing quote of the string that starts at `at`, or the text's end.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

std::size_t end_of_number(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
}

void check_number(std::string_view file, std::string_view text, std::size_t at, std::size_t end) {
  const std::string_view number = text.substr(at, end - at);
  const FloatRange range = f64_range(number.substr(number.starts_with('-') ? 1 : 0));
  if (range == FloatRange::holds) return;
  fail(file, text, at,
       range == FloatRange::overflows
           ? fmt::format("no double can hold the number {}", printable(number))
           : fmt::format("a double cannot hold the number {} and would make it 0",
                         printable(number)),
       "write a number from about 1e-300 to 1e300");
}

// Walks over a text that is known to be JSON.
class Locator {
 public:
  Locator(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  JsonNode run() {
    JsonNode root;
    read_value(root);
    return root;
  }

 private:
  void read_value(JsonNode& node) {
    skip_spaces();
    node.value_offset = at_;
    switch (peek()) {
      case '{':
        return read_children(node, '}');
      case '[':
        return read_children(node, ']');
      case '"':
        at_ = end_of_string(text_, at_);
        return;
      default:
        at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    }
  }

  using FirstOffsets = std::unordered_map<std::string, std::size_t>;

  void read_children(JsonNode& node, char closing) {
    FirstOffsets first_offsets;
    ++at_;
    for (skip_spaces(); peek() != closing && peek() != '\0'; skip_spaces()) {
      if (peek() == ',') {
        ++at_;
        continue;
      }
      JsonNode child;
      if (closing == '}') {
        read_key(child, first_offsets);
      } else {
        child.step = fmt::format("[{}]", node.children.size());
        child.key_offset = at_;
      }
      read_value(child);
      node.children.push_back(std::move(child));
    }
    ++at_;
  }

  void read_key(JsonNode& child, FirstOffsets& first_offsets) {
    child.key_offset = at_;
    const std::size_t end = end_of_string(text_, at_);
    child.step = text_.substr(at_ + 1, end - at_ - 2);
    if (child.step.find('\\') != std::string::npos) {
      fail(file_, text_, at_, fmt::format("the key \"{}\" holds an escape", printable(child.step)),
           "no key of a spec needs one");
    }
    const auto [first, is_new] = first_offsets.emplace(child.step, at_);
    if (!is_new) {
      const SourceLocation place = place_at(file_, text_, first->second);
      fail(file_, text_, at_,
           fmt::format("the key \"{}\" occurs twice, first in line {}, column {}",
                       printable(child.step), place.line, place.column),
           "delete one of the two");
    }
    at_ = end;
    skip_spaces();
    ++at_;  // the colon
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  std::string_view text_;
  std::string_view file_;
  std::size_t at_ = 0;
};

}  // namespace

void check_json_text(std::string_view text, std::string_view file_name) {
  if (text.size() > kMaxSpecBytes) {
    fail(file_name, text, 0, fmt::format("a spec must not be longer than {} bytes", kMaxSpecBytes),
         "buffers' contents belong into the inputs, not into the spec");
  }
  if (const auto at = first_malformed_utf8(text)) {
    fail(file_name, text, *at, "a byte that is not part of well-formed UTF-8",
         "save the spec as UTF-8");
  }
  int depth = 0;
  std::vector<std::size_t> keys(1);  // of each object or list that is open
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\0') fail(file_name, text, at, "a NUL character", "delete it");
    if ((c == '{' || c == '[') && ++depth > kMaxSpecNesting) {
      fail(file_name, text, at, fmt::format("nested more than {} deep", kMaxSpecNesting),
           "a spec needs 4 levels");
    }
    if (c == '{' || c == '[') keys.push_back(0);
    if ((c == '}' || c == ']') && keys.size() > 1) keys.pop_back();
    if (c == '}' || c == ']') --depth;
    // An object is searched for each key that it gets, so its keys are bounded.
    if (c == ':' && ++keys.back() > kMaxSpecKeys) {
      fail(file_name, text, at, fmt::format("an object with more than {} keys", kMaxSpecKeys),
           "a spec has a few buffers and scalars");
    }
    if (c == '"') {
      at = end_of_string(text, at);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const std::size_t end = end_of_number(text, at);
      check_number(file_name, text, at, end);
      at = end;
    } else {
      ++at;
    }
  }
}

JsonNode locate_json(std::string_view text, std::string_view file_name) {
  return Locator(text, file_name).run();
}

std::size_t offset_of(const JsonNode& root, const SpecPath& path, bool of_key) {
  const JsonNode* node = &root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto child = std::find_if(node->children.begin(), node->children.end(),
                                    [&](const JsonNode& c) { return c.step == path[i]; });
    if (child == node->children.end()) return node->value_offset;
    node = &*child;
  }
  return of_key ? node->key_offset : node->value_offset;
}

}  // namespace tilewright
