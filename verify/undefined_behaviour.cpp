#include "verify/undefined_behaviour.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/float_environment.hpp"
#include "base/nearest_name.hpp"
#include "generator/messages/text_location.hpp"
#include "generator/render/source_map.hpp"
#include "generator/snippet/snippet.hpp"
#include "verify/buffer_ends.hpp"
#include "verify/parts.hpp"
#include "verify/scores.hpp"

namespace tilewright::verify {
namespace {

using abi::Finding;

SnippetKind snippet_of(const Finding& finding) {
  return static_cast<SnippetKind>(finding.snippet);
}

const std::string& text_of(const Spec& spec, const Finding& finding) {
  return snippet_text(spec, snippet_of(finding));
}

SourceLocation last_line(SnippetKind kind, std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  const auto line = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  return place_at_line(to_string(kind), text, line, 0);
}

// What happens outside of the snippets happens in a function that one of them called, or, where a
// return is missing, in the function that it is the body of.
SourceLocation place_of(const Spec& spec, const KernelSource& source, const Finding& finding) {
  const SnippetKind kind = snippet_of(finding);
  const std::string& text = text_of(spec, finding);
  if (finding.offset >= 0) {
    return place_at(to_string(kind), text, static_cast<std::size_t>(finding.offset));
  }
  const Origin origin = source.map.origin_of(std::max(finding.line, 1), finding.column);
  if (origin.in_snippet) {
    const int column = finding.column == 0 ? 0 : origin.column;
    return place_at_line(to_string(kind), text, origin.line, column);
  }
  if (finding.kind == Finding::missing_return) return last_line(kind, text);
  return {.file = std::string(to_string(kind))};
}

// The buffer that was read; where the checked interpretation knows a line only, the buffers on it.
std::vector<std::string> buffers_at(const Spec& spec, const Finding& finding,
                                    const SourceLocation& place) {
  std::vector<std::string> names;
  for (const SnippetToken& token : tokenize(text_of(spec, finding), snippet_of(finding))) {
    const std::string name(token.text);
    if (finding.offset >= 0) {
      if (token.offset == static_cast<std::size_t>(finding.offset)) return {name};
      continue;
    }
    const auto buffer = spec.buffers.find(name);
    if (token.line != place.line || buffer == spec.buffers.end()) continue;
    if (buffer->second.shape.empty()) continue;  // it has no index
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// An array of the snippet's own has no extent in the finding.
bool is_own_array(const Finding& finding) {
  return finding.operand[1] == 0;
}

// What no snippet can do harm with, though its author may not have meant it.
bool is_clamped(const Finding& finding) {
  if (finding.kind == Finding::dimension_out_of_range) return true;
  const bool is_index = finding.kind == Finding::index_out_of_bounds ||
                        finding.kind == Finding::index_not_a_number ||
                        finding.kind == Finding::real_index_out_of_bounds;
  return is_index && !is_own_array(finding) && finding.trusted == 0;
}

bool is_fatal(const Finding& finding) {
  switch (finding.kind) {
    case Finding::division_by_zero:  // traps, for dropped elements of a visited tile too
    case Finding::division_overflow:
    case Finding::missing_return:
    case Finding::endless_loop:
      return true;
    case Finding::index_out_of_bounds:
    case Finding::index_not_a_number:
    case Finding::real_index_out_of_bounds:
      return is_own_array(finding) || finding.trusted != 0;
    default:
      return false;
  }
}

// As what is printed.
std::string index_of(const Finding& finding) {
  if (finding.kind == Finding::index_not_a_number) return "NaN";
  if (finding.kind == Finding::index_out_of_bounds) return fmt::format("{}", finding.operand[0]);
  return fmt::format("{:.9g}", std::bit_cast<double>(finding.operand[0]));
}

std::string describe_index(const Spec& spec, const Finding& finding, const SourceLocation& place) {
  if (is_own_array(finding)) {
    return fmt::format("index {} is outside an array of the snippet", finding.operand[0]);
  }
  const std::vector<std::string> names = buffers_at(spec, finding, place);
  const bool has_dimensions = names.size() == 1 && spec.buffers.at(names[0]).shape.size() > 1;
  const std::string of_dimension =
      has_dimensions ? fmt::format(" of dimension {}", finding.dimension) : "";
  const std::string of_buffer = names.empty() ? "" : of_dimension + " of buffer " + one_of(names);
  const bool is_nan = finding.kind == Finding::index_not_a_number;
  const bool passes_both_ends =
      !is_nan && finding.least < 0 && finding.greatest >= finding.operand[1];
  return fmt::format(
      "index {}{} is outside its extent {}{}{}", index_of(finding), of_buffer, finding.operand[1],
      passes_both_ends
          ? fmt::format(", as are others from {}", range_text(finding.least, finding.greatest))
          : "",
      finding.trusted != 0 ? ""
      : is_nan             ? "; element 0 is read"
                           : "; it is clamped");
}

std::string describe_dimension(const Spec& spec, const Finding& finding,
                               const SourceLocation& place) {
  const std::vector<std::string> names = buffers_at(spec, finding, place);
  return fmt::format("size({}) of a buffer{} that has {}; it is clamped", finding.operand[0],
                     names.empty() ? "" : ", " + one_of(names) + ",",
                     counted(finding.operand[1], "dimension"));
}

std::string what_happened(const Spec& spec, const Finding& finding, const SourceLocation& place) {
  switch (finding.kind) {
    case Finding::index_out_of_bounds:
    case Finding::index_not_a_number:
    case Finding::real_index_out_of_bounds:
      return describe_index(spec, finding, place);
    case Finding::dimension_out_of_range:
      return describe_dimension(spec, finding, place);
    case Finding::division_by_zero:
      return "an integer is divided by zero";
    case Finding::shift_out_of_range:
      return fmt::format("an integer is shifted by {}", finding.operand[0]);
    case Finding::signed_overflow:
      return "an integer overflows";
    case Finding::division_overflow:
      return "an integer overflows, the least one divided by -1";
    case Finding::float_to_int_overflow:
      return "a number that no int can hold is converted to int";
    case Finding::missing_return:
      return "the end is reached without a return";
    case Finding::endless_loop:
      return fmt::format("the loops do not end within {} rounds", finding.operand[0]);
    default:
      return fmt::format("undefined operation {}", finding.kind);
  }
}

std::string hint_for(const Finding& finding) {
  switch (finding.kind) {
    case Finding::index_out_of_bounds:
      return is_own_array(finding)
                 ? "keep the index inside, for example values[clamp(i, 0, 3)] for an array of four"
                 : "keep the index inside, for example x[clamp(i, 0, x.size(0) - 1)], or take "
                   "\"bounds\": \"trusted\" out of the spec, and it is clamped";
    case Finding::index_not_a_number:
      return "guard what the index is made of: log2 and sqrt of a negative number, 0.0 / 0 and "
             "INFINITY - INFINITY give NaN";
    case Finding::real_index_out_of_bounds:
      return "keep the index inside, for example x[clamp(i, 0, x.size(0) - 1)]";
    case Finding::dimension_out_of_range:
      return "count a buffer's dimensions from 0";
    case Finding::division_by_zero:
      return "guard it with a condition, for example x == 0 ? 0 : y / x";
    case Finding::division_overflow:
      return "guard it with a condition, for example x == -1 ? 0 : y / x";
    case Finding::missing_return:
      return "end the snippet with a return that no condition guards";
    case Finding::endless_loop:
      return "bound each loop by a number, for example for (int i = 0; i < 64 && x > 1; ++i)";
    default:
      return {};
  }
}

// "b 0, h 1, q_idx 3": of what the snippet sees.
std::string element_of(const Finding& finding) {
  const SnippetKind kind = snippet_of(finding);
  const std::string h = fmt::format("{} {}", sees(kind, "h") ? "h" : "h_kv", finding.h);
  const std::string b = sees(kind, "b") ? fmt::format("b {}, ", finding.b) : "";
  const auto index = [&](std::string_view name, int value) {
    return sees(kind, name) ? fmt::format(", {} {}", name, value) : "";
  };
  return b + h + index("q_idx", finding.q_idx) + index("kv_idx", finding.kv_idx);
}

std::optional<OutsideIndices> outside_indices(const Spec& spec, const Finding& finding,
                                              const SourceLocation& place) {
  const bool is_index = finding.kind == Finding::index_out_of_bounds ||
                        finding.kind == Finding::index_not_a_number ||
                        finding.kind == Finding::real_index_out_of_bounds;
  if (!is_index || is_own_array(finding)) return std::nullopt;
  const std::vector<std::string> names = buffers_at(spec, finding, place);
  if (names.size() != 1 || !spec.buffers.contains(names[0])) return std::nullopt;
  return OutsideIndices{.buffer = names[0],
                        .dimension = finding.dimension,
                        .extent = finding.operand[1],
                        .least = finding.least,
                        .greatest = finding.greatest,
                        .is_nan = finding.kind == Finding::index_not_a_number};
}

std::optional<ShortDimension> short_dimension(const Spec& spec, const OutsideIndices& outside) {
  if (outside.is_nan) return std::nullopt;
  const std::optional<std::int64_t> needed = needed_extent(spec, outside);
  if (!needed) return std::nullopt;
  return ShortDimension{outside.buffer, outside.dimension, *needed};
}

UndefinedOperation describe(const Spec& spec, const KernelSource& source, const Finding& finding) {
  const SourceLocation place = place_of(spec, source, finding);
  const std::optional<OutsideIndices> outside = outside_indices(spec, finding, place);
  return {.message = fmt::format("{} (at {}{})", what_happened(spec, finding, place),
                                 element_of(finding), finding.kept ? "" : ", which mask_mod drops"),
          .place = place,
          .hint = hint_for(finding),
          .fatal = is_fatal(finding),
          .endless = finding.kind == Finding::endless_loop,
          .kept = finding.kept != 0,
          .clamped = is_clamped(finding),
          .outside = outside,
          .too_short = outside ? short_dimension(spec, *outside) : std::nullopt};
}

// Two findings of one place: what a kept element shows, and the indices of both.
Finding merged(const Finding& known, const Finding& other) {
  Finding both = other.kept && !known.kept ? other : known;
  both.least = std::min(known.least, other.least);
  both.greatest = std::max(known.greatest, other.greatest);
  return both;
}

// One finding for each kind, place and dimension, a kept element before a dropped one, in order of
// place.
std::vector<UndefinedOperation> collect(const Spec& spec,
                                        const CheckedInterpretation& interpretation) {
  std::map<std::array<int, 6>, Finding> first;
  for (const Finding& finding : interpretation.take_findings().first) {
    const std::array place = {finding.snippet, finding.line,      finding.column,
                              finding.offset,  finding.dimension, finding.kind};
    const auto [entry, is_new] = first.emplace(place, finding);
    if (!is_new) entry->second = merged(entry->second, finding);
  }
  std::vector<UndefinedOperation> operations;
  for (const auto& [key, finding] : first) {
    operations.push_back(describe(spec, interpretation.kernel().source, finding));
  }
  return operations;
}

// Numbers below `rows`, evenly spread, the first and the last among them.
std::vector<std::int64_t> sample_rows(std::int64_t rows, std::int64_t wanted) {
  std::vector<std::int64_t> sample;
  const std::int64_t count =
      std::clamp<std::int64_t>(wanted, std::min<std::int64_t>(2, rows), rows);
  for (std::int64_t i = 0; i < count; ++i) {
    sample.push_back(count == 1 ? 0 : i * (rows - 1) / (count - 1));
  }
  return sample;
}

// The scales, the sink and dropout as the checked interpretation has them: what reads a part's
// tensors evaluates each of them.
ScaleValues checked_scales(const Spec& spec, const CheckedInterpretation& interpretation) {
  if (!spec.has_other_snippets()) return {};
  return [&interpretation](SnippetKind kind, const abi::SnippetArguments& arguments, std::int64_t b,
                           std::int64_t h, std::int64_t first, std::int64_t count, double* values) {
    std::vector<float> checked(static_cast<std::size_t>(count));
    interpretation.scale(kind, arguments, b, h, first, count, checked.data());
    std::copy(checked.begin(), checked.end(), values);
  };
}

// Runs the snippets over a share of a part's rows. Returns how many elements that are.
std::int64_t read_part(const Parts& parts, const Parts::Piece& piece,
                       const CheckedInterpretation& interpretation, double share) {
  const DenseProblem dense = parts.read(piece);
  const Scores scores(dense.q, dense.k, dense.scale);
  // A share that is a whole number of rows may come out a rounding error below it.
  constexpr double kRounding = 1e-6;
  const auto wanted =
      static_cast<std::int64_t>(share * static_cast<double>(piece.score_rows()) + kRounding);
  const std::vector<std::int64_t> sample = sample_rows(piece.score_rows(), wanted);
  std::vector<double> line(static_cast<std::size_t>(piece.columns()));
  std::vector<float> modified(line.size());
  std::vector<unsigned char> keep(line.size());
  for (const std::int64_t item : sample) {
    const std::int64_t row = item % dense.q.rows;
    const std::int64_t h = item / dense.q.rows % dense.q.heads;
    const std::int64_t b = item / dense.q.rows / dense.q.heads;
    scores.row(b, h, row, line);
    const std::vector<float> float_scores(line.begin(), line.end());
    interpretation.row(piece.arguments, piece.b + b, h, row, float_scores.data(), modified.data(),
                       keep.data());
  }
  return static_cast<std::int64_t>(sample.size()) * piece.columns();
}

}  // namespace

UndefinedOperations find_undefined_operations(const Spec& spec, const Problem& problem,
                                              const CheckedInterpretation& interpretation,
                                              std::int64_t max_elements) {
  const DefaultFloatEnvironment floats;
  const Parts parts(spec, problem, SnippetValues::Extents::logical,
                    checked_scales(spec, interpretation));
  UndefinedOperations found;
  for (const Parts::Piece& piece : parts.pieces()) {
    found.elements += piece.score_rows() * piece.columns();
  }
  // Each part is looked at by its share of all elements.
  const double share = static_cast<double>(max_elements) /
                       static_cast<double>(std::max(found.elements, max_elements));
  interpretation.take_findings();  // what an earlier call left
  for (const Parts::Piece& piece : parts.pieces()) {
    if (piece.score_rows() == 0) continue;
    if (piece.columns() == 0) {
      parts.read(piece);  // rows without columns have scales and a sink
      continue;
    }
    found.elements_checked += read_part(parts, piece, interpretation, share);
  }
  found.operations = collect(spec, interpretation);
  found.count = static_cast<std::int64_t>(found.operations.size());
  return found;
}

std::optional<Error> fatal_operation_error(const Spec& spec, const UndefinedOperations& found) {
  std::vector<UndefinedOperation> fatal;
  std::copy_if(found.operations.begin(), found.operations.end(), std::back_inserter(fatal),
               [](const UndefinedOperation& operation) { return operation.fatal; });
  if (fatal.empty()) return std::nullopt;
  std::map<std::string, BufferEnds> ends = find_buffer_ends(spec, fatal);
  // What of the operation's buffer could be changed, once for all reads of it.
  const auto advice_on = [&](const UndefinedOperation& operation) {
    if (!operation.outside) return std::string();
    const auto buffer = ends.extract(operation.outside->buffer);
    return buffer ? advice_on_extents(spec, buffer.key(), buffer.mapped()) : std::string();
  };
  const UndefinedOperation& first = fatal.front();
  Error::Details details = {
      .code = ErrorCode::snippet,
      .message = first.message,
      .place = first.place,
      .notes = {first.endless
                    ? "the kernel was not run: it might not end"
                    : "the kernel was not run: this could end the process or read foreign memory"},
      .hint = first.hint};
  if (const std::string advice = advice_on(first); !advice.empty()) {
    details.hint += (advice.starts_with("make") ? "; or " : "; ") + advice;
  }
  for (const UndefinedOperation& other : std::span(fatal).subspan(1)) {
    const std::string advice = advice_on(other);
    details.notes.push_back(fmt::format("so would {}: {}{}", to_string(other.place), other.message,
                                        advice.empty() ? "" : "; " + advice));
  }
  return Error(std::move(details));
}

}  // namespace tilewright::verify
