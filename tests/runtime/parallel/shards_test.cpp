// How a sequence is split, which columns travel, and what snippets see.
#include "runtime/parallel/shards.hpp"

#include "runtime/parallel/schedule.hpp"
#include "runtime/parallel/shard_spec.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright::parallel {
namespace {

using test::refusal;

// A mask's work in each half shard, as causal has it.
const std::vector<std::int64_t> kRising = {1, 3, 5, 7};

// All rows of shard i meet columns [begin, end) of shard j.
Meetings meetings_of(const ShardList& list, int i, int j, std::int64_t begin, std::int64_t end) {
  Meetings meetings(list.shards.size() * list.shards.size());
  meetings[static_cast<std::size_t>(i) * list.shards.size() + static_cast<std::size_t>(j)] = {
      .tiles = 1, .row_begin = 0, .row_end = 8, .column_begin = begin, .column_end = end};
  return meetings;
}

}  // namespace

TEST_CASE("shards: they cover the sequence, at tiles where there are enough") {
  for (const std::int64_t length : {8, 9, 130, 4096, 10007}) {
    const Shape whole = {.q_len = length, .kv_len = 2 * length + 1};
    std::int64_t q = 0;
    std::int64_t kv = 0;
    for (const Shard& half : half_shards(whole, {128, 64}, 4)) {
      CHECK(half.q_begin == q);
      CHECK(half.kv_begin == kv);
      CHECK(half.q_len > 0);
      CHECK(half.kv_len > 0);
      if (length >= 4096) CHECK((half.q_begin % 128 == 0 && half.kv_begin % 64 == 0));
      q += half.q_len;
      kv += half.kv_len;
    }
    CHECK(q == whole.q_len);
    CHECK(kv == whole.kv_len);
  }
  CHECK_THAT(refusal([] {
               half_shards({.q_len = 7, .kv_len = 100}, {16, 16}, 4);
             }),
             Catch::Contains("q_len is 7, and 4 ranks take at least 8"));
}

TEST_CASE("shards: a token's q, k and v lie on one rank, whatever the sides of a tile") {
  for (const std::int64_t length : {100, 5000, 131072}) {
    for (const Shard& half : half_shards({.q_len = length, .kv_len = length}, {192, 80}, 3)) {
      CHECK(half.q_begin == half.kv_begin);
      CHECK(half.q_len == half.kv_len);
      if (length > 100000) CHECK((half.q_begin % 192 == 0 && half.q_begin % 80 == 0));
    }
  }
}

TEST_CASE("shards: zigzag where it makes the busiest rank less busy") {
  CHECK(cheaper_sharding(kRising) == Sharding::zigzag);
  CHECK(cheaper_sharding(std::vector<std::int64_t>{4, 4, 4, 4}) == Sharding::contiguous);
  CHECK(cheaper_sharding(std::vector<std::int64_t>{7, 1, 1, 7}) == Sharding::contiguous);
  const ShardList list = zigzag_shards(half_shards({.q_len = 64, .kv_len = 64}, {16, 16}, 2));
  CHECK(list.of_rank(0) == std::vector{0, 3});
  CHECK(list.of_rank(1) == std::vector{1, 2});
}

TEST_CASE("shards: given lengths") {
  const Shape whole = {.q_len = 10, .kv_len = 12};
  const std::vector<std::int64_t> q = {3, 7}, kv = {11, 1};
  const ShardList list = shards_of_lengths(whole, q, kv, 2);
  CHECK(list.shards[1].shard == Shard{3, 7, 11, 1});
  CHECK(list.shards[1].rank == 1);
  const std::vector<std::int64_t> three = {3, 3, 4}, little = {3, 6}, much = {3, 8}, none = {10, 0};
  CHECK_THAT(refusal([&] { shards_of_lengths(whole, three, kv, 2); }),
             Catch::Contains("q_lengths has 3 lengths, and the communicator 2 ranks"));
  CHECK_THAT(refusal([&] { shards_of_lengths(whole, little, kv, 2); }),
             Catch::Contains("q_lengths add up to 9, and the whole sequence has 10"));
  CHECK_THAT(refusal([&] { shards_of_lengths(whole, much, kv, 2); }),
             Catch::Contains("q_lengths[1] is 8; from 1 to 7 rows are left for it"));
  CHECK_THAT(refusal([&] { shards_of_lengths(whole, none, kv, 2); }),
             Catch::Contains("q_lengths[1] is 0"));
}

TEST_CASE("schedule: columns that a rank needs travel straight to it, and no others") {
  const ShardList list = contiguous_shards(half_shards({.q_len = 32, .kv_len = 32}, {4, 4}, 4));
  const ScheduleSizes sizes = {.head_dim = 16, .v_head_dim = 8, .kv_element = 2, .out_element = 2};
  const Meetings meetings = meetings_of(list, 2, 0, 4, 7);
  const Schedule sender = make_schedule(list, meetings, sizes, 0, 4);
  const Schedule reader = make_schedule(list, meetings, sizes, 2, 4);
  const Schedule other = make_schedule(list, meetings, sizes, 1, 4);
  REQUIRE(sender.steps.size() == 2);
  CHECK(sender.steps[1].distance == 2);
  CHECK(sender.steps[1].sends[0].peer == 2);
  CHECK(sender.steps[1].sends[0].first_column == 4);
  CHECK(sender.bytes_sent == 3 * (16 + 8) * 2);
  REQUIRE(reader.steps.size() == 2);
  CHECK(reader.steps[1].receives[0].columns == 3);
  CHECK(reader.bytes_received == sender.bytes_sent);
  CHECK(reader.calls() == 2);
  CHECK(reader.merges.size() == 1);
  CHECK(other.steps.size() == 1);
  CHECK(other.bytes_sent == 0);
  REQUIRE(sender.steps[1].returns.size() == 1);
  CHECK(sender.steps[1].returns[0].first_column == reader.steps[1].calls[0].first_column);
  CHECK(sender.steps[1].returns[0].columns == reader.steps[1].calls[0].columns);
}

TEST_CASE("schedule: rows are cut where a quarter is left out, and merged in pieces") {
  const ShardList list = contiguous_shards(half_shards({.q_len = 16, .kv_len = 16}, {1, 1}, 2));
  Meetings meetings(4);
  meetings[3] = {.tiles = 9, .row_begin = 0, .row_end = 8, .column_begin = 0, .column_end = 8};
  meetings[2] = {.tiles = 9, .row_begin = 1, .row_end = 7, .column_begin = 0, .column_end = 8};
  const ScheduleSizes sizes = {.head_dim = 16, .v_head_dim = 16, .kv_element = 4, .out_element = 4};
  const Schedule cut = make_schedule(list, meetings, sizes, 1, 2);
  CHECK(cut.steps[1].calls[0].first_row == 1);
  CHECK(cut.steps[1].calls[0].rows == 6);
  CHECK(cut.merges[0].first_row == 1);
  CHECK(cut.merges[0].rows == 6);
  meetings[2].row_begin = 0;
  const Schedule whole = make_schedule(list, meetings, sizes, 1, 2);
  CHECK(whole.steps[1].calls[0].rows == 8);
}

TEST_CASE("shard spec: lengths are scalars with as many letters, and dimensions of them free") {
  const Spec spec = {
      .head_dim = 16,
      .score_mod = "score + x.size(0) * kv_len",
      .mask_mod = "/* q_len */ q_idx < q_len && kv_000 < 5",
      .buffers = {{"x", {.dtype = f32, .shape = {NamedDim::kv_len, NamedDim::num_q_heads}}}},
      .scalars = {{"kv_000", {.dtype = i32, .default_value = 0}}}};
  const ShardSpec shard = shard_spec(spec);
  CHECK(shard.q_length == "q_000");
  CHECK(shard.kv_length == "kv_001");
  CHECK(shard.spec.mask_mod == "/* q_len */ q_idx < q_000 && kv_000 < 5");
  CHECK(shard.spec.score_mod == "score + x.size(0) * kv_001");
  CHECK(shard.spec.outputs.lse);
  CHECK(std::holds_alternative<FreeDim>(shard.spec.buffers.at("x").shape[0]));
  CHECK(std::holds_alternative<NamedDim>(shard.spec.buffers.at("x").shape[1]));
  const Spec plain = {.head_dim = 16, .mask_mod = "q_idx >= kv_idx", .outputs = {.lse = true}};
  CHECK(shard_spec(plain).spec == plain);
}

TEST_CASE("shard spec: what is not served yet") {
  Spec packed = {.head_dim = 16, .layout = Layout::packed, .mask_mod = "q_idx < kv_len"};
  CHECK_THAT(refusal([&] { shard_spec(packed); }),
             Catch::Contains("does not take snippets that read kv_len yet"));
  packed.mask_mod = "q_token < 5";
  CHECK_THAT(refusal([&] { shard_spec(packed); }),
             Catch::Contains("does not take snippets that read q_token yet"));
  packed = {.head_dim = 16, .layout = Layout::packed, .kv_layout = Layout::paged};
  CHECK_THAT(refusal([&] { shard_spec(packed); }),
             Catch::Contains("does not take k and v in pages"));
}

}  // namespace tilewright::parallel
