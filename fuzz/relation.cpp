#include "fuzz/relation.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/enum_names.hpp"
#include "base/error.hpp"
#include "generator/snippet/snippet.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr std::array kRelationNames = {
    std::pair{Relation::permuted_keys, std::string_view("permuted_keys")},
    std::pair{Relation::split_keys, std::string_view("split_keys")},
    std::pair{Relation::added_constant, std::string_view("added_constant")},
    std::pair{Relation::mask_as_score, std::string_view("mask_as_score")},
    std::pair{Relation::tactics, std::string_view("tactics")},
    std::pair{Relation::duplicated_keys, std::string_view("duplicated_keys")},
    std::pair{Relation::one_head, std::string_view("one_head")},
    std::pair{Relation::one_batch, std::string_view("one_batch")},
    std::pair{Relation::linear_in_v, std::string_view("linear_in_v")},
    std::pair{Relation::padding, std::string_view("padding")},
    std::pair{Relation::offsets, std::string_view("offsets")},
    std::pair{Relation::proved_mask, std::string_view("proved_mask")},
    std::pair{Relation::json_spec, std::string_view("json_spec")},
    std::pair{Relation::equal_scales, std::string_view("equal_scales")},
    std::pair{Relation::no_sink, std::string_view("no_sink")},
    std::pair{Relation::cached, std::string_view("cached")},
    std::pair{Relation::reversed_batches, std::string_view("reversed_batches")},
    std::pair{Relation::doubled_dout, std::string_view("doubled_dout")},
    std::pair{Relation::no_dropout, std::string_view("no_dropout")},
    std::pair{Relation::seed_in_buffer, std::string_view("seed_in_buffer")},
    std::pair{Relation::one_sequence, std::string_view("one_sequence")},
    std::pair{Relation::permuted_sequences, std::string_view("permuted_sequences")},
    std::pair{Relation::packed_as_dense, std::string_view("packed_as_dense")},
    std::pair{Relation::planned_again, std::string_view("planned_again")},
    std::pair{Relation::positions, std::string_view("positions")},
    std::pair{Relation::paged, std::string_view("paged")},
    std::pair{Relation::new_rows, std::string_view("new_rows")},
    std::pair{Relation::merged_ranges, std::string_view("merged_ranges")},
    std::pair{Relation::lying_lengths, std::string_view("lying_lengths")}};

constexpr std::array kRelations = [] {
  std::array<Relation, kRelationNames.size()> relations{};
  for (std::size_t i = 0; i < kRelationNames.size(); ++i) relations[i] = kRelationNames[i].first;
  return relations;
}();

// What dropout draws for an element depends on its batch, head, row and column. These relations
// change one of them.
bool moves_elements(Relation relation) {
  switch (relation) {
    case Relation::permuted_keys:
    case Relation::duplicated_keys:
    case Relation::one_head:
    case Relation::one_batch:
    case Relation::offsets:
    case Relation::reversed_batches:
    case Relation::permuted_sequences:
    case Relation::packed_as_dense:
      return true;
    default:
      return false;
  }
}

bool knows_batches(const Spec& spec) {
  return std::any_of(snippet_kinds().begin(), snippet_kinds().end(), [&](SnippetKind kind) {
    const std::string& text = snippet_text(spec, kind);
    return !text.empty() && check_snippet(kind, text).mentions("b");
  });
}

}  // namespace

std::string_view to_string(Relation relation) {
  return name_in(kRelationNames, relation);
}

Relation relation_from_string(std::string_view name) {
  if (const auto relation = value_in(kRelationNames, name)) return *relation;
  throw Error(ErrorCode::file, fmt::format("there is no relation \"{}\"", name));
}

std::span<const Relation> all_relations() {
  return kRelations;
}

bool is_of_packed(Relation relation) {
  return relation >= Relation::one_sequence;
}

bool is_of_gradients(Relation relation) {
  return relation == Relation::reversed_batches || relation == Relation::doubled_dout;
}

bool is_of_dropout(Relation relation) {
  return relation == Relation::no_dropout || relation == Relation::seed_in_buffer;
}

bool applies(Relation relation, const Spec& spec, const Shape& shape) {
  if (is_of_dropout(relation)) return spec.has_dropout();
  if (spec.has_dropout() && moves_elements(relation)) return false;
  if (is_of_gradients(relation) && spec.gradients.empty()) return false;
  if (relation == Relation::doubled_dout) return true;
  if (spec.is_packed() != is_of_packed(relation)) return false;
  switch (relation) {
    case Relation::permuted_keys:
      return shape.kv_offset == 0;
    case Relation::split_keys:
    case Relation::added_constant:
    case Relation::duplicated_keys:
    case Relation::no_sink:
      return spec.sink.empty();  // it is no key: it counts once, and score_mod does not see it
    case Relation::mask_as_score:
    case Relation::proved_mask:
    case Relation::positions:
      return !spec.mask_mod.empty();
    case Relation::one_head:
      return shape.num_q_heads > 1;
    case Relation::reversed_batches:
      return shape.batch > 1 && !knows_batches(spec);
    case Relation::one_batch:
    case Relation::one_sequence:
    case Relation::permuted_sequences:
      return shape.batch > 1;
    default:
      return true;
  }
}

}  // namespace tilewright::verify::fuzz
