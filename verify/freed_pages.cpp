#include "verify/freed_pages.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "verify/parts.hpp"

namespace tilewright::verify {
namespace {

// Columns of a sequence whose pages are freed.
std::vector<std::int64_t> freed_columns(const SequenceRows& rows, bool has_new_rows) {
  std::vector<std::int64_t> columns;
  if (rows.pages.table == nullptr) return columns;
  const std::int64_t page_size = rows.pages.page_size.value;
  const std::int64_t of_pages =
      has_new_rows ? std::max<std::int64_t>(0, rows.kv_len - rows.q_len) : rows.kv_len;
  for (std::int64_t page = 0; page < ceil_div(of_pages, page_size); ++page) {
    if (rows.pages.table[page] != abi::kFreedPage) continue;
    const std::int64_t end = std::min(of_pages, (page + 1) * page_size);
    for (std::int64_t column = page * page_size; column < end; ++column) columns.push_back(column);
  }
  return columns;
}

std::optional<std::int64_t> first_kept(const Parts::Piece& piece,
                                       const FloatInterpretation* interpretation, std::int64_t h,
                                       std::int64_t row, const std::vector<std::int64_t>& columns) {
  if (interpretation == nullptr) return columns.front();
  const std::vector<float> scores(static_cast<std::size_t>(piece.columns()));
  std::vector<float> modified(scores.size());
  std::vector<unsigned char> keep(scores.size());
  interpretation->row(piece.arguments, piece.b, h, row, scores.data(), modified.data(),
                      keep.data());
  const auto kept = std::find_if(columns.begin(), columns.end(), [&](std::int64_t column) {
    return keep[static_cast<std::size_t>(column)] != 0;
  });
  return kept == columns.end() ? std::nullopt : std::optional(*kept);
}

std::string kept_in_sequence(const Parts::Piece& piece, bool has_new_rows,
                             const FloatInterpretation* interpretation, Executor& threads) {
  const std::vector<std::int64_t> columns = freed_columns(piece.sequence, has_new_rows);
  if (columns.empty() || piece.rows() == 0) return "";
  std::vector<std::string> found(static_cast<std::size_t>(piece.score_rows()));
  threads.parallel_for(piece.score_rows(), [&](std::int64_t item, int) {
    const std::int64_t h = item / piece.rows(), row = item % piece.rows();
    const std::optional<std::int64_t> column = first_kept(piece, interpretation, h, row, columns);
    if (!column) return;
    found[static_cast<std::size_t>(item)] = fmt::format(
        "sequence {}'s page {} is freed (-1), but column {} of it is kept in row {} of h {}",
        piece.b, *column / piece.sequence.pages.page_size.value, *column, row, h);
  });
  const auto first = std::find_if(found.begin(), found.end(),
                                  [](const std::string& text) { return !text.empty(); });
  return first == found.end() ? "" : *first;
}

}  // namespace

std::vector<std::string> find_kept_freed_pages(const Spec& spec, const Problem& problem,
                                               const FloatInterpretation* interpretation,
                                               Executor& threads) {
  std::vector<std::string> found;
  if (!problem.sequences || !problem.sequences->page_table) return found;
  const Parts parts(spec, problem);
  for (const Parts::Piece& piece : parts.pieces()) {
    std::string text = kept_in_sequence(piece, spec.kv_new, interpretation, threads);
    if (!text.empty()) found.push_back(std::move(text));
  }
  return found;
}

}  // namespace tilewright::verify
