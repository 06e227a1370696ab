#include "verify/parts.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "runtime/io/float16.hpp"
#include "verify/naive.hpp"
#include "verify/x_pools.hpp"

namespace tilewright::verify {
namespace {

// Rows of a packed tensor.
TensorView rows_of(TensorView tensor, std::int64_t first, std::int64_t count) {
  tensor.data = static_cast<std::byte*>(tensor.data) +
                first * tensor.strides[0] * static_cast<std::int64_t>(size_of(tensor.dtype));
  tensor.shape[0] = count;
  return tensor;
}

// A sequence's rows of a pool; zeros of pages that are not there. The last q_len of them come from
// `fresh` where that is given.
Values read_pages(const Pool& pool, const std::optional<TensorView>& fresh,
                  const SequenceRows& sequence) {
  Values values = Values::zeros(1, pool.heads(), sequence.kv_len, pool.width());
  const std::int64_t page_size = pool.page_size();
  for (std::int64_t row = 0; row < sequence.kv_len; ++row) {
    const std::int64_t new_row = row - (sequence.kv_len - sequence.q_len);
    if (fresh && new_row >= 0) {
      for (std::int64_t h = 0; h < values.heads; ++h) {
        const std::int64_t start =
            (sequence.q_begin + new_row) * fresh->strides[0] + h * fresh->strides[1];
        for (std::int64_t i = 0; i < values.width; ++i) {
          values.at(0, h, row, i) =
              read_element(fresh->data, fresh->dtype, start + i * fresh->strides[2]);
        }
      }
      continue;
    }
    const std::optional<std::int64_t> page = page_of(sequence, row / page_size);
    if (!page) continue;
    for (std::int64_t h = 0; h < values.heads; ++h) {
      for (std::int64_t i = 0; i < values.width; ++i) {
        values.at(0, h, row, i) = read_element(pool.view().data, pool.view().dtype,
                                               pool.at(*page, row % page_size, h, i));
      }
    }
  }
  return values;
}

}  // namespace

Parts::Parts(const Spec& spec, const Problem& problem, SnippetValues::Extents extents,
             ScaleValues scales)
    : spec_(spec),
      problem_(problem),
      values_(spec, problem.snippet, problem.shape, extents),
      scales_(std::move(scales)) {
  const abi::SnippetArguments call = values_.arguments();
  if (!problem.sequences) {
    pieces_.push_back({.arguments = call, .batch = problem.shape.batch});
    return;
  }
  std::int64_t b = 0;
  for (const SequenceRows& rows : read_sequences(problem)) {
    pieces_.push_back({.arguments = arguments_of(call, rows),
                       .b = b++,
                       .row = rows.q_begin,
                       .kv_row = rows.kv_begin,
                       .sequence = rows});
  }
}

DenseProblem Parts::read(const Piece& piece, F32Products products) const {
  DenseProblem problem = read_stored(piece);
  round_to_products(products, problem);
  if (!scales_) return problem;
  apply_scales(spec_, scales_, piece.arguments, piece.b, problem_.k_new ? piece.rows() : 0,
               problem);
  return problem;
}

DenseProblem Parts::read_stored(const Piece& piece) const {
  if (problem_.page_size > 0) {
    return {.q = read_values(rows_of(problem_.q, piece.row, piece.rows()), spec_.layout),
            .k = read_pages({problem_.k, spec_.is_paged_x()}, problem_.k_new, piece.sequence),
            .v = read_pages({problem_.v, spec_.is_paged_x()}, problem_.v_new, piece.sequence),
            .scale = scale_of(spec_, problem_)};
  }
  TensorView q = problem_.q, k = problem_.k, v = problem_.v;
  if (problem_.sequences) {
    q = rows_of(q, piece.row, piece.rows());
    k = rows_of(k, piece.kv_row, piece.columns());
    v = rows_of(v, piece.kv_row, piece.columns());
  }
  return {.q = read_values(q, spec_.layout),
          .k = read_values(k, spec_.key_value_layout()),
          .v = read_values(v, spec_.key_value_layout()),
          .scale = scale_of(spec_, problem_),
          .wants_weights = spec_.outputs.weights};
}

void put_rows(Values part, const Parts::Piece& piece, Values& whole) {
  if (whole.data.empty()) {
    whole = std::move(part);
    return;
  }
  const std::int64_t count = part.rows * part.width;
  for (std::int64_t b = 0; b < part.batch; ++b) {
    for (std::int64_t h = 0; h < part.heads && count > 0; ++h) {
      std::copy_n(part.row(b, h, 0), count, whole.row(b, h, piece.row));
    }
  }
}

Values take_rows(const Values& whole, const Parts::Piece& piece) {
  Values part = Values::zeros(whole.batch, whole.heads, piece.rows(), whole.width);
  const std::int64_t count = part.rows * part.width;
  for (std::int64_t b = 0; b < part.batch; ++b) {
    for (std::int64_t h = 0; h < part.heads && count > 0; ++h) {
      std::copy_n(whole.row(b, h, piece.row), count, part.row(b, h, 0));
    }
  }
  return part;
}

void put_rows(BoundSizes part, const Parts::Piece& piece, BoundSizes& whole) {
  put_rows(std::move(part.scores), piece, whole.scores);
  put_rows(std::move(part.products), piece, whole.products);
  put_rows(std::move(part.values), piece, whole.values);
  put_rows(std::move(part.lost), piece, whole.lost);
}

BoundSizes take_rows(const BoundSizes& whole, const Parts::Piece& piece) {
  return {.scores = take_rows(whole.scores, piece),
          .products = take_rows(whole.products, piece),
          .values = take_rows(whole.values, piece),
          .lost = take_rows(whole.lost, piece)};
}

}  // namespace tilewright::verify
