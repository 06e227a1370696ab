#include "runtime/io/safetensors_json.hpp"

#include <array>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/nearest_name.hpp"

namespace tilewright {
namespace {

using nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kMostDepth = 127;  // as the format's reader
constexpr std::array<std::string_view, 3> kMembers = {"dtype", "shape", "data_offsets"};

/// Receives the events of nlohmann's parser, which keeps no tree.
class HeaderReader {
 public:
  using Fail = std::function<void(const std::string&, const std::string&)>;

  explicit HeaderReader(const Fail& fail) : fail_(fail) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() {
    if (level() == Level::header && key_ == kMetadataKey)
      return true;  // none, as the format allows
    return value("null");
  }
  bool boolean(bool) { return value("a truth value"); }
  bool number_integer(json::number_integer_t number) { return value(std::to_string(number)); }
  bool number_float(json::number_float_t, const std::string& text) { return value(text); }
  bool binary(json::binary_t&) { return value("binary data"); }

  bool number_unsigned(json::number_unsigned_t number) {
    if (level() != Level::numbers) return value(std::to_string(number));
    if (member_ == 1) {
      entry().shape.push_back(number);
    } else {
      if (offsets_ < 2) (offsets_ == 0 ? entry().begin : entry().end) = number;
      ++offsets_;
    }
    return true;
  }

  bool string(std::string& text) {
    if (level() == Level::metadata) {
      header_.metadata.emplace(key_, std::move(text));
    } else if (level() == Level::tensor && member_ == 0) {
      entry().dtype_name = std::move(text);
    } else {
      return value(quoted_name(text));
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (depth_ == 0) return open(Level::header);
    if (level() == Level::header && key_ == kMetadataKey) return open(Level::metadata);
    if (level() == Level::header) return start_tensor();
    value("an object");
    return open(Level::skipped);
  }

  bool start_array(std::size_t) {
    const bool is_list = level() == Level::tensor && (member_ == 1 || member_ == 2);
    if (depth_ > 0 && is_list) return open(Level::numbers);
    value("a list");
    return open(Level::skipped);
  }

  bool key(std::string& name) {
    if (level() == Level::skipped) return true;
    if (level() == Level::tensor) {
      member_ = 0;
      while (member_ < kMembers.size() && kMembers[member_] != name) ++member_;
      if (member_ == kMembers.size()) return note_unknown(name);
      if (std::exchange(has_[member_], true)) refuse_twice(name);
      return true;
    }
    auto& keys = level() == Level::metadata ? metadata_keys_ : keys_;
    if (!keys.insert(name).second) refuse_twice(name);
    key_ = std::move(name);
    return true;
  }

  bool end_object() {
    if (level() == Level::tensor) finish_tensor();
    return close();
  }
  bool end_array() { return close(); }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) {
    if (dynamic_cast<const json::out_of_range*>(&error)) {
      fail_("its header holds a number too large for any file", "");
    }
    fail_(fmt::format("its header is no JSON (byte {})", position), "");
    return false;
  }

 private:
  enum class Level { header, metadata, tensor, numbers, skipped };

  // Above what is skipped, levels are at most three deep.
  Level level() const {
    return depth_ > known_.size() ? Level::skipped
           : depth_ == 0          ? Level::header
                                  : known_[depth_ - 1];
  }
  bool open(Level level) {
    if (++depth_ > kMostDepth) fail_("its header is nested too deeply", "");
    if (depth_ <= known_.size()) known_[depth_ - 1] = level;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  SafetensorsEntry& entry() { return header_.entries.back(); }
  std::string tensor() const { return "tensor " + quoted_name(header_.entries.back().name); }

  [[noreturn]] void refuse_twice(const std::string& name) {
    fail_(fmt::format("its header has the key {} twice", quoted_name(name)), "");
    std::abort();  // fail_ throws
  }

  bool start_tensor() {
    header_.entries.push_back({.name = key_});
    has_ = {};
    offsets_ = 0;
    unknown_.clear();
    return open(Level::tensor);
  }

  bool note_unknown(const std::string& name) {
    constexpr std::size_t kKept = 8;  // enough for a misspelt member
    if (unknown_.size() < kKept) unknown_.push_back(name.substr(0, 64));
    return true;
  }

  void finish_tensor() {
    for (std::size_t i = 0; i < kMembers.size(); ++i) {
      if (has_[i]) continue;
      const auto nearest = nearest_name(kMembers[i], unknown_);
      fail_(fmt::format("{} has no \"{}\"", tensor(), kMembers[i]),
            nearest ? fmt::format("it has {} instead", quoted_name(*nearest)) : "");
    }
    if (offsets_ != 2) {
      fail_(fmt::format("{} has {} data_offsets instead of 2", tensor(), offsets_), "");
    }
  }

  // A value where the format has none of its kind.
  bool value(const std::string& what) {
    if (depth_ == 0) fail_("its header is no JSON object", "");
    switch (level()) {
      case Level::header:
        fail_(fmt::format("{} is no JSON object",
                          key_ == kMetadataKey ? key_ : "tensor " + quoted_name(key_)),
              "");
        break;
      case Level::metadata:
        fail_(fmt::format("{} has a value that is no string: {}", kMetadataKey, quoted_name(key_)),
              "");
        break;
      case Level::tensor:
        if (member_ == 0) fail_(fmt::format("{} has a dtype that is no string", tensor()), "");
        if (member_ < kMembers.size()) {
          fail_(fmt::format("{}: {} is no list", tensor(), kMembers[member_]), "");
        }
        break;
      case Level::numbers:
        fail_(fmt::format("{}: {} holds {}, which is no whole number from 0 to 2^64 - 1", tensor(),
                          kMembers[member_], what.substr(0, 40)),
              "");
        break;
      case Level::skipped:
        break;
    }
    return true;
  }

  const Fail& fail_;
  SafetensorsHeader header_;
  std::array<Level, 3> known_{};
  std::size_t depth_ = 0;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> metadata_keys_;
  std::string key_;
  std::size_t member_ = 0;  // of kMembers; its size: another
  std::array<bool, kMembers.size()> has_{};
  std::size_t offsets_ = 0;
  std::vector<std::string> unknown_;
};

}  // namespace

SafetensorsHeader parse_safetensors_json(
    std::string_view text,
    const std::function<void(const std::string& why, const std::string& hint)>& fail) {
  if (!text.starts_with('{')) fail("its header is no JSON object: it does not begin with '{'", "");
  // nlohmann's parser takes a NUL for the end of its input.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(fmt::format("its header is no JSON: byte {} is NUL", nul), "");
  }
  HeaderReader reader(fail);
  json::sax_parse(text, &reader);
  return reader.take();
}

std::string quoted_name(const std::string& text) {
  constexpr std::size_t kShown = 200;
  return json(text.substr(0, kShown)).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tilewright
