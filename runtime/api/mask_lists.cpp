#include "runtime/api/mask_lists.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "runtime/call/mask_fingerprint.hpp"

namespace tilewright {
namespace {

// A tensor of indices, i32 or i64, of any strides.
class Integers {
 public:
  Integers(std::string_view name, const TensorView& view) : view_(view), name_(name) {
    const bool is_integer = view.dtype == DType::i32 || view.dtype == DType::i64;
    if (!is_integer) {
      throw Error(ErrorCode::tensor, fmt::format("{} is {}", name, view.describe()),
                  "lists of tiles are i32 or i64");
    }
    if (const std::string fault = view.fault(); !fault.empty()) {
      throw Error(ErrorCode::tensor, fmt::format("{} {}", name, fault),
                  fmt::format("given: {}", view.describe()));
    }
  }

  std::string_view name() const { return name_; }
  int rank() const { return view_.rank; }
  std::int64_t extent(int dimension) const {
    return view_.shape[static_cast<std::size_t>(dimension)];
  }

  template <typename... Index>
  std::int64_t at(Index... index) const {
    const std::array<std::int64_t, sizeof...(Index)> indices = {index...};
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) offset += indices[i] * view_.strides[i];
    if (view_.dtype == DType::i32) return static_cast<const std::int32_t*>(view_.data)[offset];
    return static_cast<const std::int64_t*>(view_.data)[offset];
  }

  [[noreturn]] void refuse_shape(const std::string& wanted) const {
    throw Error(ErrorCode::tensor, fmt::format("{} is {}", name_, view_.describe()),
                fmt::format("it must be {}", wanted));
  }

 private:
  const TensorView& view_;
  std::string_view name_;
};

// The tiles of a mask before they are a mask.
struct Tiles {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t q_blocks = 0;
  std::int64_t kv_blocks = 0;

  explicit Tiles(const MaskFingerprint& fingerprint) {
    validate(fingerprint);
    q_blocks = ceil_div(fingerprint.shape.q_len, fingerprint.source.block[0]);
    kv_blocks = ceil_div(fingerprint.shape.kv_len, fingerprint.source.block[1]);
  }

  std::int64_t rows() const { return count_tile_rows(batch, heads, q_blocks); }

  // "row 4 (batch 0, head 1, q block 0)"
  std::string describe_row(std::int64_t row) const {
    const std::int64_t list = row / q_blocks;
    if (batch * heads == 1) return fmt::format("row {}", row);
    return fmt::format("row {} (batch {}, head {}, q block {})", row, list / heads, list % heads,
                       row % q_blocks);
  }
};

[[noreturn]] void refuse(const std::string& what, std::string hint = {}) {
  throw Error(ErrorCode::block_mask, what, std::move(hint));
}

bool is_shared_or(std::int64_t extent, std::int64_t of_call) {
  return extent == 1 || extent == of_call;
}

BlockMask make_mask(MaskFingerprint fingerprint, const Tiles& tiles, TileLists lists) {
  fingerprint.shape.batch = tiles.batch;
  fingerprint.shape.num_q_heads = tiles.heads;
  if (tiles.heads == 1) fingerprint.shape.num_kv_heads = 1;
  return BlockMask(std::move(fingerprint), std::move(lists), "lists", 0);
}

// FlexAttention's lists ---------------------------------------------------------------------------

struct CsrList {
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int32_t> indices;
};

void require_flex_shapes(const Integers& counts, const Integers& indices, const Shape& shape,
                         const Tiles& tiles) {
  const bool counts_fit = counts.rank() == 3 && is_shared_or(counts.extent(0), shape.batch) &&
                          is_shared_or(counts.extent(1), shape.num_q_heads) &&
                          counts.extent(2) == tiles.q_blocks;
  if (!counts_fit) {
    counts.refuse_shape(fmt::format("[{}, {}, {}]: batch or 1, query heads or 1, rows of tiles",
                                    shape.batch, shape.num_q_heads, tiles.q_blocks));
  }
  const bool indices_fit = indices.rank() == 4 && indices.extent(0) == counts.extent(0) &&
                           indices.extent(1) == counts.extent(1) &&
                           indices.extent(2) == tiles.q_blocks;
  if (!indices_fit) {
    indices.refuse_shape(fmt::format("[{}, {}, {}, {}]: as {}, and a row's kv blocks",
                                     counts.extent(0), counts.extent(1), tiles.q_blocks,
                                     tiles.kv_blocks, counts.name()));
  }
}

void append_flex_row(CsrList& list, const Integers& counts, const Integers& indices,
                     const Tiles& tiles, std::int64_t row) {
  const std::int64_t b = row / tiles.q_blocks / tiles.heads;
  const std::int64_t h = row / tiles.q_blocks % tiles.heads;
  const std::int64_t q_block = row % tiles.q_blocks;
  const std::int64_t count = counts.at(b, h, q_block);
  if (count < 0 || count > indices.extent(3)) {
    refuse(fmt::format("{}[{}, {}, {}] is {}, but a row of {} has {} entries", counts.name(), b, h,
                       q_block, count, indices.name(), indices.extent(3)));
  }
  const auto entry = [&](std::int64_t i) {
    return fmt::format("{}[{}, {}, {}, {}]", indices.name(), b, h, q_block, i);
  };
  const std::size_t begin = list.indices.size();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t kv_block = indices.at(b, h, q_block, i);
    if (kv_block < 0 || kv_block >= tiles.kv_blocks) {
      refuse(
          fmt::format("{} is {}; kv blocks are 0 to {}", entry(i), kv_block, tiles.kv_blocks - 1));
    }
    list.indices.push_back(static_cast<std::int32_t>(kv_block));
  }
  const auto first = list.indices.begin() + static_cast<std::ptrdiff_t>(begin);
  if (!std::is_sorted(first, list.indices.end())) std::sort(first, list.indices.end());
  const auto twice = std::adjacent_find(first, list.indices.end());
  if (twice != list.indices.end()) {
    std::int64_t second = -1;
    for (std::int64_t i = 0, seen = 0; i < count && second < 0; ++i) {
      if (indices.at(b, h, q_block, i) == *twice && ++seen == 2) second = i;
    }
    refuse(fmt::format("{} is {}, which the row holds already", entry(second), *twice));
  }
  list.offsets.push_back(static_cast<std::int64_t>(list.indices.size()));
}

CsrList read_flex_list(const Integers& counts, const Integers& indices, const Shape& shape,
                       const Tiles& tiles) {
  require_flex_shapes(counts, indices, shape, tiles);
  CsrList list;
  for (std::int64_t row = 0; row < tiles.rows(); ++row) {
    append_flex_row(list, counts, indices, tiles, row);
  }
  return list;
}

// One row of a FlexAttention list: the tiles, then the other columns, both rising.
void fill_flex_row(std::int32_t* row, const std::vector<std::uint8_t>& chosen) {
  std::int32_t* next = row;
  for (const bool wanted : {true, false}) {
    for (std::size_t column = 0; column < chosen.size(); ++column) {
      if ((chosen[column] != 0) == wanted) *next++ = static_cast<std::int32_t>(column);
    }
  }
}

// A user's CSR ------------------------------------------------------------------------------------

class CsrReader {
 public:
  CsrReader(const MaskFingerprint& fingerprint, const TileCsr& csr)
      : crow_("crow", csr.crow), col_("col", csr.col), tiles_(fingerprint) {
    const Shape& shape = fingerprint.shape;
    const int rank = crow_.rank();
    if (rank == 3) tiles_.batch = crow_.extent(0);
    if (rank >= 2) tiles_.heads = crow_.extent(rank - 2);
    const bool fits = rank >= 1 && rank <= 3 && crow_.extent(rank - 1) == tiles_.q_blocks + 1 &&
                      is_shared_or(tiles_.batch, shape.batch) &&
                      is_shared_or(tiles_.heads, shape.num_q_heads);
    if (!fits) {
      crow_.refuse_shape(
          fmt::format("[{0}] ({1} rows of tiles and 1), [{2} or 1, {0}] (query "
                      "heads) or [{3} or 1, {2} or 1, {0}] (batch)",
                      tiles_.q_blocks + 1, tiles_.q_blocks, shape.num_q_heads, shape.batch));
    }
    tiles_.rows();  // throws where they are too many
    const bool col_fits =
        col_.rank() == 1 || (col_.rank() == rank && (rank < 3 || col_.extent(0) == tiles_.batch) &&
                             (rank < 2 || col_.extent(rank - 2) == tiles_.heads));
    if (!col_fits) {
      col_.refuse_shape("[n], the lists one after another, or with the leading dimensions of crow");
    }
  }

  CsrList read() {
    CsrList list;
    const std::int64_t lists = tiles_.batch * tiles_.heads;
    for (std::int64_t i = 0; i < lists; ++i) read_list(list, i);
    if (col_is_flat() && start_ != col_.extent(0)) {
      refuse(fmt::format("col has {} entries, but crow ends at {}", col_.extent(0), start_),
             "the last entry of crow is the number of tiles");
    }
    return list;
  }

  const Tiles& tiles() const { return tiles_; }

 private:
  bool col_is_flat() const { return col_.rank() == 1; }

  std::int64_t crow_at(std::int64_t list, std::int64_t i) const {
    if (crow_.rank() == 1) return crow_.at(i);
    if (crow_.rank() == 2) return crow_.at(list, i);
    return crow_.at(list / tiles_.heads, list % tiles_.heads, i);
  }

  std::int64_t col_at(std::int64_t list, std::int64_t i) const {
    if (col_is_flat()) return col_.at(start_ + i);
    if (col_.rank() == 2) return col_.at(list, i);
    return col_.at(list / tiles_.heads, list % tiles_.heads, i);
  }

  // "crow[3]", "crow[0, 1, 3]"
  std::string entry(const Integers& tensor, std::int64_t list, std::int64_t i) const {
    if (tensor.rank() == 1) return fmt::format("{}[{}]", tensor.name(), i);
    if (tensor.rank() == 2) return fmt::format("{}[{}, {}]", tensor.name(), list, i);
    return fmt::format("{}[{}, {}, {}]", tensor.name(), list / tiles_.heads, list % tiles_.heads,
                       i);
  }

  void read_list(CsrList& out, std::int64_t list) {
    if (crow_at(list, 0) != 0) {
      refuse(fmt::format("{} is {}, not 0", entry(crow_, list, 0), crow_at(list, 0)),
             "each list of crow starts at 0");
    }
    const std::int64_t room =
        col_is_flat() ? col_.extent(0) - start_ : col_.extent(col_.rank() - 1);
    for (std::int64_t q_block = 0; q_block < tiles_.q_blocks; ++q_block) {
      const std::int64_t begin = crow_at(list, q_block), end = crow_at(list, q_block + 1);
      if (end < begin) {
        refuse(fmt::format("{} is {} after {}", entry(crow_, list, q_block + 1), end, begin),
               "crow must not fall: it counts the tiles before each row");
      }
      if (end > room) {
        refuse(fmt::format("{} is {}, but col has {} entries for it",
                           entry(crow_, list, q_block + 1), end, room));
      }
      read_row(out, list, q_block, begin, end);
    }
    start_ += crow_at(list, tiles_.q_blocks);
  }

  void read_row(CsrList& out, std::int64_t list, std::int64_t q_block, std::int64_t begin,
                std::int64_t end) const {
    std::int64_t previous = -1;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t kv_block = col_at(list, i);
      const auto fail = [&](const std::string& why, std::string hint) {
        refuse(fmt::format("{} is {} {}, position {} of {}",
                           entry(col_, list, col_is_flat() ? start_ + i : i), kv_block, why,
                           i - begin, tiles_.describe_row(list * tiles_.q_blocks + q_block)),
               std::move(hint));
      };
      if (kv_block < 0 || kv_block >= tiles_.kv_blocks) {
        fail(fmt::format("of {} kv blocks", tiles_.kv_blocks),
             fmt::format("kv blocks are 0 to {}", tiles_.kv_blocks - 1));
      }
      if (kv_block == previous) fail("a second time", "name each tile once");
      if (kv_block < previous) {
        fail(fmt::format("after {}", previous), "the kv blocks of a row must rise");
      }
      previous = kv_block;
      out.indices.push_back(static_cast<std::int32_t>(kv_block));
    }
    out.offsets.push_back(static_cast<std::int64_t>(out.indices.size()));
  }

  Integers crow_;
  Integers col_;
  Tiles tiles_;
  std::int64_t start_ = 0;  // of the list in a flat col
};

CsrList no_tiles(std::int64_t rows) {
  return {.offsets = std::vector<std::int64_t>(static_cast<std::size_t>(rows + 1)), .indices = {}};
}

}  // namespace

BlockMask block_mask_from_flex(MaskFingerprint fingerprint, const FlexTileLists& lists) {
  if (lists.full_kv_num_blocks.has_value() != lists.full_kv_indices.has_value()) {
    throw Error(ErrorCode::tensor,
                fmt::format("{} is missing",
                            lists.full_kv_indices ? "full_kv_num_blocks" : "full_kv_indices"),
                "give both lists of full tiles, or none");
  }
  Tiles tiles(fingerprint);
  const Shape& shape = fingerprint.shape;
  const Integers counts("kv_num_blocks", lists.kv_num_blocks);
  const Integers indices("kv_indices", lists.kv_indices);
  require_flex_shapes(counts, indices, shape, tiles);
  tiles.batch = counts.extent(0);
  tiles.heads = counts.extent(1);
  CsrList partial = read_flex_list(counts, indices, shape, tiles);
  CsrList full = no_tiles(tiles.rows());
  if (lists.full_kv_indices) {
    const Integers full_counts("full_kv_num_blocks", *lists.full_kv_num_blocks);
    if (!lists.full_kv_num_blocks->has_shape_of(lists.kv_num_blocks)) {
      full_counts.refuse_shape("of the shape of kv_num_blocks");
    }
    full = read_flex_list(full_counts, Integers("full_kv_indices", *lists.full_kv_indices), shape,
                          tiles);
  }
  return make_mask(std::move(fingerprint), tiles,
                   {.row_offsets = std::move(partial.offsets),
                    .indices = std::move(partial.indices),
                    .full_row_offsets = std::move(full.offsets),
                    .full_indices = std::move(full.indices)});
}

FlexTileLists FlexTensors::view() const {
  return {.kv_num_blocks = kv_num_blocks.view(),
          .kv_indices = kv_indices.view(),
          .full_kv_num_blocks = full_kv_num_blocks.view(),
          .full_kv_indices = full_kv_indices.view()};
}

FlexTensors to_flex(const BlockMask& mask) {
  const std::int64_t b = mask.batch(), h = mask.heads(), q = mask.q_blocks(), kv = mask.kv_blocks();
  FlexTensors flex{.kv_num_blocks = Tensor::zeros(DType::i32, {b, h, q}),
                   .kv_indices = Tensor::zeros(DType::i32, {b, h, q, kv}),
                   .full_kv_num_blocks = Tensor::zeros(DType::i32, {b, h, q}),
                   .full_kv_indices = Tensor::zeros(DType::i32, {b, h, q, kv})};
  const Shape& shape = mask.fingerprint().shape;
  const bool last_row_is_ragged = shape.q_len % mask.block()[0] != 0;
  const bool last_column_is_ragged = shape.kv_len % mask.block()[1] != 0;
  const TileLists& lists = mask.lists();
  std::vector<std::uint8_t> partial(static_cast<std::size_t>(kv)), full(partial.size());
  for (std::int64_t row = 0; row < mask.rows(); ++row) {
    std::fill(partial.begin(), partial.end(), std::uint8_t{0});
    std::fill(full.begin(), full.end(), std::uint8_t{0});
    std::int32_t partial_count = 0, full_count = 0;
    for (std::int64_t i = lists.row_offsets[row]; i < lists.row_offsets[row + 1]; ++i) {
      partial[lists.indices[i]] = 1;
      ++partial_count;
    }
    for (std::int64_t i = lists.full_row_offsets[row]; i < lists.full_row_offsets[row + 1]; ++i) {
      const std::int32_t column = lists.full_indices[i];
      const bool ragged =
          (last_row_is_ragged && row % q == q - 1) || (last_column_is_ragged && column == kv - 1);
      (ragged ? partial : full)[column] = 1;
      ++(ragged ? partial_count : full_count);
    }
    static_cast<std::int32_t*>(flex.kv_num_blocks.data())[row] = partial_count;
    static_cast<std::int32_t*>(flex.full_kv_num_blocks.data())[row] = full_count;
    fill_flex_row(static_cast<std::int32_t*>(flex.kv_indices.data()) + row * kv, partial);
    fill_flex_row(static_cast<std::int32_t*>(flex.full_kv_indices.data()) + row * kv, full);
  }
  return flex;
}

BlockMask block_mask_from_csr(MaskFingerprint fingerprint, const TileCsr& csr) {
  CsrReader reader(fingerprint, csr);
  CsrList given = reader.read();
  CsrList none = no_tiles(reader.tiles().rows());
  if (fingerprint.source.mask_mod.empty()) std::swap(given, none);
  TileLists lists{.row_offsets = std::move(given.offsets),
                  .indices = std::move(given.indices),
                  .full_row_offsets = std::move(none.offsets),
                  .full_indices = std::move(none.indices)};
  return make_mask(std::move(fingerprint), reader.tiles(), std::move(lists));
}

}  // namespace tilewright
