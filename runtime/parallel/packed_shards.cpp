#include "runtime/parallel/packed_shards.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::parallel {
namespace {

[[noreturn]] void refuse_lengths(const std::string& what, const std::string& hint) {
  throw Error(ErrorCode::tensor, what, hint);
}

void require_begins(std::string_view name, const std::vector<std::int64_t>& begins) {
  if (begins.empty() || begins.front() != 0) {
    refuse_lengths(begins.empty() ? fmt::format("{} is empty", name)
                                  : fmt::format("{}[0] is {}; it must be 0", name, begins.front()),
                   "give the first row of each sequence, from 0, and the number of rows");
  }
  for (std::size_t i = 1; i < begins.size(); ++i) {
    if (begins[i] >= begins[i - 1] && begins[i] <= std::numeric_limits<std::int32_t>::max())
      continue;
    refuse_lengths(fmt::format("{}[{}] is {}, after {}", name, i, begins[i], begins[i - 1]),
                   "begins rise, up to 2147483647");
  }
}

void require_count(std::string_view name, std::size_t count, std::size_t wanted) {
  if (count == wanted) return;
  refuse_lengths(
      fmt::format("{} has {} numbers, and q_begin is of {} sequences", name, count, wanted),
      "give one for each sequence, or leave it empty");
}

std::int64_t sequences_of(const SharedSequences& whole) {
  return std::ssize(whole.q_begin) - 1;
}

std::int64_t length_of(const std::vector<std::int64_t>& begins, std::int64_t b) {
  return begins[static_cast<std::size_t>(b) + 1] - begins[static_cast<std::size_t>(b)];
}

void require_rows(std::string_view what, std::int64_t rows, int ranks) {
  if (rows >= 2 * std::int64_t{ranks}) return;
  refuse_lengths(fmt::format("all sequences together have {} {}, and {} ranks take at least {}",
                             rows, what, ranks, 2 * ranks),
                 "use fewer ranks for so few");
}

struct Range {
  std::int64_t first;
  std::int64_t count;
};

// What a range of packed tokens has of a sequence.
Range common(const std::vector<std::int64_t>& begins, std::int64_t b, std::int64_t first,
             std::int64_t end) {
  const std::int64_t begin = begins[static_cast<std::size_t>(b)];
  const std::int64_t from = std::max(first, begin);
  const std::int64_t to = std::min(end, begins[static_cast<std::size_t>(b) + 1]);
  return from < to ? Range{from - begin, to - from} : Range{0, 0};
}

PackedShard tokens_shard(const SharedSequences& whole, const Shard& tokens) {
  PackedShard shard;
  for (std::int64_t b = 0; b < sequences_of(whole); ++b) {
    const Range q = common(whole.q_begin, b, tokens.q_begin, tokens.q_begin + tokens.q_len);
    const Range kv = common(whole.kv_begin, b, tokens.kv_begin, tokens.kv_begin + tokens.kv_len);
    shard.push_back({q.first, q.count, kv.first, kv.count});
  }
  return shard;
}

// Parts of one sequence after another. The next one's rows that do not divide go to the parts after
// those that had one more.
class Splitter {
 public:
  explicit Splitter(std::int64_t parts) : parts_(parts) {}

  std::vector<Range> split(std::int64_t length) {
    std::vector<Range> ranges;
    std::int64_t first = 0;
    for (std::int64_t part = 0; part < parts_; ++part) {
      const bool has_more = (part + parts_ - next_) % parts_ < length % parts_;
      ranges.push_back({first, length / parts_ + (has_more ? 1 : 0)});
      first += ranges.back().count;
    }
    next_ = (next_ + length) % parts_;
    return ranges;
  }

 private:
  std::int64_t parts_;
  std::int64_t next_ = 0;
};

std::int64_t rows_of_shard(const PackedShard& shard, std::int64_t SequenceRange::*length) {
  return std::accumulate(
      shard.begin(), shard.end(), std::int64_t{0},
      [&](std::int64_t sum, const SequenceRange& range) { return sum + range.*length; });
}

void add_shard(PackedShards& shards, PackedShard shard, int rank, std::int64_t q_begin,
               std::int64_t kv_begin) {
  shards.list.shards.push_back({{.q_begin = q_begin,
                                 .q_len = rows_of_shard(shard, &SequenceRange::q_len),
                                 .kv_begin = kv_begin,
                                 .kv_len = rows_of_shard(shard, &SequenceRange::kv_len)},
                                rank});
  shards.shards.push_back(std::move(shard));
}

PackedShards of_tokens(const SharedSequences& whole, const ShardList& tokens) {
  PackedShards shards{.shards = {}, .list = {.sharding = Sharding::contiguous, .shards = {}}};
  for (const OwnedShard& owned : tokens.shards) {
    add_shard(shards, tokens_shard(whole, owned.shard), owned.rank, owned.shard.q_begin,
              owned.shard.kv_begin);
  }
  return shards;
}

}  // namespace

SharedSequences completed(const SharedSequences& sequences) {
  SharedSequences whole = sequences;
  require_begins("q_begin", whole.q_begin);
  if (whole.kv_begin.empty()) whole.kv_begin = whole.q_begin;
  require_begins("kv_begin", whole.kv_begin);
  const auto count = static_cast<std::size_t>(sequences_of(whole));
  require_count("kv_begin", whole.kv_begin.size() - 1, count);
  if (whole.kv_offset.empty()) whole.kv_offset.resize(count);
  require_count("kv_offset", whole.kv_offset.size(), count);
  if (whole.q_offset.empty()) {
    for (std::size_t b = 0; b < count; ++b) {
      const auto at = static_cast<std::int64_t>(b);
      whole.q_offset.push_back(whole.kv_offset[b] + length_of(whole.kv_begin, at) -
                               length_of(whole.q_begin, at));
    }
  }
  require_count("q_offset", whole.q_offset.size(), count);
  return whole;
}

Shape whole_of(const SharedSequences& sequences) {
  return {.batch = 1,
          .num_q_heads = sequences.num_q_heads,
          .num_kv_heads = sequences.num_kv_heads,
          .q_len = sequences.q_begin.back(),
          .kv_len = sequences.kv_begin.back()};
}

std::vector<PackedShard> half_shards(const SharedSequences& sequences, Sharding sharding,
                                     int ranks) {
  const Shape whole = whole_of(sequences);
  require_rows("rows", whole.q_len, ranks);
  require_rows("columns", whole.kv_len, ranks);
  const std::int64_t parts = 2 * std::int64_t{ranks};
  std::vector<PackedShard> halves(static_cast<std::size_t>(parts));
  if (sharding == Sharding::contiguous) {
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t q = whole.q_len * i / parts;
      const std::int64_t kv = whole.kv_len * i / parts;
      halves[static_cast<std::size_t>(i)] =
          tokens_shard(sequences, {.q_begin = q,
                                   .q_len = whole.q_len * (i + 1) / parts - q,
                                   .kv_begin = kv,
                                   .kv_len = whole.kv_len * (i + 1) / parts - kv});
    }
    return halves;
  }
  Splitter of_q(parts), of_kv(parts);
  for (std::int64_t b = 0; b < sequences_of(sequences); ++b) {
    const std::vector<Range> q = of_q.split(length_of(sequences.q_begin, b));
    const std::vector<Range> kv = of_kv.split(length_of(sequences.kv_begin, b));
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i].push_back({q[i].first, q[i].count, kv[i].first, kv[i].count});
    }
  }
  return halves;
}

PackedShards packed_shards(const SharedSequences& sequences, std::span<const PackedShard> halves,
                           Sharding sharding) {
  const auto parts = std::ssize(halves);
  if (sharding == Sharding::contiguous) {
    const Shape whole = whole_of(sequences);
    ShardList tokens;
    for (std::int64_t rank = 0; rank < parts / 2; ++rank) {
      const std::int64_t q = whole.q_len * 2 * rank / parts;
      const std::int64_t kv = whole.kv_len * 2 * rank / parts;
      tokens.shards.push_back({{.q_begin = q,
                                .q_len = whole.q_len * 2 * (rank + 1) / parts - q,
                                .kv_begin = kv,
                                .kv_len = whole.kv_len * 2 * (rank + 1) / parts - kv},
                               static_cast<int>(rank)});
    }
    return of_tokens(sequences, tokens);
  }
  PackedShards shards{.shards = {}, .list = {.sharding = Sharding::zigzag, .shards = {}}};
  for (std::int64_t i = 0; i < parts; ++i) {
    add_shard(shards, halves[static_cast<std::size_t>(i)],
              static_cast<int>(std::min(i, parts - 1 - i)), 0, 0);
  }
  return shards;
}

PackedShards packed_shards_of_lengths(const SharedSequences& sequences,
                                      std::span<const std::int64_t> q_lengths,
                                      std::span<const std::int64_t> kv_lengths, int ranks) {
  return of_tokens(sequences, shards_of_lengths(whole_of(sequences), q_lengths, kv_lengths, ranks));
}

}  // namespace tilewright::parallel
