#include "runtime/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/nearest_name.hpp"

namespace tilewright {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

struct FormatDType {
  std::string_view name;
  std::uint64_t bytes;
  std::optional<DType> dtype;
};

// All of the format's dtypes of whole bytes, so that sizes are checked of tensors that are skipped
// too.
constexpr std::array kFormatDTypes = {
    FormatDType{"F32", 4, DType::f32},      FormatDType{"F16", 2, DType::f16},
    FormatDType{"BF16", 2, DType::bf16},    FormatDType{"I32", 4, DType::i32},
    FormatDType{"I64", 8, DType::i64},      FormatDType{"U8", 1, DType::u8},
    FormatDType{"BOOL", 1, DType::boolean}, FormatDType{"F64", 8, std::nullopt},
    FormatDType{"I16", 2, std::nullopt},    FormatDType{"I8", 1, std::nullopt},
    FormatDType{"U64", 8, std::nullopt},    FormatDType{"U32", 4, std::nullopt},
    FormatDType{"U16", 2, std::nullopt},    FormatDType{"F8_E4M3", 1, std::nullopt},
    FormatDType{"F8_E5M2", 1, std::nullopt}};

std::optional<std::uint64_t> element_bytes(std::string_view name) {
  for (const FormatDType& known : kFormatDTypes) {
    if (known.name == name) return known.bytes;
  }
  return std::nullopt;
}

// A name as JSON has it: whatever it holds, the message stays one line.
std::string quoted(const std::string& text) {
  constexpr std::size_t kShown = 200;
  return json(text.substr(0, kShown)).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Reads one header; holds what its messages need.
class Parser {
 public:
  Parser(std::uint64_t data_bytes, const std::filesystem::path& path)
      : data_bytes_(data_bytes), path_(path) {}

  SafetensorsHeader parse(std::string_view text) const {
    const json root = parse_json(text);
    if (!root.is_object()) fail("its header is no JSON object");
    SafetensorsHeader header;
    for (const auto& [name, value] : root.items()) {
      if (name == kMetadata) {
        header.metadata = parse_metadata(value);
      } else {
        header.entries.push_back(parse_entry(name, value));
      }
    }
    require_cover(header.entries);
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& why, std::string hint = {}) const {
    if (hint.empty()) hint = "the file is damaged, or is no safetensors file; write it again";
    throw Error(ErrorCode::file,
                fmt::format("\"{}\" is no valid safetensors file: {}", path_.native(), why),
                std::move(hint));
  }

  // Nothing in a header lies deeper than the numbers of a shape, and a key that comes twice would
  // silently hide one of its values.
  json parse_json(std::string_view text) const {
    std::vector<std::set<std::string>> open_objects;
    const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
      switch (event) {
        case json::parse_event_t::object_start:
          if (depth > 1) fail("its header is nested too deeply");
          open_objects.emplace_back();
          break;
        case json::parse_event_t::array_start:
          if (depth > 2) fail("its header is nested too deeply");
          break;
        case json::parse_event_t::object_end:
          open_objects.pop_back();
          break;
        case json::parse_event_t::key: {
          const auto& key = parsed.get_ref<const std::string&>();
          if (!open_objects.back().insert(key).second) {
            fail(fmt::format("its header has the key {} twice", quoted(key)));
          }
          break;
        }
        default:
          break;
      }
      return true;
    };
    try {
      return json::parse(text, check);
    } catch (const json::parse_error& error) {
      fail(fmt::format("its header is no JSON (byte {} of {})", error.byte, text.size()));
    } catch (const json::out_of_range&) {
      fail("its header holds a number too large for any file");
    }
  }

  std::map<std::string, std::string> parse_metadata(const json& value) const {
    if (!value.is_object()) fail(fmt::format("{} is no JSON object", kMetadata));
    std::map<std::string, std::string> metadata;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) {
        fail(fmt::format("{} has a value that is no string: {}", kMetadata, quoted(key)));
      }
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  SafetensorsEntry parse_entry(const std::string& name, const json& value) const {
    if (!value.is_object()) fail(fmt::format("tensor {} is no JSON object", quoted(name)));
    SafetensorsEntry entry{.name = name};
    const json& dtype = member(name, value, "dtype");
    if (!dtype.is_string())
      fail(fmt::format("tensor {} has a dtype that is no string", quoted(name)));
    entry.dtype_name = dtype.get<std::string>();
    for (std::uint64_t extent : numbers(name, value, "shape")) {
      entry.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const std::vector<std::uint64_t> offsets = numbers(name, value, "data_offsets");
    if (offsets.size() != 2) {
      fail(fmt::format("tensor {} has {} data_offsets instead of 2", quoted(name), offsets.size()));
    }
    entry.begin = offsets[0];
    entry.end = offsets[1];
    require_range(entry);
    require_size(entry);
    return entry;
  }

  const json& member(const std::string& name, const json& value, const std::string& key) const {
    const auto found = value.find(key);
    if (found != value.end()) return *found;
    std::vector<std::string> present;
    for (const auto& item : value.items()) present.push_back(item.key());
    const std::optional<std::string> nearest = nearest_name(key, present);
    fail(fmt::format("tensor {} has no {}", quoted(name), quoted(key)),
         nearest ? fmt::format("it has {} instead", quoted(*nearest)) : "");
  }

  std::vector<std::uint64_t> numbers(const std::string& name, const json& value,
                                     const std::string& key) const {
    const json& list = member(name, value, key);
    if (!list.is_array()) fail(fmt::format("tensor {}: {} is no list", quoted(name), key));
    std::vector<std::uint64_t> result;
    for (const json& item : list) {
      constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!item.is_number_unsigned() || item.get<std::uint64_t>() > kMax) {
        fail(fmt::format("tensor {}: {} holds {}, which is no whole number from 0 to 2^63 - 1",
                         quoted(name), key, shortened(item)));
      }
      result.push_back(item.get<std::uint64_t>());
    }
    return result;
  }

  static std::string shortened(const json& item) {
    return item.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40);
  }

  void require_range(const SafetensorsEntry& entry) const {
    if (entry.begin > entry.end) {
      fail(fmt::format("tensor {} ends before it begins: data_offsets [{}, {}]", quoted(entry.name),
                       entry.begin, entry.end));
    }
    if (entry.end > data_bytes_) {
      fail(fmt::format("tensor {} ends at byte {}, but there are only {} bytes of data",
                       quoted(entry.name), entry.end, data_bytes_),
           "the file is truncated; copy or write it again");
    }
  }

  void require_size(const SafetensorsEntry& entry) const {
    const std::optional<std::uint64_t> element = element_bytes(entry.dtype_name);
    if (!element) return;  // a dtype of the future; whoever asks for the tensor is told
    // As Tensor counts: an empty tensor may not have huge other extents either.
    auto product = static_cast<std::int64_t>(*element);
    bool overflow = false, empty = false;
    for (std::int64_t extent : entry.shape) {
      empty = empty || extent == 0;
      overflow = overflow || (extent > 0 && __builtin_mul_overflow(product, extent, &product));
    }
    const std::uint64_t bytes = empty ? 0 : static_cast<std::uint64_t>(product);
    if (overflow || bytes != entry.end - entry.begin) {
      fail(
          fmt::format("tensor {}, {} [{}], should have {} bytes, but data_offsets [{}, {}] give {}",
                      quoted(entry.name), entry.dtype_name, fmt::join(entry.shape, ", "),
                      overflow ? "more than 2^63" : std::to_string(bytes), entry.begin, entry.end,
                      entry.end - entry.begin));
    }
  }

  // Sorts by place and requires that no byte belongs to two tensors or to none.
  void require_cover(std::vector<SafetensorsEntry>& entries) const {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
    });
    std::uint64_t covered = 0;
    for (const SafetensorsEntry& entry : entries) {
      if (entry.begin < covered) {
        fail(fmt::format(
            "tensor {} begins at byte {}, inside the tensor before it, which ends at {}",
            quoted(entry.name), entry.begin, covered));
      }
      if (entry.begin > covered) {
        fail(fmt::format("bytes {} to {} of the data, before tensor {}, belong to no tensor",
                         covered, entry.begin, quoted(entry.name)));
      }
      covered = entry.end;
    }
    if (covered < data_bytes_) {
      fail(fmt::format("{} bytes behind the last tensor belong to no tensor",
                       data_bytes_ - covered));
    }
  }

  std::uint64_t data_bytes_;
  const std::filesystem::path& path_;
};

void require_usable_name(const std::string& name) {
  if (name.empty() || name == kMetadata) {
    throw Error(ErrorCode::usage, fmt::format("a tensor cannot be called \"{}\"", name),
                "give it another name");
  }
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::filesystem::path& path) {
  return Parser(data_bytes, path).parse(text);
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root[kMetadata] = header.metadata;
  for (const SafetensorsEntry& entry : header.entries) {
    require_usable_name(entry.name);
    root[entry.name] = {{"dtype", entry.dtype_name},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const json::type_error&) {
    throw Error(ErrorCode::usage, "a name or text for a safetensors file is no valid UTF-8",
                "names of tensors and metadata must be UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::string_view safetensors_name(DType dtype) {
  for (const FormatDType& known : kFormatDTypes) {
    if (known.dtype == dtype) return known.name;
  }
  return "";
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const FormatDType& known : kFormatDTypes) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

}  // namespace tilewright
