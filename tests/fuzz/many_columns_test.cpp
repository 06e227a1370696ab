// Which cases have few rows of q over so many columns that a GPU's kernels cut them into parts.
#include "fuzz/many_columns.hpp"

#include <algorithm>
#include <cstdint>

#include "fuzz/random_case.hpp"
#include "runtime/call/call_split.hpp"
#include "runtime/call/few_rows.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

constexpr std::int64_t kMany = 1152;  // columns

std::int64_t elements_of(const FuzzCase& c) {
  const Shape& shape = c.shape;
  if (!c.spec.is_packed()) return shape.batch * shape.num_q_heads * shape.q_len * shape.kv_len;
  std::int64_t elements = 0;
  for (const FuzzSequence& one : c.packing.sequences) {
    elements += shape.num_q_heads * one.q_len * one.kv_len;
  }
  return elements;
}

std::int64_t longest_kv(const FuzzCase& c) {
  if (!c.spec.is_packed()) return c.shape.kv_len;
  std::int64_t longest = 0;
  for (const FuzzSequence& one : c.packing.sequences) longest = std::max(longest, one.kv_len);
  return longest;
}

// What an H100 does with the call: of a packed one as if its rows were shared equally.
std::int64_t parts_of(const FuzzCase& c) {
  Shape shape = c.shape;
  if (c.spec.is_packed()) {
    shape.batch = static_cast<std::int64_t>(c.packing.sequences.size());
    shape.q_len = std::max<std::int64_t>(1, (c.shape.q_len + shape.batch - 1) / shape.batch);
    shape.kv_len = longest_kv(c);
  }
  return split_of_call(c.spec, Target::parse("sm_90a"), 132, shape).parts;
}

bool has_decoded_sequence_of_many_columns(const FuzzCase& c) {
  return std::any_of(c.packing.sequences.begin(), c.packing.sequences.end(),
                     [&](const FuzzSequence& one) {
                       Shape shape = c.shape;
                       shape.q_len = one.q_len;
                       return one.q_len > 0 && one.kv_len >= kMany && are_decoded(c.spec, shape);
                     });
}

struct Counts {
  int split = 0, packed_split = 0, decoded = 0, packed_decoded = 0;
  int many = 0;
};

Counts counts_of(CaseMaker& maker, int groups) {
  Counts counts;
  for (int group = 0; group < groups; ++group) {
    for (const FuzzCase& c : maker.next_group(5)) {
      counts.many += longest_kv(c) >= kMany ? 1 : 0;
      if (c.spec.is_packed()) {
        counts.packed_decoded += has_decoded_sequence_of_many_columns(c) ? 1 : 0;
        counts.packed_split += parts_of(c) > 1 ? 1 : 0;
      } else if (c.split) {
        counts.decoded += has_few_rows(c.spec, c.shape) && c.shape.kv_len >= kMany ? 1 : 0;
        counts.split += parts_of(c) > 1 ? 1 : 0;
      }
    }
  }
  return counts;
}

TEST_CASE("fuzz: cases for a Hopper GPU come to split q tiles and to cut decoded columns") {
  CaseMaker maker({.device = "cuda", .gpu_target = "sm_90a"}, 21);
  const Counts counts = counts_of(maker, 160);
  CAPTURE(counts.split, counts.packed_split, counts.decoded, counts.packed_decoded, counts.many);
  CHECK(counts.split >= 4);
  CHECK(counts.packed_split >= 4);
  CHECK(counts.decoded >= 4);
  CHECK(counts.packed_decoded >= 4);
}

TEST_CASE("fuzz: on a CPU few calls have many columns, and none more elements than others") {
  const CaseSource source;
  CaseMaker maker(source, 22);
  int calls = 0, many = 0;
  for (int group = 0; group < 160; ++group) {
    for (const FuzzCase& c : maker.next_group(5)) {
      ++calls;
      if (longest_kv(c) < kMany) continue;
      ++many;
      CHECK(elements_of(c) <= source.max_elements);
      CHECK_NOTHROW(validate_sizes(c));
    }
  }
  CAPTURE(calls, many);
  CHECK(many >= 5);
  CHECK(many <= calls / 12);
}

TEST_CASE("fuzz: where as many keys as queries are asked for no call has many columns") {
  CaseMaker maker({.device = "cuda", .gpu_target = "sm_90a", .self_attention = true}, 23);
  CHECK(counts_of(maker, 40).many == 0);
}

}  // namespace
