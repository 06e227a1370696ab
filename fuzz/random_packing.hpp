#pragma once

#include <array>
#include <cstdint>

#include "../verify/random.hpp"
#include "packing.hpp"
#include "snippet_dice.hpp"

namespace tilewright::verify::fuzz {

/// What the sequences of a packed call are asked to show.
struct PackingWish {
  int batch = 0;      ///< Factor::batch
  int sequences = 1;  ///< Factor::sequences, of a packed call
  int kv_rows = 1;    ///< Factor::kv_rows, of a packed call
  std::array<std::int64_t, 2> block = {128, 128};
  bool least_position_is_0 = false;  ///< no sequence has more rows than columns
  bool self_attention = false;       ///< as many rows as columns
  std::int64_t max_length = 600;
  std::int64_t max_elements = 0;  ///< of all score matrices of a head
};

/// Makes the sequences of one packed call.
class PackingMaker : private SnippetDice {
 public:
  PackingMaker(const PackingWish& wish, Random& random) : SnippetDice(random), wish_(wish) {}

  /// @param first one of the sequences; the others are shorter, as few elements are left
  FuzzPacking make(FuzzSequence first);

 private:
  FuzzSequence wished();
  FuzzSequence another();
  FuzzSequence fitting(FuzzSequence sequence);
  std::int64_t length(std::int64_t block);

  PackingWish wish_;
  std::int64_t elements_left_ = 0;
  std::int64_t q_rows_left_ = 0;  // until all sequences together have kMostRows
  std::int64_t kv_rows_left_ = 0;
};

}  // namespace tilewright::verify::fuzz
