#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "fuzz/clamped_lengths.hpp"
#include "fuzz/column_relations.hpp"
#include "fuzz/packed_relation_calls.hpp"
#include "fuzz/relation_comparison.hpp"
#include "fuzz/relations.hpp"
#include "verify/random.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr std::size_t kMostSequences = 3;  // that are looked at alone

class PackedChecks {
 public:
  PackedChecks(const Spec& spec, const Inputs& inputs, const FuzzPacking& packing,
               RelationRunner& runner)
      : base_(spec, inputs, packing),
        packing_(packing),
        runner_(runner),
        wanted_(run_as_given(inputs)) {}

  RelationResult one_sequence() {
    for (const std::size_t b : some_of(with_rows())) {
      PackedRelationCall call = base_;
      call.empty_others(b, base_.rows[b]);
      std::string wrong = other_bits(call.run(runner_), base_.rows[b], "among empty ones", b);
      if (!wrong.empty()) return {.message = std::move(wrong)};
      if (base_.tells_sequences_apart() || base_.rows[b].kv_len == 0) continue;
      PackedRelationCall alone = base_;
      alone.keep_alone(b);
      const AttentionValues got = alone.run(runner_);
      wrong = same_bits(got, rows(wanted_, base_.rows[b]), "a sequence alone");
      if (!wrong.empty()) return {.message = fmt::format("sequence {}: {}", b, wrong)};
    }
    return {};
  }

  // Where the snippets tell sequences apart, theirs are other kernels.
  RelationResult permuted_sequences() {
    std::vector<std::size_t> order(base_.rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i-- > 1;) std::swap(order[i], order[below(i + 1)]);
    PackedRelationCall call = base_;
    call.permute(order);
    const AttentionValues got = call.run(runner_);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const AttentionValues mine = rows(got, call.rows[i]);
      const AttentionValues theirs = rows(wanted_, base_.rows[order[i]]);
      RelationResult result;
      if (base_.tells_sequences_apart()) {
        result = RelationComparison(base_.spec, theirs).with(mine);
      } else {
        result.message = same_bits(mine, theirs, "another order of sequences");
      }
      if (!result.holds()) {
        result.message = fmt::format("sequence {} as sequence {}: {}", order[i], i, result.message);
        return result;
      }
    }
    return {};
  }

  RelationResult packed_as_dense() {
    const std::vector<std::size_t> filled = base_.filled();
    if (filled.empty()) return {.applies = false};
    const std::size_t b = filled[below(filled.size())];
    const RelationCall call = base_.dense(b);
    const AttentionValues mine = rows(wanted_, base_.rows[b]);
    RelationResult result = RelationComparison(base_.spec, mine)
                                .with(runner_.forward(call.spec, call.inputs.problem()));
    if (!result.holds()) result.message = fmt::format("sequence {}: {}", b, result.message);
    return result;
  }

  // Rows with negative positions keep nothing.
  RelationResult positions() {
    const std::optional<std::int64_t> length = length_of_positions(base_.spec, base_.rows);
    if (!length) return {.applies = false};
    SequenceNumbers numbers = numbers_of(base_.q_begin, base_.rows);
    numbers.kv_offset.reset();
    const SequenceMemory memory(numbers);
    Problem problem = base_.inputs.problem();
    problem.sequences = memory.sequences();
    const AttentionValues got = runner_.forward_with_positions(base_.spec, problem, *length);
    for (std::size_t b = 0; b < base_.rows.size(); ++b) {
      const SequenceRows& one = base_.rows[b];
      const std::int64_t negative = std::clamp<std::int64_t>(-one.q_offset, 0, one.q_len);
      if (!keeps_nothing(rows_of(got, one.q_begin, negative))) {
        return {.message = fmt::format("sequence {}: a row with q_idx < 0 keeps something", b)};
      }
      const std::int64_t first = one.q_begin + negative, count = one.q_len - negative;
      if (count == 0) continue;
      RelationResult result = RelationComparison(base_.spec, rows_of(wanted_, first, count))
                                  .with(rows_of(got, first, count));
      if (result.holds()) continue;
      result.message = fmt::format("sequence {}: {}", b, result.message);
      return result;
    }
    return {};
  }

  RelationResult of_columns(Relation relation) {
    return check_column_relation(relation, base_, wanted_, runner_);
  }

  RelationResult planned_again() {
    PackedRelationCall others = base_;
    std::vector<std::size_t> order(base_.rows.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = (i + 1) % order.size();
    others.permute(order);
    const SequenceNumbers numbers = numbers_of(base_.q_begin, base_.rows);
    const SequenceMemory memory(numbers);
    Problem problem = base_.inputs.problem();
    problem.sequences = memory.sequences();
    const std::vector<AttentionValues> results = runner_.forward_replanned(
        base_.spec, problem, numbers_of(others.q_begin, others.rows), numbers);
    constexpr const char* kHow[] = {"a plan over another", "a rebuilt plan",
                                    "a plan that was rebuilt for other contents"};
    for (std::size_t i = 0; i < results.size(); ++i) {
      for (const SequenceRows& one : base_.rows) {
        std::string wrong = same_bits(rows(results[i], one), rows(wanted_, one), kHow[i]);
        if (!wrong.empty()) return {.message = std::move(wrong)};
      }
    }
    return {};
  }

  RelationResult lying_lengths() {
    for (int round = 0; round < 4; ++round) {
      const SequenceNumbers numbers = lies(round % 2 == 0);
      RelationResult result = check_lies(numbers, round < 2);
      if (!result.holds()) return result;
    }
    return {};
  }

 private:
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(count) - 1));
  }

  // The tensors as the case gives them; all other calls give every tensor.
  AttentionValues run_as_given(const Inputs& inputs) const {
    const SequenceMemory memory(numbers_of(packing_));
    Problem problem = inputs.problem();
    problem.sequences = memory.sequences();
    return runner_.forward(base_.spec, problem);
  }

  std::vector<std::size_t> with_rows() const {
    std::vector<std::size_t> found;
    for (std::size_t b = 0; b < base_.rows.size(); ++b) {
      if (base_.rows[b].q_len > 0) found.push_back(b);
    }
    return found;
  }

  std::vector<std::size_t> some_of(std::vector<std::size_t> all) {
    while (all.size() > kMostSequences) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(below(all.size())));
    }
    return all;
  }

  // lse of such a row is its sink.
  bool keeps_nothing(const AttentionValues& rows) const {
    const auto is_zero = [](double x) { return x == 0; };
    const auto is_none = [](double x) { return x == -std::numeric_limits<double>::infinity(); };
    const auto is_number = [](double x) { return !std::isnan(x); };
    const std::vector<double>& lse = rows.lse.data;
    return std::all_of(rows.out.data.begin(), rows.out.data.end(), is_zero) &&
           (base_.spec.sink.empty() ? std::all_of(lse.begin(), lse.end(), is_none)
                                    : std::all_of(lse.begin(), lse.end(), is_number));
  }

  static AttentionValues rows(const AttentionValues& all, const SequenceRows& of) {
    return rows_of(all, of.q_begin, of.q_len);
  }

  std::string other_bits(const AttentionValues& got, const SequenceRows& of, const char* how,
                         std::size_t b) const {
    const std::string what = fmt::format("sequence {} {}", b, how);
    return same_bits(rows(got, of), rows(wanted_, of), what.c_str());
  }

  // The case's tensors, or all of them, with some values that are wrong. Positions lie only where
  // nothing computes with them.
  SequenceNumbers lies(bool as_given) {
    SequenceNumbers numbers =
        as_given ? numbers_of(packing_) : numbers_of(base_.q_begin, base_.rows);
    std::vector<std::vector<std::int64_t>*> tensors = {&numbers.q_begin, &numbers.kv_begin};
    if (numbers.kv_len) tensors.push_back(&*numbers.kv_len);
    const bool has_mods = !base_.spec.score_mod.empty() || !base_.spec.mask_mod.empty();
    if (!has_mods && !base_.spec.has_other_snippets()) {
      if (numbers.q_offset) tensors.push_back(&*numbers.q_offset);
      if (numbers.kv_offset) tensors.push_back(&*numbers.kv_offset);
    }
    const std::int64_t count = random_.integer(1, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<std::int64_t>& tensor = *tensors[below(tensors.size())];
      if (!tensor.empty()) tensor[below(tensor.size())] = lie();
    }
    return numbers;
  }

  std::int64_t lie() {
    constexpr std::int64_t kGreatest = std::numeric_limits<std::int32_t>::max();
    const Shape& totals = base_.inputs.shape;
    const std::int64_t lies[] = {-1,
                                 0,
                                 kGreatest,
                                 -kGreatest - 1,
                                 totals.q_len,
                                 totals.q_len + 1,
                                 totals.kv_len + 1,
                                 random_.integer(-5, totals.q_len + 5)};
    return lies[below(std::size(lies))];
  }

  RelationResult check_lies(const SequenceNumbers& numbers, bool is_bounded) {
    PackedShape shape{.batch = base_.batch(),
                      .num_q_heads = base_.inputs.shape.num_q_heads,
                      .num_kv_heads = base_.inputs.shape.num_kv_heads,
                      .total_q = base_.inputs.shape.q_len,
                      .total_kv = base_.inputs.shape.kv_len};
    if (is_bounded) {
      for (const SequenceRows& one : base_.rows) {
        shape.max_kv_len = std::max(shape.max_kv_len, one.kv_len);
      }
    }
    const ClampedLengths clamped(numbers, shape);
    const SequenceMemory memory(numbers);
    Problem problem = base_.inputs.problem();
    problem.sequences = memory.sequences();
    const RelationRunner::OfLies got = runner_.forward_with_lies(base_.spec, problem, shape);
    if (!got.damage.empty()) return {.message = got.damage};
    if (got.report.count != clamped.report.count || got.report.text() != clamped.report.text()) {
      return {.message = fmt::format("the plan reports \"{}\", but should report \"{}\"",
                                     got.report.text(), clamped.report.text())};
    }
    return has_room(clamped.rows, got) ? compare_clamped(clamped.rows, got.values)
                                       : RelationResult{};
  }

  // A sequence that shares its rows with no other is what it is alone.
  RelationResult compare_clamped(const std::vector<SequenceRows>& clamped,
                                 const AttentionValues& got) {
    std::vector<std::size_t> apart;
    for (std::size_t b = 0; b < clamped.size(); ++b) {
      if (clamped[b].q_len > 0 && is_apart(clamped, b)) apart.push_back(b);
    }
    for (const std::size_t b : some_of(apart)) {
      PackedRelationCall call = base_;
      call.empty_others(b, clamped[b]);
      const std::string what = fmt::format("sequence {} among lies", b);
      std::string wrong =
          same_bits(rows(got, clamped[b]), rows(call.run(runner_), clamped[b]), what.c_str());
      if (!wrong.empty()) return {.message = std::move(wrong)};
    }
    return {};
  }

  static bool is_apart(const std::vector<SequenceRows>& all, std::size_t b) {
    for (std::size_t other = 0; other < all.size(); ++other) {
      if (other == b) continue;
      const std::int64_t first = std::max(all[b].q_begin, all[other].q_begin);
      const std::int64_t end =
          std::min(all[b].q_begin + all[b].q_len, all[other].q_begin + all[other].q_len);
      if (first < end) return false;
    }
    return true;
  }

  // A plan leaves out rows of tiles beyond those that sequences apart can have.
  static bool has_room(const std::vector<SequenceRows>& clamped,
                       const RelationRunner::OfLies& got) {
    std::int64_t blocks = 0;
    for (const SequenceRows& one : clamped) blocks += ceil_div(one.q_len, got.row_side);
    return blocks <= got.room;
  }

  PackedRelationCall base_;
  const FuzzPacking& packing_;
  RelationRunner& runner_;
  AttentionValues wanted_;
  Random random_{1, "packed relations"};
};

}  // namespace

RelationResult check_packed_relation(Relation relation, const Spec& spec, const Inputs& inputs,
                                     const FuzzPacking& packing, RelationRunner& runner) {
  PackedChecks checks(spec, inputs, packing, runner);
  switch (relation) {
    case Relation::one_sequence:
      return checks.one_sequence();
    case Relation::permuted_sequences:
      return checks.permuted_sequences();
    case Relation::packed_as_dense:
      return checks.packed_as_dense();
    case Relation::planned_again:
      return checks.planned_again();
    case Relation::positions:
      return checks.positions();
    case Relation::paged:
    case Relation::new_rows:
    case Relation::merged_ranges:
      return checks.of_columns(relation);
    case Relation::lying_lengths:
      return checks.lying_lengths();
    default:
      return {.applies = false};
  }
}

}  // namespace tilewright::verify::fuzz
