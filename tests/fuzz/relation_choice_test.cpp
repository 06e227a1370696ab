#include "fuzz/relation_choice.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fuzz/random_case.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

FuzzCase packed_causal() {
  FuzzCase c;
  c.spec = {
      .dtype = DType::f32, .head_dim = 16, .layout = Layout::packed, .mask_mod = "q_idx >= kv_idx"};
  c.packing.sequences = {{3, 7}, {0, 9}};
  set_totals(c.shape, c.packing);
  return c;
}

}  // namespace

TEST_CASE("fuzz: positions are asked for where lists can stand for the mask") {
  const FuzzCase suits = packed_causal();
  CHECK(applies(Relation::positions, suits));
  for (const char* const mask : {"", "q_idx >= b", "kv_token > 3", "q_idx < q_len"}) {
    CAPTURE(mask);
    FuzzCase c = suits;
    c.spec.mask_mod = mask;
    CHECK_FALSE(applies(Relation::positions, c));
  }
  FuzzCase moved = suits;
  moved.packing.has_kv_offset = true;
  CHECK(applies(Relation::positions, moved));
  moved.packing.sequences[0].kv_offset = 5;
  CHECK_FALSE(applies(Relation::positions, moved));
  FuzzCase distant = suits;
  distant.packing.has_q_offset = true;
  distant.packing.sequences[0].q_offset = 4093;
  CHECK(applies(Relation::positions, distant));
  distant.packing.sequences[0].q_offset = 4094;
  CHECK_FALSE(applies(Relation::positions, distant));
}

TEST_CASE("fuzz: a call without filled sequences has none that could be dense") {
  FuzzCase c = packed_causal();
  CHECK(applies(Relation::packed_as_dense, c));
  c.packing.sequences = {{3, 0}, {0, 9}};
  CHECK_FALSE(applies(Relation::packed_as_dense, c));
}

TEST_CASE("fuzz: the relation that was asked for least often is next") {
  RelationChoice choice;
  std::map<std::string, int> asked;
  FuzzCase c = packed_causal();
  for (int i = 0; i < 40; ++i) {
    choice.ask(c);
    ++asked[c.relation];
  }
  for (const auto& [relation, count] : asked) {
    CAPTURE(relation, count, asked.size());
    CHECK(count * static_cast<int>(asked.size()) <= 40 + static_cast<int>(asked.size()));
  }
  FuzzCase other = packed_causal();
  choice.ask_for_rare(other);
  CHECK(other.relation.empty());
  // Of a call without a mask, which positions need, until they are too far apart.
  FuzzCase without_mask = packed_causal();
  without_mask.spec.mask_mod.clear();
  for (int i = 0; i < 80; ++i) choice.ask(without_mask);
  choice.ask_for_rare(other);
  CHECK(other.relation == "positions");
}

TEST_CASE("fuzz: a campaign as long as a day's asks for every relation, whatever its seed") {
  const std::vector<std::uint64_t> seeds = {20261126, 20261127, 20261128, 20261129};
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (!is_due(i, seeds.size())) continue;
    const std::uint64_t seed = seeds[i];
    CaseMaker maker({}, seed);
    std::map<std::string, int> asked;
    for (int cases = 0; cases < 730;) {
      for (const FuzzCase& fuzz_case : maker.next_group(2)) {
        ++cases;
        if (!fuzz_case.relation.empty()) ++asked[fuzz_case.relation];
      }
    }
    for (const Relation relation : all_relations()) {
      CAPTURE(seed, to_string(relation));
      CHECK(asked[std::string(to_string(relation))] > 0);
    }
  }
}
