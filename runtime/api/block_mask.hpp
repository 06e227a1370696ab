#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.hpp"
#include "shape.hpp"
#include "stream.hpp"

namespace tilewright {

/// The part of a spec that decides which tiles a block mask has.
struct MaskSource {
  /// A scalar that mask_mod reads.
  struct Scalar {
    std::string name;
    std::size_t index;  ///< into Bindings::scalars()

    friend bool operator==(const Scalar&, const Scalar&) = default;
  };

  std::string mask_mod;
  std::array<std::int64_t, 2> block = {};
  std::vector<Scalar> scalars;

  friend bool operator==(const MaskSource&, const MaskSource&) = default;
};

/// What a block mask was built from; a call that differs in any of it is refused. Contents of
/// buffers are not part of it: a caller who changes them builds the mask again.
struct MaskFingerprint {
  /// Of the call, as far as mask_mod depends on them, whatever the lists share; 0: any.
  struct Counts {
    std::int64_t batch = 0;
    std::int64_t num_q_heads = 0;
    std::int64_t num_kv_heads = 0;

    friend bool operator==(const Counts&, const Counts&) = default;
  };

  MaskSource source;
  Shape shape;                  ///< with batch and heads of the mask's own lists
  std::vector<double> scalars;  ///< values, in the order of source.scalars
  Counts counts;

  /// Scalars are compared by their bits, so NaN is like itself.
  friend bool operator==(const MaskFingerprint& a, const MaskFingerprint& b);
};

/// Lists of tiles in CSR form. Row of tiles r = (b * heads + h) * q_blocks + q_block.
struct TileLists {
  std::vector<std::int64_t> row_offsets;       ///< [rows + 1], into indices
  std::vector<std::int32_t> indices;           ///< kv blocks of partial tiles, rising in each row
  std::vector<std::int64_t> full_row_offsets;  ///< [rows + 1], into full_indices
  std::vector<std::int32_t> full_indices;      ///< kv blocks of full tiles, rising in each row

  friend bool operator==(const TileLists&, const TileLists&) = default;
};

/// The lists of a mask in host memory, as they were at one time.
struct HostTileLists {
  TileLists lists;
  std::vector<std::int32_t> q_tile_order;  ///< rows of tiles, those with the most tiles first
};

/// How many tiles a mask has of each kind, and how many of all were decided element by element.
struct TileCounts {
  std::int64_t partial = 0;
  std::int64_t full = 0;
  std::int64_t evaluated = 0;
};

class DeviceTileLists;

/// How a block mask is built.
struct BlockMaskOptions {
  Stream stream = nullptr;  ///< of a GPU
  /// Tiles, partial and full ones together, that there is room for, from 0 to 2^58; rows * kv
  /// blocks is always enough. With it a GPU is not waited for, and the mask may be built again in
  /// the same memory (Attention::rebuild). If there are more, its lists are empty, and a
  /// question for its tiles is an error. None: the GPU is waited for once, and the lists are as
  /// long as they need be.
  std::optional<std::int64_t> capacity = {};
  bool transposed = false;  ///< makes the lists by columns on the GPU too
};

/// Which tiles (q block, kv block) of a mask are empty, partial or full. A tile is judged by its
/// elements inside q_len x kv_len, so a ragged one may be full. Immutable; copies share the lists,
/// which live where they are used: a mask made on a GPU comes to the host when a caller asks for
/// its lists, and one made from lists goes to a GPU with its first call there. The last copy of a
/// mask on a GPU waits for the GPU before it frees the lists. A mask with a capacity that is used
/// on a CPU or in another CUDA context than its own comes to the host at each call, which waits.
class BlockMask {
 public:
  enum class Tile : std::uint8_t { empty = 0, partial = 1, full = 2 };

  /// @param fingerprint.shape.batch 1 or the call's batch; .num_q_heads likewise 1 or the call's
  /// @param path how the tiles were decided: "proved", "exact", or where lists came from
  /// @throws Error with code block_mask: offsets or indices that are out of range or do not rise,
  /// with
  ///         the first bad entry; with code tensor for more than 2^31 - 1 rows of tiles
  BlockMask(MaskFingerprint fingerprint, TileLists lists, std::string path,
            std::int64_t tiles_evaluated);

  /// Of lists that a GPU made.
  /// @param counts none where the caller gave a capacity: they are read off the GPU, together with
  ///        the lists, at each question, as the mask may have been built anew
  BlockMask(MaskFingerprint fingerprint, std::shared_ptr<const DeviceTileLists> lists,
            std::optional<TileCounts> counts, std::string path);

  const MaskFingerprint& fingerprint() const { return fingerprint_; }
  /// Copied from the GPU at the first call where they were made there, and at each call where the
  /// mask was made with a capacity. The reference holds until the mask is built again.
  const TileLists& lists() const { return on_host()->lists; }
  /// The same tiles by columns: row of tiles c = (b * heads + h) * kv_blocks + kv_block lists q
  /// blocks, rising. Made at the first call where the GPU has not made them. The reference holds as
  /// that of lists() does.
  const TileLists& transposed() const;
  /// Whether the lists by columns are there: the backward pass needs them. They are made by
  /// BlockMaskOptions::transposed, or by transposed().
  bool has_transposed() const;
  /// What lists() gives, for as long as the caller keeps it, whatever is built again meanwhile.
  std::shared_ptr<const HostTileLists> on_host() const;

  std::int64_t batch() const { return fingerprint_.shape.batch; }  ///< 1 if mask_mod names no b
  std::int64_t heads() const {
    return fingerprint_.shape.num_q_heads;
  }  ///< 1 if it names no h, h_kv
  const std::array<std::int64_t, 2>& block() const { return fingerprint_.source.block; }
  std::int64_t q_blocks() const { return q_blocks_; }    ///< ceil(q_len / block[0])
  std::int64_t kv_blocks() const { return kv_blocks_; }  ///< ceil(kv_len / block[1])
  std::int64_t rows() const { return batch() * heads() * q_blocks_; }

  /// Waits for the GPU where the mask was made with a capacity, as all that depends on it.
  TileCounts counts() const;
  std::int64_t partial_tiles() const { return counts().partial; }
  std::int64_t full_tiles() const { return counts().full; }
  std::int64_t empty_tiles() const {
    const TileCounts tiles = counts();
    return rows() * kv_blocks_ - tiles.partial - tiles.full;
  }
  /// Share of tiles that attention visits, 0 to 1.
  double density() const;
  /// Bytes of the lists.
  std::int64_t bytes() const;

  /// The tiles of one row, by kv block. Time follows the row's tiles.
  std::vector<Tile> row(std::int64_t b, std::int64_t h, std::int64_t q_block) const;

  /// Rows of tiles, those with the most tiles first: the order in which work is handed out. The
  /// span holds as the reference of lists() does.
  std::span<const std::int32_t> q_tile_order() const { return on_host()->q_tile_order; }

  /// Gives this mask and all its copies the tiles of another one with as many rows, for
  /// runtime/cpu. A caller that keeps lists (on_host) keeps the old ones.
  /// @throws Error with code block_mask where a GPU made this mask
  void take_tiles(const BlockMask& other);

  /// How the tiles were decided: "proved" by intervals where they could be, or "exact", each by
  /// evaluation; and how many were decided element by element.
  std::string path() const;
  std::int64_t tiles_evaluated() const { return counts().evaluated; }

  friend bool operator==(const BlockMask& a, const BlockMask& b) {
    return a.fingerprint_ == b.fingerprint_ && a.lists() == b.lists();
  }

 private:
  friend class MaskPlacement;  // runtime/call/mask_placement.hpp
  struct Contents;

  MaskFingerprint fingerprint_;
  std::int64_t q_blocks_;
  std::int64_t kv_blocks_;
  std::shared_ptr<Contents> contents_;
};

/// Rows of tiles: the product.
/// @throws Error with code tensor for more than 2^31 - 1, which no list counts
std::int64_t count_tile_rows(std::int64_t batch, std::int64_t heads, std::int64_t q_blocks);

/// The same tiles by columns.
/// @throws Error with code tensor as count_tile_rows, for batch, heads and columns
/// @param rows_of_head, columns of the tiles of one head's lists
TileLists transpose(const TileLists& lists, std::int64_t rows_of_head, std::int64_t columns);

/// Refuses a mask that was built from something else than a call uses. Does not allocate where it
/// fits.
/// @throws Error with code block_mask, naming what differs and both values
void require_fit(const BlockMask& mask, const MaskSource& source, const Shape& shape,
                 const Bindings& bindings);

}  // namespace tilewright
