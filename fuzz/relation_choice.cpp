#include "fuzz/relation_choice.hpp"

#include <algorithm>
#include <optional>

#include "fuzz/clamped_lengths.hpp"
#include "fuzz/packed_relation_calls.hpp"

namespace tilewright::verify::fuzz {
namespace {

std::vector<SequenceRows> rows_of(const FuzzPacking& packing) {
  const PackedShape shape = {.batch = static_cast<std::int64_t>(packing.sequences.size()),
                             .total_q = total_q_of(packing),
                             .total_kv = total_kv_of(packing)};
  return ClampedLengths(numbers_of(packing), shape).rows;
}

}  // namespace

bool applies(Relation relation, const FuzzCase& fuzz_case) {
  if (!applies(relation, fuzz_case.spec, fuzz_case.shape)) return false;
  switch (relation) {
    case Relation::packed_as_dense:
      return !filled_sequences(rows_of(fuzz_case.packing)).empty();
    case Relation::paged:
      return !filled_sequences(rows_of(fuzz_case.packing)).empty();
    case Relation::new_rows:
      return suits_new_rows(fuzz_case.spec) &&
             !filled_sequences(rows_of(fuzz_case.packing)).empty();
    case Relation::merged_ranges:
      return suits_ranges(fuzz_case.spec) && !filled_sequences(rows_of(fuzz_case.packing)).empty();
    case Relation::positions:
      return length_of_positions(fuzz_case.spec, rows_of(fuzz_case.packing)).has_value();
    case Relation::lying_lengths:
      // A user's text need not stand lengths that lie.
      return has_all_trees(fuzz_case);
    default:
      return true;
  }
}

std::optional<Relation> RelationChoice::rarest_of(const FuzzCase& fuzz_case) {
  std::optional<Relation> rarest;
  for (const Relation relation : all_relations()) {
    if (!applies(relation, fuzz_case)) continue;
    if (!rarest || asked_[relation] < asked_[*rarest]) rarest = relation;
  }
  return rarest;
}

void RelationChoice::ask(FuzzCase& fuzz_case) {
  const std::optional<Relation> rarest = rarest_of(fuzz_case);
  if (!rarest) return;
  ++asked_[*rarest];
  fuzz_case.relation = to_string(*rarest);
}

void RelationChoice::ask_for_rare(FuzzCase& fuzz_case) {
  const std::int64_t most = most_asked(fuzz_case.spec.is_packed());
  std::optional<Relation> rarest = rarest_of(fuzz_case);
  bool is_rare = rarest && 2 * asked_[*rarest] < most;
  // Few specs have gradients or dropout.
  for (const Relation relation : {Relation::reversed_batches, Relation::doubled_dout,
                                  Relation::no_dropout, Relation::seed_in_buffer}) {
    if (is_rare || asked_[relation] >= 2 || !applies(relation, fuzz_case)) continue;
    rarest = relation;
    is_rare = true;
  }
  if (!is_rare) return;
  ++asked_[*rarest];
  fuzz_case.relation = to_string(*rarest);
}

std::int64_t RelationChoice::most_asked(bool of_packed) const {
  std::int64_t most = 0;
  for (const auto& [relation, count] : asked_) {
    if (is_of_packed(relation) == of_packed) most = std::max(most, count);
  }
  return most;
}

}  // namespace tilewright::verify::fuzz
