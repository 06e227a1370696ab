#include "runtime/io/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runtime/io/safetensors_json.hpp"

namespace tilewright {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

struct FormatDType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype;
};

// All of the format's dtypes (safetensors 0.8), as sizes are checked of tensors that are skipped
// too.
constexpr std::array kFormatDTypes = {
    FormatDType{"F32", 32, DType::f32},          FormatDType{"F16", 16, DType::f16},
    FormatDType{"BF16", 16, DType::bf16},        FormatDType{"I32", 32, DType::i32},
    FormatDType{"I64", 64, DType::i64},          FormatDType{"U8", 8, DType::u8},
    FormatDType{"BOOL", 8, DType::boolean},      FormatDType{"F64", 64, DType::f64},
    FormatDType{"I16", 16, DType::i16},          FormatDType{"I8", 8, DType::i8},
    FormatDType{"U64", 64, std::nullopt},        FormatDType{"U32", 32, DType::u32},
    FormatDType{"U16", 16, DType::u16},          FormatDType{"C64", 64, std::nullopt},
    FormatDType{"F8_E4M3", 8, DType::f8e4m3},    FormatDType{"F8_E5M2", 8, DType::f8e5m2},
    FormatDType{"F8_E4M3FNUZ", 8, std::nullopt}, FormatDType{"F8_E5M2FNUZ", 8, std::nullopt},
    FormatDType{"F8_E8M0", 8, std::nullopt},     FormatDType{"F6_E2M3", 6, std::nullopt},
    FormatDType{"F6_E3M2", 6, std::nullopt},     FormatDType{"F4", 4, std::nullopt}};

std::optional<std::uint64_t> element_bits(std::string_view name) {
  for (const FormatDType& known : kFormatDTypes) {
    if (known.name == name) return known.bits;
  }
  return std::nullopt;
}

/// Reads one header; holds what its messages need.
class Parser {
 public:
  Parser(std::uint64_t data_bytes, const std::filesystem::path& path)
      : data_bytes_(data_bytes), path_(path) {}

  SafetensorsHeader parse(std::string_view text) const {
    SafetensorsHeader header = parse_safetensors_json(
        text, [&](const std::string& why, const std::string& hint) { fail(why, hint); });
    for (const SafetensorsEntry& entry : header.entries) {
      require_range(entry);
      require_size(entry);
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

  void require_range(const SafetensorsEntry& entry) const {
    if (entry.begin > entry.end) {
      fail(fmt::format("tensor {} ends before it begins: data_offsets [{}, {}]",
                       quoted_name(entry.name), entry.begin, entry.end));
    }
    if (entry.end > data_bytes_) {
      fail(fmt::format("tensor {} ends at byte {}, but there are only {} bytes of data",
                       quoted_name(entry.name), entry.end, data_bytes_),
           "the file is truncated; copy or write it again");
    }
  }

  void require_size(const SafetensorsEntry& entry) const {
    const std::optional<std::uint64_t> element = element_bits(entry.dtype_name);
    if (!element) {
      fail(fmt::format("tensor {} has the dtype {}, which the format does not have",
                       quoted_name(entry.name), quoted_name(entry.dtype_name)),
           "the format's dtypes are F32, F16, BF16, I32, I64, U8, BOOL and others");
    }
    // In the order of the text, as the format's reader: after a 0 nothing overflows.
    std::uint64_t bits = 1;
    bool overflow = false;
    for (const std::uint64_t extent : entry.shape) {
      overflow = overflow || __builtin_mul_overflow(bits, extent, &bits);
    }
    overflow = overflow || __builtin_mul_overflow(bits, *element, &bits);
    const std::uint64_t given = entry.end - entry.begin;
    if (!overflow && bits % 8 == 0 && bits / 8 == given) return;
    fail(fmt::format("tensor {}, {} [{}], should have {} bytes, but data_offsets [{}, {}] give {}",
                     quoted_name(entry.name), entry.dtype_name, shape_text(entry.shape),
                     overflow        ? "more than 2^61"
                     : bits % 8 == 0 ? std::to_string(bits / 8)
                                     : fmt::format("{} and a part", bits / 8),
                     entry.begin, entry.end, given));
  }

  static std::string shape_text(std::span<const std::uint64_t> shape) {
    constexpr std::size_t kShown = 8;
    return fmt::format("{}{}", fmt::join(shape.first(std::min(shape.size(), kShown)), ", "),
                       shape.size() > kShown ? ", ..." : "");
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
            quoted_name(entry.name), entry.begin, covered));
      }
      if (entry.begin > covered) {
        fail(fmt::format("bytes {} to {} of the data, before tensor {}, belong to no tensor",
                         covered, entry.begin, quoted_name(entry.name)));
      }
      covered = entry.end;
    }
    if (covered < data_bytes_) {
      fail(
          fmt::format("{} bytes after the last tensor belong to no tensor", data_bytes_ - covered));
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
