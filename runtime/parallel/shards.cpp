#include "runtime/parallel/shards.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"

namespace tilewright::parallel {
namespace {

// The begin of part `i` of `parts`, at a multiple of `side` where there are tiles enough.
std::int64_t begin_of_part(std::int64_t length, std::int64_t side, std::int64_t i,
                           std::int64_t parts) {
  constexpr std::int64_t kTilesOfPart = 4;  // below that a tile more or less counts
  const std::int64_t tiles = ceil_div(length, side);
  if (tiles < parts * kTilesOfPart) return length * i / parts;
  return std::min(tiles * i / parts * side, length);
}

void require_enough(std::string_view what, std::int64_t length, int ranks) {
  if (length >= 2 * std::int64_t{ranks}) return;
  throw Error(
      ErrorCode::tensor,
      fmt::format("{} is {}, and {} ranks take at least {}", what, length, ranks, 2 * ranks),
      "use fewer ranks for so short a sequence");
}

void require_lengths(std::string_view what, std::span<const std::int64_t> lengths, int ranks,
                     std::int64_t whole) {
  if (std::ssize(lengths) != ranks) {
    throw Error(ErrorCode::tensor,
                fmt::format("{} has {} lengths, and the communicator {} ranks", what,
                            lengths.size(), ranks),
                "give one length for each rank");
  }
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const std::int64_t length = lengths[rank];
    if (length < 1 || length > whole - sum) {
      throw Error(ErrorCode::tensor,
                  fmt::format("{}[{}] is {}; from 1 to {} rows are left for it", what, rank, length,
                              whole - sum),
                  fmt::format("the lengths of all ranks add up to {}", whole));
    }
    sum += length;
  }
  if (sum == whole) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{} add up to {}, and the whole sequence has {}", what, sum, whole),
              "give each row to a rank");
}

Shard joined(const Shard& first, const Shard& second) {
  return {.q_begin = first.q_begin,
          .q_len = first.q_len + second.q_len,
          .kv_begin = first.kv_begin,
          .kv_len = first.kv_len + second.kv_len};
}

}  // namespace

std::vector<int> ShardList::of_rank(int rank) const {
  std::vector<int> own;
  for (int i = 0; i < count(); ++i) {
    if (shards[static_cast<std::size_t>(i)].rank == rank) own.push_back(i);
  }
  return own;
}

std::vector<Shard> half_shards(const Shape& whole, const std::array<std::int64_t, 2>& block,
                               int ranks) {
  require_enough("q_len", whole.q_len, ranks);
  require_enough("kv_len", whole.kv_len, ranks);
  std::vector<Shard> halves;
  const std::int64_t parts = 2 * std::int64_t{ranks};
  // A token's q, k and v lie on one rank.
  const bool is_square = whole.q_len == whole.kv_len;
  const std::int64_t common = std::lcm(block[0], block[1]);
  const std::int64_t q_side = is_square ? common : block[0];
  const std::int64_t kv_side = is_square ? common : block[1];
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t q = begin_of_part(whole.q_len, q_side, i, parts);
    const std::int64_t kv = begin_of_part(whole.kv_len, kv_side, i, parts);
    halves.push_back({.q_begin = q,
                      .q_len = begin_of_part(whole.q_len, q_side, i + 1, parts) - q,
                      .kv_begin = kv,
                      .kv_len = begin_of_part(whole.kv_len, kv_side, i + 1, parts) - kv});
  }
  return halves;
}

ShardList contiguous_shards(std::span<const Shard> halves) {
  ShardList list{.sharding = Sharding::contiguous, .shards = {}};
  for (std::size_t i = 0; i + 1 < halves.size(); i += 2) {
    list.shards.push_back({joined(halves[i], halves[i + 1]), static_cast<int>(i / 2)});
  }
  return list;
}

ShardList zigzag_shards(std::span<const Shard> halves) {
  ShardList list{.sharding = Sharding::zigzag, .shards = {}};
  for (std::size_t i = 0; i < halves.size(); ++i) {
    list.shards.push_back({halves[i], static_cast<int>(std::min(i, halves.size() - 1 - i))});
  }
  return list;
}

ShardList shards_of_lengths(const Shape& whole, std::span<const std::int64_t> q_lengths,
                            std::span<const std::int64_t> kv_lengths, int ranks) {
  require_lengths("q_lengths", q_lengths, ranks, whole.q_len);
  require_lengths("kv_lengths", kv_lengths, ranks, whole.kv_len);
  ShardList list{.sharding = Sharding::contiguous, .shards = {}};
  std::int64_t q = 0;
  std::int64_t kv = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    list.shards.push_back({{q, q_lengths[i], kv, kv_lengths[i]}, rank});
    q += q_lengths[i];
    kv += kv_lengths[i];
  }
  return list;
}

Sharding cheaper_sharding(std::span<const std::int64_t> tiles) {
  return cheaper_sharding(tiles, tiles);
}

Sharding cheaper_sharding(std::span<const std::int64_t> contiguous,
                          std::span<const std::int64_t> zigzag) {
  std::int64_t of_contiguous = 0;
  std::int64_t of_zigzag = 0;
  for (std::size_t i = 0; i < contiguous.size() / 2; ++i) {
    of_contiguous = std::max(of_contiguous, contiguous[2 * i] + contiguous[2 * i + 1]);
    of_zigzag = std::max(of_zigzag, zigzag[i] + zigzag[zigzag.size() - 1 - i]);
  }
  return of_zigzag < of_contiguous - of_contiguous / 32 ? Sharding::zigzag : Sharding::contiguous;
}

}  // namespace tilewright::parallel
