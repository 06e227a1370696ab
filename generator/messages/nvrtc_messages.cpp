#include <algorithm>
#include <optional>

#include "generator/messages/compiler_messages.hpp"
#include "generator/messages/text_scan.hpp"

// NVRTC writes
//
//   kernel.cu(7): error: identifier "kv_idxx" is undefined
//         q_idx >= kv_idxx && b == 3
//                  ^
//             detected during instantiation of "T h(T) [with T=int]" at line 13
//
// with two spaces in place of the source line's indentation.

namespace tilewright {
namespace {

constexpr std::string_view kBlanks = " \t";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "error #20-D: text", "catastrophic error: text", "warning #177-D: text"
bool take_error(std::string_view& text) {
  for (const std::string_view word : {"catastrophic error", "error"}) {
    if (!text.starts_with(word)) continue;
    const std::size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return false;
    text.remove_prefix(colon + 2);
    return true;
  }
  return false;
}

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(kBlanks), line.size()));
}

class LogReader {
 public:
  LogReader(std::string_view log, std::string_view source, std::string_view source_name)
      : log_(lines_of(log)), source_(lines_of(source)), source_name_(source_name) {}

  std::vector<CompilerMessage> run() && {
    for (at_ = 0; at_ < log_.size(); ++at_) {
      if (std::optional<CompilerMessage> message = message_at(at_)) {
        message->column = column_below(message->line);
        const auto causes = instantiations_below();
        messages_.insert(messages_.end(), causes.begin(), causes.end());
        messages_.push_back(*std::move(message));
      }
    }
    return std::move(messages_);
  }

 private:
  std::optional<CompilerMessage> message_at(std::size_t index) const {
    std::string_view line = log_[index];
    if (!take_prefix(line, source_name_) || !take_prefix(line, "(")) return std::nullopt;
    const std::optional<int> number = take_number(line);
    if (!number || !take_prefix(line, "): ")) return std::nullopt;
    CompilerMessage message{.is_error = false, .line = *number, .column = 0, .text = {}};
    message.is_error = take_error(line);
    message.text = std::string(line);
    return message;
  }

  // From the two lines after a message: the source's and the caret's.
  int column_below(int line) const {
    if (at_ + 2 >= log_.size() || line > static_cast<int>(source_.size())) return 0;
    const std::string_view shown = without_indent(log_[at_ + 1]);
    const std::string_view caret_line = log_[at_ + 2];
    const std::size_t caret = caret_line.find('^');
    const std::string_view source = source_[static_cast<std::size_t>(line) - 1];
    const std::size_t shown_indent = log_[at_ + 1].size() - shown.size();
    const std::size_t indent = source.size() - without_indent(source).size();
    const bool is_caret = caret != std::string_view::npos &&
                          caret_line.find_first_not_of(kBlanks) == caret && caret >= shown_indent;
    if (!is_caret || shown.empty() || !source.substr(indent).starts_with(shown)) return 0;
    return static_cast<int>(indent + caret - shown_indent) + 1;
  }

  std::vector<CompilerMessage> instantiations_below() const {
    std::vector<CompilerMessage> causes;
    for (std::size_t i = at_ + 1; i < log_.size() && !message_at(i); ++i) {
      constexpr std::string_view kAtLine = "at line ";
      const std::size_t found = log_[i].rfind(kAtLine);
      if (found == std::string_view::npos || log_[i].find("instantiation of") > found) continue;
      std::string_view rest = log_[i].substr(found + kAtLine.size());
      if (const std::optional<int> number = take_number(rest)) {
        causes.push_back(
            {.is_error = false, .line = *number, .column = 0, .text = "required from here"});
      }
    }
    return causes;
  }

  std::vector<std::string_view> log_;
  std::vector<std::string_view> source_;
  std::string_view source_name_;
  std::vector<CompilerMessage> messages_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<CompilerMessage> parse_nvrtc_messages(std::string_view log, std::string_view source,
                                                  std::string_view source_name) {
  return LogReader(log, source, source_name).run();
}

}  // namespace tilewright
