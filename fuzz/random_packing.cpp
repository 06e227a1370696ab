#include "fuzz/random_packing.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "fuzz/snippet_wish.hpp"

namespace tilewright::verify::fuzz {
namespace {

// Snippets take rows of a packed tensor for less than kMaxIndex. In addition to the sequences that
// fit there are 40 short ones of 9 rows and 41 gaps of 7.
constexpr std::int64_t kShort = 9;
constexpr std::int64_t kMostRows = kMaxIndex - 40 * kShort - 41 * 7;

// Values of Factor::sequences.
constexpr int kWithoutRows = 2, kWithoutColumns = 3, kMoreRows = 4, kPadding = 5;

}  // namespace

FuzzPacking PackingMaker::make(FuzzSequence first) {
  if (wish_.least_position_is_0) first.q_len = std::min(first.q_len, first.kv_len);
  if (wish_.self_attention) first.kv_len = first.q_len;
  elements_left_ = wish_.max_elements - first.q_len * first.kv_len;
  q_rows_left_ = kMostRows - first.q_len;
  kv_rows_left_ = kMostRows - first.kv_len;
  FuzzPacking packing{.sequences = {first}};
  const std::array<std::int64_t, 3> least = {1, 2, 4}, most = {1, 3, 40};
  const auto kind = static_cast<std::size_t>(wish_.batch);
  const std::int64_t batch =
      between(least[kind], one_in(2) ? most[kind] : (least[kind] + most[kind]) / 2);
  for (std::int64_t b = 1; b < batch; ++b) {
    packing.sequences.push_back(b == 1 ? wished() : another());
  }
  // In a random order, but padding, which captured graphs have at the end.
  std::vector<FuzzSequence>& sequences = packing.sequences;
  for (std::size_t i = sequences.size(); i-- > 1 && wish_.sequences != kPadding;) {
    std::swap(sequences[i],
              sequences[static_cast<std::size_t>(below(static_cast<std::int64_t>(i) + 1))]);
  }
  if (wish_.sequences == kPadding)
    std::rotate(sequences.begin(), sequences.begin() + 2, sequences.end());
  if (one_in(3)) packing.q_rows_before = between(1, 9);
  if (!one_in(3)) packing.q_rows_after = between(1, 9);
  packing.kv_gap = between(wish_.kv_rows == 2 ? 1 : 0, 7);
  packing.kv_rows = std::array{KvRows::together, KvRows::gaps, KvRows::backward, KvRows::shared}.at(
      static_cast<std::size_t>(wish_.kv_rows - 1));
  packing.is_bounded = one_in(2);
  return packing;
}

// The one that shows what the plan names.
FuzzSequence PackingMaker::wished() {
  FuzzSequence sequence = another();
  switch (wish_.sequences) {
    case kWithoutRows:
      return {.q_len = 0, .kv_len = std::max<std::int64_t>(1, sequence.kv_len)};
    case kWithoutColumns:
      return {.q_len = std::max<std::int64_t>(1, sequence.q_len), .kv_len = 0};
    case kMoreRows:
      sequence.kv_len = std::max<std::int64_t>(1, sequence.kv_len);
      sequence.q_len = std::max(sequence.q_len, sequence.kv_len + between(1, 60));
      return sequence;
    case kPadding:
      return {};
    default:
      return sequence;
  }
}

FuzzSequence PackingMaker::another() {
  if (wish_.sequences == kPadding && one_in(3)) return {};
  FuzzSequence sequence{.q_len = std::min(length(wish_.block[0]), wish_.max_length),
                        .kv_len = std::min(length(wish_.block[1]), wish_.max_length)};
  if (one_in(3)) sequence.q_len = 1;  // a step of decoding
  const bool is_free = !wish_.least_position_is_0;
  if (is_free && wish_.sequences == kWithoutRows && one_in(4)) sequence.q_len = 0;
  if (is_free && wish_.sequences == kWithoutColumns && one_in(4)) sequence.kv_len = 0;
  if (wish_.sequences != kMoreRows || !is_free) {
    if (sequence.kv_len > 0) sequence.q_len = std::min(sequence.q_len, sequence.kv_len);
  }
  if (wish_.self_attention) sequence.kv_len = sequence.q_len;
  return fitting(sequence);
}

// Around borders of tiles, or anything.
std::int64_t PackingMaker::length(std::int64_t block) {
  if (one_in(3)) return between(1, 15);
  if (one_in(2)) return between(1, 180);
  const std::int64_t step = one_in(2) ? 16 : block;
  return std::clamp<std::int64_t>(step * between(1, 3) + between(-1, 1), 1, 260);
}

FuzzSequence PackingMaker::fitting(FuzzSequence sequence) {
  if (sequence.q_len > q_rows_left_ || sequence.kv_len > kv_rows_left_) {
    sequence.q_len = std::min(sequence.q_len, kShort);
    sequence.kv_len = std::min(sequence.kv_len, kShort);
  }
  if (sequence.q_len * sequence.kv_len > std::max<std::int64_t>(elements_left_, 0)) {
    sequence.q_len = std::min(sequence.q_len, kShort);
    if (wish_.self_attention) sequence.kv_len = sequence.q_len;
  }
  if (sequence.q_len * sequence.kv_len > std::max<std::int64_t>(elements_left_, 0)) {
    sequence.kv_len = std::min(sequence.kv_len, kShort);
    sequence.q_len = std::min(sequence.q_len, sequence.kv_len);
  }
  elements_left_ -= sequence.q_len * sequence.kv_len;
  q_rows_left_ -= sequence.q_len;
  kv_rows_left_ -= sequence.kv_len;
  return sequence;
}

}  // namespace tilewright::verify::fuzz
