#include "cli/random_lengths.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/numbers.hpp"

namespace tilewright::cli {
namespace {

constexpr std::string_view kRandom = "random:";
constexpr const char* kPackedForm =
    "write random:HQ,HKV/Q:KV,Q:KV,... (query heads, kv heads, then the rows of q and of k of each "
    "sequence), for example random:8,2/1:1328,5:18,129:463 or random:32,8/8192:8192x64; paged: "
    "random:8,2/1:1328,5:18/page=16";
constexpr std::int64_t kMaxSequences = std::int64_t{1} << 24;

[[noreturn]] void refuse(const std::string& inputs, const std::string& why) {
  throw Error(ErrorCode::usage, fmt::format("--inputs \"{}\" {}", inputs, why), kPackedForm);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts = {""};
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// B,HQ,HKV,SQ,SKV after a prefix. `size_of`: what stands before the name of a size that is wrong.
Shape dense_shape(const std::string& text, std::string_view prefix, std::string_view option,
                  std::string_view size_of) {
  const std::vector<std::string> parts = split_at_commas(text.substr(prefix.size()));
  const std::string form = fmt::format(
      "write {0}B,HQ,HKV,SQ,SKV (batch, query heads, kv heads, q and kv length), for example "
      "{0}1,8,2,1024,1024",
      prefix);
  if (parts.size() != 5) {
    throw Error(
        ErrorCode::usage,
        fmt::format("{} \"{}\" has {}, but needs 5", option, text, counted(parts.size(), "size")),
        form);
  }
  // The shape checks the range of whole numbers itself.
  const auto size = [&](std::size_t i) {
    constexpr std::array<std::string_view, 5> kNames = {"B", "HQ", "HKV", "SQ", "SKV"};
    if (const std::optional<std::int64_t> number = whole_number(parts[i])) return *number;
    return static_cast<std::int64_t>(
        parse_whole(parts[i], fmt::format("{} {}", size_of, kNames[i]), kAnySize, form));
  };
  return {.batch = size(0),
          .num_q_heads = size(1),
          .num_kv_heads = size(2),
          .q_len = size(3),
          .kv_len = size(4)};
}

// A number of a packed call's text.
std::int64_t size_in(const std::string& text, std::string_view what, WholeRange range) {
  return static_cast<std::int64_t>(
      parse_whole(text, fmt::format("--inputs random: {}", what), range, kPackedForm));
}

// "5:18", "8192:8192x64"
void add_sequences(const std::string& inputs, const std::string& text,
                   verify::PackedLengths& lengths) {
  const std::vector<std::string> repeated = split(text, 'x');
  const std::vector<std::string> pair = split(repeated.front(), ':');
  if (pair.size() != 2 || repeated.size() > 2) {
    refuse(inputs, fmt::format("has \"{}\" where a sequence's Q:KV stands", text));
  }
  const verify::PackedLengths::Sequence sequence{size_in(pair[0], "Q", kAnyIndex),
                                                 size_in(pair[1], "KV", kAnyIndex)};
  const std::int64_t count =
      repeated.size() == 2
          ? size_in(repeated[1], "xN", {1, static_cast<std::uint64_t>(kMaxSequences)})
          : 1;
  const auto all = static_cast<std::int64_t>(lengths.sequences.size()) + count;
  if (all > kMaxSequences) {
    refuse(inputs, fmt::format("has {} sequences; it may have {}", all, kMaxSequences));
  }
  lengths.sequences.insert(lengths.sequences.end(), static_cast<std::size_t>(count), sequence);
}

// "ctx=128", "page=16", "flat"
void take_word(const std::string& inputs, const std::string& text, verify::PackedLengths& lengths) {
  using Table = verify::PageOptions::Table;
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const bool has_number = equals != std::string::npos;
  const auto number = [&](WholeRange range) {
    return size_in(text.substr(equals + 1), "/" + name, range);
  };
  if (name == "ctx" && has_number) {
    lengths.kv_offset = number(kAnyIndex);
  } else if (name == "page" && has_number) {
    lengths.pages.page_size = number(kAnySize);
  } else if (name == "pages" && has_number) {
    lengths.pages.pages = number(kAnySize);
  } else if ((name == "static" || name == "flat") && !has_number) {
    if (lengths.pages.table != Table::rows) refuse(inputs, "has both /static and /flat");
    lengths.pages.table = name == "flat" ? Table::flat : Table::none;
  } else {
    refuse(inputs, fmt::format("has an unknown part \"/{}\"; /ctx=N, /page=N, /pages=N, /static "
                               "and /flat are known",
                               text));
  }
}

// Words that are about pages need their size.
void require_page_size(const std::string& inputs, const verify::PageOptions& pages) {
  const bool has_others = pages.pages > 0 || pages.table != verify::PageOptions::Table::rows;
  if (pages.page_size == 0 && has_others) {
    refuse(inputs, "has /pages=N, /static or /flat, and no /page=N");
  }
}

}  // namespace

bool is_random(const std::string& inputs) {
  return inputs.starts_with(kRandom);
}

Shape parse_random_dense(const std::string& inputs) {
  if (inputs.find('/') != std::string::npos ||
      inputs.find(':', kRandom.size()) != std::string::npos) {
    throw Error(ErrorCode::usage,
                fmt::format("--inputs \"{}\" gives lengths of sequences, but the spec's layout is "
                            "not \"packed\"",
                            inputs),
                "write random:B,HQ,HKV,SQ,SKV, for example random:1,8,2,1024,1024; or "
                "\"layout\": \"packed\" in the spec");
  }
  return dense_shape(inputs, kRandom, "--inputs", "--inputs random:");
}

Shape parse_sizes(const std::string& text, std::string_view option) {
  return dense_shape(text, "", option, option);
}

verify::PackedLengths parse_random_packed(const Spec& spec, const std::string& inputs) {
  const std::vector<std::string> parts = split(inputs.substr(kRandom.size()), '/');
  if (parts.size() < 2) {
    refuse(inputs, "has no lengths of sequences, which a packed spec needs");
  }
  const std::vector<std::string> heads = split(parts[0], ',');
  if (heads.size() != 2) {
    refuse(inputs, fmt::format("has \"{}\" where HQ,HKV stands", parts[0]));
  }
  verify::PackedLengths lengths;
  lengths.has_new_rows = spec.kv_new;
  lengths.num_q_heads = size_in(heads[0], "HQ", kAnySize);
  lengths.num_kv_heads = size_in(heads[1], "HKV", kAnySize);
  for (const std::string& text : split(parts[1], ',')) add_sequences(inputs, text, lengths);
  std::vector<std::string> words(parts.begin() + 2, parts.end());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    for (std::size_t other = 0; other < i; ++other) {
      if (words[other].substr(0, words[other].find('=')) == name) {
        refuse(inputs, fmt::format("has /{} twice", name));
      }
    }
    take_word(inputs, words[i], lengths);
  }
  require_page_size(inputs, lengths.pages);
  const bool has_pages = lengths.pages.page_size > 0;
  if (has_pages == spec.is_paged()) return lengths;
  throw Error(ErrorCode::usage,
              fmt::format("--inputs \"{}\" has {}/page=N, but the spec's kv_layout is \"{}\"",
                          inputs, has_pages ? "" : "no ", to_string(spec.key_value_layout())),
              has_pages ? R"(leave it out, or write "kv_layout": "paged" in the spec)"
                        : "write /page=16 at the end: pages of 16 rows");
}

std::string random_text(const verify::PackedLengths& lengths) {
  std::string text = fmt::format("{}{},{}/", kRandom, lengths.num_q_heads, lengths.num_kv_heads);
  const auto& all = lengths.sequences;
  for (auto first = all.begin(); first != all.end();) {
    const auto next = std::find_if(first, all.end(), [&](const auto& other) {
      return other.q_len != first->q_len || other.kv_len != first->kv_len;
    });
    if (first != all.begin()) text += ',';
    text += fmt::format("{}:{}", first->q_len, first->kv_len);
    if (next - first > 1) text += fmt::format("x{}", next - first);
    first = next;
  }
  const verify::PageOptions& pages = lengths.pages;
  if (pages.page_size != 0) text += fmt::format("/page={}", pages.page_size);
  if (pages.pages != 0) text += fmt::format("/pages={}", pages.pages);
  if (pages.table == verify::PageOptions::Table::flat) text += "/flat";
  if (pages.table == verify::PageOptions::Table::none) text += "/static";
  if (lengths.kv_offset != 0) text += fmt::format("/ctx={}", lengths.kv_offset);
  return text;
}

}  // namespace tilewright::cli
