#include "runtime/api/mask_slice.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright {
namespace {

using Columns = std::span<const std::int32_t>;

void require_rows(const Shape& shape, const RowSlice& slice) {
  const bool exist = slice.rows >= 1 && slice.first_row >= 0 && slice.first_row < shape.q_len &&
                     slice.rows <= shape.q_len - slice.first_row;
  if (!exist) {
    throw Error(ErrorCode::usage,
                fmt::format("the slice is of {} rows from row {}, but the mask has {}", slice.rows,
                            slice.first_row, shape.q_len),
                "build the mask for all rows that will be asked for");
  }
  if (slice.kv_len && (*slice.kv_len < 1 || *slice.kv_len > shape.kv_len)) {
    throw Error(ErrorCode::usage, fmt::format("the slice is of {} columns, but the mask has {}",
                                              *slice.kv_len, shape.kv_len));
  }
}

void require_same_meaning(const MaskFingerprint& built, const Shape& shape) {
  if (built.source.mask_mod.empty()) return;
  const Snippet snippet = check_snippet(SnippetKind::mask_mod, built.source.mask_mod);
  const auto require_unread = [&](std::string_view name, std::int64_t whole, std::int64_t sliced) {
    if (whole == sliced || !snippet.mentions(name)) return;
    throw Error(ErrorCode::usage,
                fmt::format("mask_mod reads {}, which is {} in the mask and {} in the slice", name,
                            whole, sliced),
                fmt::format("give the length as a scalar of the spec, or build a mask for the "
                            "slice's own shape"));
  };
  require_unread("q_len", built.shape.q_len, shape.q_len);
  require_unread("kv_len", built.shape.kv_len, shape.kv_len);
}

Columns columns_of(const std::vector<std::int64_t>& offsets,
                   const std::vector<std::int32_t>& indices, std::int64_t row,
                   std::int64_t kv_blocks) {
  const Columns all(indices.data() + offsets[row], indices.data() + offsets[row + 1]);
  const auto end = std::lower_bound(all.begin(), all.end(), kv_blocks);
  return all.first(static_cast<std::size_t>(end - all.begin()));
}

// Tiles of the slice's row, which lies in rows `first` to `last` of the mask.
struct SlicedRow {
  std::vector<std::int32_t> partial;
  std::vector<std::int32_t> full;
};

SlicedRow read_row(const TileLists& lists, std::int64_t row, std::int64_t kv_blocks) {
  const Columns partial = columns_of(lists.row_offsets, lists.indices, row, kv_blocks);
  const Columns full = columns_of(lists.full_row_offsets, lists.full_indices, row, kv_blocks);
  return {.partial = {partial.begin(), partial.end()}, .full = {full.begin(), full.end()}};
}

// A tile over both is full where both are, and partial where one is visited at all.
SlicedRow joined(const SlicedRow& a, const SlicedRow& b) {
  const auto unite = [](const auto& x, const auto& y) {
    std::vector<std::int32_t> both;
    std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    return both;
  };
  SlicedRow result;
  std::set_intersection(a.full.begin(), a.full.end(), b.full.begin(), b.full.end(),
                        std::back_inserter(result.full));
  const std::vector<std::int32_t> visited =
      unite(unite(a.partial, a.full), unite(b.partial, b.full));
  std::set_difference(visited.begin(), visited.end(), result.full.begin(), result.full.end(),
                      std::back_inserter(result.partial));
  return result;
}

void append(TileLists& lists, const SlicedRow& row) {
  lists.indices.insert(lists.indices.end(), row.partial.begin(), row.partial.end());
  lists.full_indices.insert(lists.full_indices.end(), row.full.begin(), row.full.end());
  lists.row_offsets.push_back(static_cast<std::int64_t>(lists.indices.size()));
  lists.full_row_offsets.push_back(static_cast<std::int64_t>(lists.full_indices.size()));
}

}  // namespace

BlockMask slice_rows(const BlockMask& mask, const RowSlice& slice) {
  MaskFingerprint fingerprint = mask.fingerprint();
  require_rows(fingerprint.shape, slice);
  fingerprint.shape.q_len = slice.rows;
  fingerprint.shape.q_offset += slice.first_row;
  if (slice.kv_len) fingerprint.shape.kv_len = *slice.kv_len;
  require_same_meaning(mask.fingerprint(), fingerprint.shape);

  const auto [q_block, kv_block] = mask.block();
  const std::int64_t kv_blocks = ceil_div(fingerprint.shape.kv_len, kv_block);
  const TileLists& whole = mask.lists();
  TileLists lists{.row_offsets = {0}, .indices = {}, .full_row_offsets = {0}, .full_indices = {}};
  for (std::int64_t list = 0; list < mask.batch() * mask.heads(); ++list) {
    for (std::int64_t begin = 0; begin < slice.rows; begin += q_block) {
      const std::int64_t end = std::min(begin + q_block, slice.rows);
      const std::int64_t first = (slice.first_row + begin) / q_block;
      const std::int64_t last = (slice.first_row + end - 1) / q_block;
      SlicedRow row = read_row(whole, list * mask.q_blocks() + first, kv_blocks);
      if (last != first) {
        row = joined(row, read_row(whole, list * mask.q_blocks() + last, kv_blocks));
      }
      append(lists, row);
    }
  }
  return BlockMask(std::move(fingerprint), std::move(lists), "slice", 0);
}

}  // namespace tilewright
