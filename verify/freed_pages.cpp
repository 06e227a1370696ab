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

std::optional<std::int64_t> first_kept(const Parts::Place& place, const FloatReading* reading,
                                       std::int64_t h, std::int64_t row,
                                       const std::vector<std::int64_t>& columns) {
  if (reading == nullptr) return columns.front();
  const std::vector<float> scores(static_cast<std::size_t>(place.columns()));
  std::vector<float> modified(scores.size());
  std::vector<unsigned char> keep(scores.size());
  reading->row(place.arguments, place.b, h, row, scores.data(), modified.data(), keep.data());
  const auto kept = std::find_if(columns.begin(), columns.end(), [&](std::int64_t column) {
    return keep[static_cast<std::size_t>(column)] != 0;
  });
  return kept == columns.end() ? std::nullopt : std::optional(*kept);
}

std::string kept_in_sequence(const Parts::Place& place, bool has_new_rows,
                             const FloatReading* reading, Executor& threads) {
  const std::vector<std::int64_t> columns = freed_columns(place.sequence, has_new_rows);
  if (columns.empty() || place.rows() == 0) return "";
  std::vector<std::string> found(static_cast<std::size_t>(place.score_rows()));
  threads.parallel_for(place.score_rows(), [&](std::int64_t item, int) {
    const std::int64_t h = item / place.rows(), row = item % place.rows();
    const std::optional<std::int64_t> column = first_kept(place, reading, h, row, columns);
    if (!column) return;
    found[static_cast<std::size_t>(item)] = fmt::format(
        "sequence {}'s page {} is freed (-1), but column {} of it is kept in row {} of h {}",
        place.b, *column / place.sequence.pages.page_size.value, *column, row, h);
  });
  const auto first = std::find_if(found.begin(), found.end(),
                                  [](const std::string& text) { return !text.empty(); });
  return first == found.end() ? "" : *first;
}

}  // namespace

std::vector<std::string> find_kept_freed_pages(const Spec& spec, const Problem& problem,
                                               const FloatReading* reading, Executor& threads) {
  std::vector<std::string> found;
  if (!problem.sequences || !problem.sequences->page_table) return found;
  const Parts parts(spec, problem);
  for (const Parts::Place& place : parts.places()) {
    std::string text = kept_in_sequence(place, spec.kv_new, reading, threads);
    if (!text.empty()) found.push_back(std::move(text));
  }
  return found;
}

}  // namespace tilewright::verify
