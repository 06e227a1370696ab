#include "tests/mutants/operators.hpp"

#include <array>
#include <map>
#include <optional>
#include <regex>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cache/sha256.hpp"
#include "tests/mutants/code_lines.hpp"

namespace tilewright::mutants {
namespace {

// A change within one line.
struct Edit {
  Operator kind;
  std::size_t column;
  std::size_t length;
  std::string inserted;
};

struct Replacement {
  std::string_view from;
  std::string_view to;
};

constexpr std::array<Replacement, 6> kComparisons = {{{" < ", " <= "},
                                                      {" <= ", " < "},
                                                      {" > ", " >= "},
                                                      {" >= ", " > "},
                                                      {" == ", " != "},
                                                      {" != ", " == "}}};
constexpr std::array<Replacement, 2> kLogical = {{{" && ", " || "}, {" || ", " && "}}};
constexpr std::array<Replacement, 2> kSigns = {{{" + ", " - "}, {" - ", " + "}}};

// Whole words; the first that differ at a place.
constexpr std::array<Replacement, 24> kIndices = {{{"b, h", "h, b"},
                                                   {"i, j", "j, i"},
                                                   {"[i][j]", "[j][i]"},
                                                   {"[r][w]", "[w][r]"},
                                                   {"h_kv", "h"},
                                                   {"q_idx, kv_idx", "kv_idx, q_idx"},
                                                   {"first_q_idx", "first_kv_idx"},
                                                   {"first_kv_idx", "first_q_idx"},
                                                   {"q_offset", "kv_offset"},
                                                   {"kv_offset", "q_offset"},
                                                   {"q_len", "kv_len"},
                                                   {"kv_len", "q_len"},
                                                   {"kHeadDim", "kValueDim"},
                                                   {"kValueDim", "kHeadDim"},
                                                   {"kBlockQ", "kBlockKv"},
                                                   {"kBlockKv", "kBlockQ"},
                                                   {"k_stride", "v_stride"},
                                                   {"batch_stride", "head_stride"},
                                                   {"head_stride", "row_stride"},
                                                   {"row_stride", "head_stride"},
                                                   {"full_row_offsets", "row_offsets"},
                                                   {"k_full", "v_full"},
                                                   {"k_empty", "v_empty"},
                                                   {"[0]", "[1]"}}};
constexpr std::array<Replacement, 8> kExtrema = {{{"min", "max"},
                                                  {"max", "min"},
                                                  {"fminf", "fmaxf"},
                                                  {"fmaxf", "fminf"},
                                                  {"least", "greatest"},
                                                  {"greatest", "least"},
                                                  {"lo", "hi"},
                                                  {"hi", "lo"}}};

// Every place of `from` outside quotes.
template <typename Accept>
void replace_each(const CodeLine& line, const Replacement& change, Operator kind,
                  const Accept& accept, std::vector<Edit>& edits) {
  for (std::size_t at = line.code.find(change.from); at != std::string::npos;
       at = line.code.find(change.from, at + 1)) {
    if (line.is_quoted(at) || !accept(at)) continue;
    edits.push_back({kind, at, change.from.size(), std::string(change.to)});
  }
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool stands_alone(const std::string& code, std::size_t at, std::size_t length) {
  const bool joined_before =
      at > 0 && is_word_character(code[at - 1]) && is_word_character(code[at]);
  const bool joined_behind = at + length < code.size() && is_word_character(code[at + length]) &&
                             is_word_character(code[at + length - 1]);
  return !joined_before && !joined_behind;
}

// Parameters and variables are not renamed where they are declared, nor in `other.b, h`.
bool is_declared(const std::string& code, std::size_t at) {
  static const std::regex type(R"((^|[^\w])(int|float|long|unsigned|auto|bool|&|\*|>)[&*]?\s*$)");
  return std::regex_search(code.substr(0, at), type);
}

void operators_and_ones(const CodeLine& line, std::vector<Edit>& edits) {
  const auto always = [](std::size_t) { return true; };
  for (const Replacement& change : kComparisons) {
    replace_each(line, change, Operator::comparison, always, edits);
  }
  for (const Replacement& change : kLogical) {
    replace_each(line, change, Operator::logical, always, edits);
  }
  static const std::regex one(R"( [+-] 1(?![\w.]))");
  const auto is_one = [&](std::size_t at) {
    return std::regex_search(line.code.begin() + static_cast<std::ptrdiff_t>(at), line.code.end(),
                             one, std::regex_constants::match_continuous);
  };
  for (const Replacement& change : kSigns) {
    replace_each(
        line, change, Operator::sign, [&](std::size_t at) { return !is_one(at); }, edits);
    for (std::size_t at = line.code.find(change.from); at != std::string::npos;
         at = line.code.find(change.from, at + 1)) {
      if (!line.is_quoted(at) && is_one(at)) edits.push_back({Operator::off_by_one, at, 4, ""});
    }
  }
  static const std::regex zero(R"((int|long|unsigned) (\w+) = 0;)");
  std::smatch match;
  if (std::regex_search(line.code, match, zero)) {
    const auto at = static_cast<std::size_t>(match.position(0) + match.length(0)) - 2;
    edits.push_back({Operator::off_by_one, at, 1, "1"});
  }
}

void factors(const CodeLine& line, std::vector<Edit>& edits) {
  static const std::regex factor(R"( \* (alpha|inverse|scale|to_log2|kLog2E|kLn2)\b(\[\w+\])?)");
  for (std::sregex_iterator i(line.code.begin(), line.code.end(), factor), end; i != end; ++i) {
    edits.push_back({Operator::dropped_rescale, static_cast<std::size_t>(i->position()),
                     static_cast<std::size_t>(i->length()), ""});
  }
}

void indices(const CodeLine& line, std::vector<Edit>& edits) {
  const auto place = [&](const Replacement& change) {
    return [&line, length = change.from.size()](std::size_t at) {
      return stands_alone(line.code, at, length) && !is_declared(line.code, at) &&
             (line.code[at] == '[' || at == 0 || line.code[at - 1] != '.' || length > 4);
    };
  };
  for (const Replacement& change : kIndices) {
    replace_each(line, change, Operator::swapped_index, place(change), edits);
  }
  for (const Replacement& change : kExtrema) {
    replace_each(
        line, change, Operator::swapped_extremum,
        [&](std::size_t at) {
          return stands_alone(line.code, at, change.from.size()) && !is_declared(line.code, at);
        },
        edits);
  }
}

bool synchronises(const std::string& code) {
  static const std::regex barrier(
      R"(sync|wait|arrive|barrier|fence|commit_|asm volatile|WarpgroupOrder::)");
  return std::regex_search(code, barrier);
}

// What a dropped statement is called.
Operator kind_of_statement(const std::string& code) {
  static const std::regex rescale(R"(rescale\(|\*= alpha)");
  if (synchronises(code)) return Operator::dropped_barrier;
  return std::regex_search(code, rescale) ? Operator::dropped_rescale : Operator::dropped_statement;
}

std::optional<Edit> dropped(const CodeLine& line) {
  static const std::regex call_or_assignment(
      R"(^(\+\+|--|\*)?(?!return\b|using\b|break\b|continue\b|static_assert\b|else\b|default\b|goto\b)[A-Za-z_][\w:]*(<[^;=]*>)?((\.|->)\w+|\[[^\]]*\])*(\(.*\)| ?(=|\+=|-=|\*=|/=|\|=|&=|<<=|>>=) .*|\+\+|--)?;$)");
  static const std::regex guarded(R"(^if \(.*\) [^{]*;$)");
  static const std::regex assembly(R"(^asm volatile\("[^"].*\);$)");
  if (!line.begins_statement || line.is_before_else) return std::nullopt;
  const bool matches = std::regex_match(line.trimmed, call_or_assignment) ||
                       std::regex_match(line.trimmed, guarded) ||
                       std::regex_match(line.trimmed, assembly);
  if (!matches) return std::nullopt;
  return Edit{kind_of_statement(line.trimmed), line.indent, line.trimmed.size(), ";"};
}

std::vector<Edit> edits_of(const CodeLine& line) {
  std::vector<Edit> edits;
  operators_and_ones(line, edits);
  factors(line, edits);
  indices(line, edits);
  if (const auto edit = dropped(line)) edits.push_back(*edit);
  return edits;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

struct Move {
  std::string_view to;
  std::string_view from;
};

// Where files were when all mutants were last tried. A mutant keeps its ID where its file moves:
// the same ones are sampled, and what docs/mutants.md says of them stays true.
constexpr Move kMoves[] = {{"cpu/kernels/", "cpu/"},
                           {"cuda/kernels/portable_forward.", "cuda/forward."},
                           {"cuda/kernels/hopper_forward.", "cuda/hopper."},
                           {"cuda/kernels/", "cuda/"},
                           {"cuda/attention/q_tile.", "cuda/forward/place."},
                           {"cuda/attention/planned_q_tiles.", "cuda/forward/planned_places."},
                           {"cuda/attention/uniform_q_tiles.", "cuda/forward/uniform_places."},
                           {"cuda/attention/", "cuda/forward/"},
                           {"cuda/portable/listed_tiles.", "cuda/forward/kv_tiles."},
                           {"cuda/portable/", "cuda/forward/"},
                           {"cuda/hopper/listed_tiles.", "cuda/hopper/work."},
                           {"cuda/store/row_ends.", "cuda/forward/store."},
                           {"cuda/tile/kv_tile.", "cuda/forward/kv_tile."},
                           {"cuda/tile/", "cuda/device/"},
                           {"cuda/ptx/", "cuda/device/"},
                           {"cuda/snippet/", "cuda/device/"},
                           {"cuda/language.", "cuda/device/language."},
                           {"cuda/builtins.", "cuda/device/language."},
                           {"cuda/constants.", "cuda/device/constants."},
                           {"cuda/element.", "cuda/device/element."},
                           {"cuda/elementary.", "cuda/device/elementary."},
                           {"cuda/float16.", "cuda/device/float16."},
                           {"cuda/backward/listed_rows.", "cuda/backward/listed_places."},
                           {"cuda/backward/planned_rows.", "cuda/backward/planned_places."},
                           {"cuda/backward/element_inputs.", "cuda/backward/scene."},
                           {"cuda/hopper/backward/own_columns.", "cuda/hopper/backward/place."},
                           {"snippet/loads_in_bounds.", "snippet/reads_inside."},
                           {"interpretations/", "readings/"}};

std::string path_of_ids(const std::string& file) {
  for (const Move& move : kMoves) {
    if (file.starts_with(move.to)) {
      return std::string(move.from) + file.substr(move.to.size());
    }
  }
  return file;
}

}  // namespace

std::string_view to_string(Operator kind) {
  switch (kind) {
    case Operator::comparison:
      return "comparison";
    case Operator::logical:
      return "logical";
    case Operator::off_by_one:
      return "off by one";
    case Operator::sign:
      return "sign";
    case Operator::dropped_statement:
      return "dropped statement";
    case Operator::dropped_barrier:
      return "dropped barrier";
    case Operator::dropped_rescale:
      return "dropped rescale";
    case Operator::swapped_index:
      return "swapped index";
    case Operator::swapped_extremum:
      return "swapped extremum";
  }
  return "";
}

std::string Mutation::apply(std::string_view text) const {
  if (text.substr(position, removed.size()) != removed) {
    throw Error(ErrorCode::internal, fmt::format("{} is not the text that was mutated", file));
  }
  std::string result(text);
  return result.replace(position, removed.size(), inserted);
}

bool Mutation::may_race() const {
  return synchronises(before);
}

std::string Mutation::id() const {
  const std::string identity = fmt::format("{}\n{}\n{}\n{}\n{}", path_of_ids(file), to_string(kind),
                                           before, after, occurrence);
  return cache::sha256(identity).hex().substr(0, 8);
}

std::string Mutation::describe() const {
  return fmt::format("{} {}:{} {}: `{}` -> `{}`", id(), file, line, to_string(kind), before, after);
}

std::vector<Mutation> mutations_of(const std::string& file, std::string_view text) {
  std::vector<Mutation> mutations;
  std::map<std::pair<std::string, std::string>, int> seen;
  for (const CodeLine& line : code_lines(text)) {
    for (const Edit& edit : edits_of(line)) {
      std::string after = line.whole;
      after.replace(edit.column, edit.length, edit.inserted);
      Mutation mutation{.file = file,
                        .kind = edit.kind,
                        .position = line.position + edit.column,
                        .removed = line.whole.substr(edit.column, edit.length),
                        .inserted = edit.inserted,
                        .line = line.number,
                        .before = trimmed(line.whole),
                        .after = trimmed(after)};
      mutation.occurrence = seen[{mutation.before, mutation.after}]++;
      mutations.push_back(std::move(mutation));
    }
  }
  return mutations;
}

}  // namespace tilewright::mutants
