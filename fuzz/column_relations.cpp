#include "fuzz/column_relations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fuzz/paged_calls.hpp"
#include "fuzz/relation_comparison.hpp"
#include "runtime/io/float16.hpp"
#include "verify/random.hpp"
#include "verify/sequences.hpp"

namespace tilewright::verify::fuzz {
namespace {

class ColumnChecks {
 public:
  ColumnChecks(const PackedRelationCall& call, const AttentionValues& wanted,
               RelationRunner& runner)
      : base_(call), wanted_(wanted), runner_(runner) {}

  // Other pages and forms of the table give the same rows to the same kernel, and so the same bits.
  // Sizes of pages, strides and alignment choose among kernels.
  RelationResult paged() {
    const PageForm form = random_page_form(random_, longest());
    const AttentionValues first = in_pages(form);
    RelationResult result = RelationComparison(base_.spec, wanted_).with(first);
    if (!result.holds()) return in_pages_of(form, std::move(result));
    result.message = same_bits(in_pages(other_table(form)), first, "another order of pages");
    if (!result.holds()) return in_pages_of(form, std::move(result));
    PageForm other = random_page_form(random_, longest());
    result = RelationComparison(base_.spec, wanted_).with(in_pages(other));
    if (!result.holds()) return in_pages_of(other, std::move(result));
    if (suits_paged_x(base_.spec)) {
      other.is_x = true;
      result = RelationComparison(base_.spec, wanted_).with(in_pages(other));
      if (!result.holds()) return in_pages_of(other, std::move(result));
    }
    return knows_rows_of_k(base_.spec) ? RelationResult{} : freed_pages();
  }

  RelationResult new_rows() {
    if (!suits_new_rows(base_.spec)) return {.applies = false};
    const PageForm form = random_page_form(random_, longest());
    const std::uint64_t seed = random_.next();
    PagedCall appended(base_, form, seed);
    appended.take_new_rows();
    const AttentionValues wanted =
        runner_.forward_appended(appended.spec(), appended.problem(),
                                 {.k_new = appended.k_new(), .v_new = appended.v_new()});
    RelationResult result = RelationComparison(base_.spec, wanted_).with(wanted);
    if (!result.holds()) {
      result.message = fmt::format("after append: {}", result.message);
      return result;
    }
    PagedCall beside(base_, form, seed);
    beside.take_new_rows();
    beside.forget_new_pages();
    Spec spec = beside.spec();
    spec.kv_new = true;
    Problem problem = beside.problem();
    problem.k_new = beside.k_new();
    problem.v_new = beside.v_new();
    // Another kernel may serve it.
    result = RelationComparison(base_.spec, wanted).with(runner_.forward(spec, problem));
    if (!result.holds()) result.message = fmt::format("beside pages: {}", result.message);
    return result;
  }

  RelationResult merged_ranges() {
    if (!suits_ranges(base_.spec)) return {.applies = false};
    PackedRelationCall first = base_, second = base_;
    for (std::size_t b = 0; b < base_.rows.size(); ++b) {
      const std::int64_t cut = random_.integer(0, base_.rows[b].kv_len);
      first.rows[b].kv_len = cut;
      second.rows[b].kv_begin += cut;
      second.rows[b].kv_offset += cut;
      second.rows[b].kv_len -= cut;
    }
    const SequenceMemory of_first(numbers_of(first.q_begin, first.rows));
    const SequenceMemory of_second(numbers_of(second.q_begin, second.rows));
    std::array problems = {first.inputs.problem(), second.inputs.problem()};
    problems[0].sequences = of_first.sequences();
    problems[1].sequences = of_second.sequences();
    const RelationRunner::Merged got = runner_.forward_merged(base_.spec, problems);
    // Each part's out is rounded by itself, and their weights sum to 1.
    double greatest = 0;
    for (const AttentionValues& part : got.parts) {
      for (const double x : part.out.data) {
        if (std::isfinite(x)) greatest = std::max(greatest, std::abs(x));
      }
    }
    const double rounding =
        4 * ulp_at(base_.spec.dtype, 1) + 4 * ulp_at(base_.spec.output_dtype(), 1);
    return RelationComparison(base_.spec, wanted_, rounding * greatest).with(got.whole);
  }

 private:
  // Freed pages and pages that do not exist are zeros, whatever the pool holds.
  RelationResult freed_pages() {
    constexpr std::int32_t kNoPages[] = {-1, -7, std::int32_t{1} << 30};
    PackedRelationCall zeroed = base_;
    zeroed.keep_apart();
    PageForm form = random_page_form(random_, longest());
    if (form.pages.table == PageOptions::Table::none) form.pages.table = PageOptions::Table::rows;
    form.pages.page_size = std::min<std::int64_t>(form.pages.page_size, 17);  // several a sequence
    PagedCall call(zeroed, form, random_.next());
    for (const PagedCall::Entry& entry : call.entries()) {
      if (random_.integer(0, 1) == 0) continue;
      call.set_entry(entry, kNoPages[random_.integer(0, std::ssize(kNoPages) - 1)]);
      const std::int64_t first = entry.index * call.page_size();
      const std::int64_t last =
          std::min(first + call.page_size(), zeroed.rows[entry.sequence].kv_len);
      zeroed.zero_columns(entry.sequence, first, last);
    }
    const AttentionValues wanted = zeroed.run(runner_);
    const Problem problem = call.problem();
    const RelationRunner::OfLies got =
        runner_.forward_with_lies(call.spec(), problem, packed_shape(problem));
    if (!got.damage.empty()) return {.message = got.damage};
    RelationResult result = RelationComparison(base_.spec, wanted).with(got.values);
    if (!result.holds()) result.message = fmt::format("with freed pages: {}", result.message);
    return result;
  }

  std::int64_t longest() const {
    std::int64_t greatest = 0;
    for (const SequenceRows& one : base_.rows) greatest = std::max(greatest, one.kv_len);
    return greatest;
  }

  AttentionValues in_pages(const PageForm& form) {
    const PagedCall call(base_, form, random_.next());
    return runner_.forward(call.spec(), call.problem());
  }

  static RelationResult in_pages_of(const PageForm& form, RelationResult result) {
    result.message = fmt::format("in pages of {} rows{}: {}", form.pages.page_size,
                                 form.is_x ? " in paged_x" : "", result.message);
    return result;
  }

  // A table of the same pages in another form. A static cache has none.
  PageForm other_table(PageForm form) {
    using Table = PageOptions::Table;
    if (form.pages.table == Table::none) return form;
    form.pages.table = form.pages.table == Table::rows ? Table::flat : Table::rows;
    form.has_ends = random_.integer(0, 1) == 1;
    form.table_padding = random_.integer(0, 3);
    return form;
  }

  const PackedRelationCall& base_;
  const AttentionValues& wanted_;
  RelationRunner& runner_;
  Random random_{1, "column relations"};
};

}  // namespace

RelationResult check_column_relation(Relation relation, const PackedRelationCall& call,
                                     const AttentionValues& wanted, RelationRunner& runner) {
  if (call.filled().empty()) return {.applies = false};
  ColumnChecks checks(call, wanted, runner);
  switch (relation) {
    case Relation::paged:
      return checks.paged();
    case Relation::new_rows:
      return checks.new_rows();
    case Relation::merged_ranges:
      return checks.merged_ranges();
    default:
      return {.applies = false};
  }
}

}  // namespace tilewright::verify::fuzz
