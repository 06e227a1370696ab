#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.hpp"
#include "shape.hpp"

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
  MaskSource source;
  Shape shape;                  ///< with batch and heads of the mask's own lists
  std::vector<double> scalars;  ///< values, in the order of source.scalars

  friend bool operator==(const MaskFingerprint&, const MaskFingerprint&) = default;
};

/// Lists of tiles in CSR form. Row of tiles r = (b * heads + h) * q_blocks + q_block.
struct TileLists {
  std::vector<std::int64_t> row_offsets;       ///< [rows + 1], into indices
  std::vector<std::int32_t> indices;           ///< kv blocks of partial tiles, rising in each row
  std::vector<std::int64_t> full_row_offsets;  ///< [rows + 1], into full_indices
  std::vector<std::int32_t> full_indices;      ///< kv blocks of full tiles, rising in each row

  friend bool operator==(const TileLists&, const TileLists&) = default;
};

/// The lists in the memory of one CUDA context. Made by runtime/cuda, which knows what is inside.
class DeviceTileLists {
 public:
  virtual ~DeviceTileLists() = default;
  virtual TileLists to_host() const = 0;
  std::uint64_t context() const { return context_; }  ///< the context's number

 protected:
  explicit DeviceTileLists(std::uint64_t context) : context_(context) {}

 private:
  std::uint64_t context_;
};

/// Which tiles (q block, kv block) of a mask are empty, partial or full. A tile is judged by its
/// elements inside q_len x kv_len, so a ragged one may be full. Immutable; copies share the lists,
/// which live where they are used: a mask made on a GPU comes to the host when somebody asks for
/// its lists, and one made from lists goes to a GPU with its first call there. The last copy of a
/// mask on a GPU waits for the GPU before it frees the lists.
class BlockMask {
 public:
  enum class Tile : std::uint8_t { empty = 0, partial = 1, full = 2 };

  /// @param fingerprint.shape.batch 1 or the call's batch; .num_q_heads likewise 1 or the call's
  /// @param path how the tiles were decided: "exact"
  /// @throws Error with code block_mask: offsets or indices that are out of range or do not rise,
  /// with
  ///         the first bad entry
  BlockMask(MaskFingerprint fingerprint, TileLists lists, std::string path,
            std::int64_t tiles_evaluated);

  /// Of lists that a GPU made.
  BlockMask(MaskFingerprint fingerprint, std::shared_ptr<const DeviceTileLists> lists,
            std::int64_t partial_tiles, std::int64_t full_tiles, std::string path,
            std::int64_t tiles_evaluated);

  const MaskFingerprint& fingerprint() const { return fingerprint_; }
  /// Copied from the GPU at the first call where they were made there.
  const TileLists& lists() const;

  std::int64_t batch() const { return fingerprint_.shape.batch; }  ///< 1 if mask_mod names no b
  std::int64_t heads() const {
    return fingerprint_.shape.num_q_heads;
  }  ///< 1 if it names no h, h_kv
  const std::array<std::int64_t, 2>& block() const { return fingerprint_.source.block; }
  std::int64_t q_blocks() const { return q_blocks_; }    ///< ceil(q_len / block[0])
  std::int64_t kv_blocks() const { return kv_blocks_; }  ///< ceil(kv_len / block[1])
  std::int64_t rows() const { return batch() * heads() * q_blocks_; }

  std::int64_t partial_tiles() const { return partial_tiles_; }
  std::int64_t full_tiles() const { return full_tiles_; }
  std::int64_t empty_tiles() const { return rows() * kv_blocks_ - partial_tiles() - full_tiles(); }
  /// Share of tiles that attention visits, 0 to 1.
  double density() const;
  /// Bytes of the lists.
  std::int64_t bytes() const;

  /// The tiles of one row, by kv block. Time follows the row's tiles.
  std::vector<Tile> row(std::int64_t b, std::int64_t h, std::int64_t q_block) const;

  /// Rows of tiles, those with the most tiles first: the order in which work is handed out.
  std::span<const std::int32_t> rows_by_cost() const;

  /// The lists in the memory of a context, made once for each; for runtime/cuda.
  template <typename Make>
  const DeviceTileLists& on_device(std::uint64_t context, const Make& make) const {
    const std::lock_guard lock(contents_->mutex);
    for (const auto& lists : contents_->on_device) {
      if (lists->context() == context) return *lists;
    }
    contents_->on_device.push_back(make());
    return *contents_->on_device.back();
  }

  /// How the tiles were decided ("exact") and how many were decided element by element.
  std::string_view path() const { return path_; }
  std::int64_t tiles_evaluated() const { return tiles_evaluated_; }

  friend bool operator==(const BlockMask& a, const BlockMask& b) {
    return a.fingerprint_ == b.fingerprint_ && a.lists() == b.lists();
  }

 private:
  struct Contents {
    std::once_flag host_is_made;
    TileLists lists;
    std::vector<std::int32_t> rows_by_cost;
    std::mutex mutex;  // guards on_device
    std::vector<std::shared_ptr<const DeviceTileLists>> on_device;
    std::shared_ptr<const DeviceTileLists> origin;  // null where the lists were made on the host
  };

  MaskFingerprint fingerprint_;
  std::string path_;
  std::int64_t tiles_evaluated_;
  std::int64_t q_blocks_;
  std::int64_t kv_blocks_;
  std::int64_t partial_tiles_;
  std::int64_t full_tiles_;
  std::shared_ptr<Contents> contents_;

  const Contents& on_host() const;
};

/// Refuses a mask that was built from something else than a call uses. Does not allocate where it
/// fits.
/// @throws Error with code block_mask, naming what differs and both values
void require_fit(const BlockMask& mask, const MaskSource& source, const Shape& shape,
                 const Bindings& bindings);

}  // namespace tilewright
