#include "runtime/call/plan_map.hpp"

#include <cstddef>

#include "base/ceil_div.hpp"

namespace tilewright {

PlanMap::PlanMap(const Plan& plan, const std::array<std::int64_t, 2>& block)
    : block_(block), geometry_(plan.state().geometry) {
  const PlanState& state = plan.state();
  if (state.shape.batch == 0) return;
  const abi::PlanLayout& layout = geometry_.layout;
  sequences_.resize(static_cast<std::size_t>(state.shape.batch));
  state.read(sequences_.data(), static_cast<std::size_t>(layout.sequences),
             sequences_.size() * sizeof(abi::PlannedSequence));
  spans_.resize(static_cast<std::size_t>(std::int64_t{geometry_.heads} * geometry_.rows *
                                         geometry_.spans_of_row));
  if (spans_.empty()) return;
  state.read(spans_.data(), static_cast<std::size_t>(layout.spans),
             spans_.size() * sizeof(abi::TileSpan));
}

std::int64_t PlanMap::q_blocks(std::int64_t b) const {
  const abi::PlannedSequence& sequence = sequences_[static_cast<std::size_t>(b)];
  return abi::count_q_blocks(sequence.q_len, sequence.lead, static_cast<int>(block_[0]));
}

abi::RowsOfTiles PlanMap::rows_of(std::int64_t b, std::int64_t q_block) const {
  const abi::PlannedSequence& sequence = sequences_[static_cast<std::size_t>(b)];
  return abi::rows_of_tiles(sequence.q_len, sequence.lead, static_cast<int>(q_block),
                            static_cast<int>(block_[0]));
}

std::int64_t PlanMap::kv_blocks(std::int64_t b) const {
  return ceil_div(std::int64_t{sequences_[static_cast<std::size_t>(b)].kv_len}, block_[1]);
}

const abi::TileSpan* PlanMap::spans_of(std::int64_t b, std::int64_t h, std::int64_t q_block) const {
  const std::int64_t first = sequences_[static_cast<std::size_t>(b)].tile_row;
  const std::int64_t list = geometry_.heads == 1 ? 0 : h;
  return spans_.data() + (list * geometry_.rows + first + q_block) * geometry_.spans_of_row;
}

std::vector<PlanMap::Tile> PlanMap::row(std::int64_t b, std::int64_t h,
                                        std::int64_t q_block) const {
  std::vector<Tile> tiles(static_cast<std::size_t>(kv_blocks(b)), Tile::empty);
  const abi::TileSpan* const spans = spans_of(b, h, q_block);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const abi::TileSpan& span = spans[i / abi::kTilesOfSpan];
    const unsigned bit = 1u << i % abi::kTilesOfSpan;
    if ((span.kept & bit) == 0) continue;
    tiles[i] = (span.partial & bit) != 0 ? Tile::partial : Tile::full;
  }
  return tiles;
}

bool PlanMap::marks_more(std::int64_t b, std::int64_t h, std::int64_t q_block) const {
  const std::int64_t first = kv_blocks(b);
  // Only longer sequences have further words, and a GPU leaves those of this one unwritten.
  const std::int64_t end = ceil_div(first, abi::kTilesOfSpan) * abi::kTilesOfSpan;
  const abi::TileSpan* const spans = spans_of(b, h, q_block);
  for (std::int64_t i = first; i < end; ++i) {
    if ((spans[i / abi::kTilesOfSpan].kept >> i % abi::kTilesOfSpan & 1u) != 0) return true;
  }
  return false;
}

PlanMap::Counts PlanMap::counts() const {
  Counts counts;
  if (!has_tiles()) return counts;
  for (std::int64_t b = 0; b < static_cast<std::int64_t>(sequences_.size()); ++b) {
    for (std::int64_t item = 0; item < heads() * q_blocks(b); ++item) {
      for (const Tile tile : row(b, item / q_blocks(b), item % q_blocks(b))) {
        ++(tile == Tile::full      ? counts.full
           : tile == Tile::partial ? counts.partial
                                   : counts.empty);
      }
    }
  }
  return counts;
}

double PlanMap::Counts::density() const {
  const std::int64_t all = partial + full + empty;
  return all == 0 ? 0 : static_cast<double>(partial + full) / static_cast<double>(all);
}

}  // namespace tilewright
