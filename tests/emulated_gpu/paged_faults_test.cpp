// Faults planted in kernels that read pages and that decode, run on the emulated GPU: each must be
// seen.

#include <memory>
#include <string>
#include <vector>

#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/emulated_gpu/findings.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_sequences.hpp"

using namespace tilewright;
using test::Fault;

namespace {

using Templates = std::shared_ptr<const jinja::Loader>;

Spec paged(std::int64_t head_dim, std::string mask_mod) {
  return {.name = "paged",
          .dtype = bf16,
          .head_dim = head_dim,
          .layout = Layout::packed,
          .kv_layout = Layout::paged,
          .mask_mod = std::move(mask_mod),
          .outputs = {.lse = true}};
}

verify::PackedLengths lengths(std::vector<verify::PackedLengths::Sequence> sequences,
                              std::int64_t page_size) {
  verify::PackedLengths lengths{
      .num_q_heads = 8, .num_kv_heads = 2, .sequences = std::move(sequences)};
  lengths.pages.page_size = page_size;
  return lengths;
}

std::string findings(const Spec& spec, const verify::PackedLengths& of,
                     const Templates& templates) {
  return test::findings_of([&] {
    const auto inputs = verify::random_packed_inputs(spec, of, 7, {.q_factor = 8});
    return verify::check(spec, inputs.problem(), test::check_options(templates));
  });
}

void check_each_is_seen(const std::vector<Fault>& faults, const Spec& spec,
                        const verify::PackedLengths& of) {
  test::check_each_is_seen(
      faults, [&](const Templates& templates) { return findings(spec, of, templates); });
}

}  // namespace

TEST_CASE("emulated GPU: sound kernels over pages are right", "[every-kind]") {
  const Templates templates = default_template_loader();
  // Heads of whole panels, and others; a last page that is not full.
  for (const std::int64_t head_dim : {128, 96, 40}) {
    CAPTURE(head_dim);
    for (const std::int64_t page_size : {16, 64, 48}) {
      CAPTURE(page_size);
      REQUIRE(findings(paged(head_dim, "q_idx >= kv_idx"),
                       lengths({{70, 203}, {1, 150}, {130, 260}}, page_size), templates)
                  .empty());
    }
  }
}

TEST_CASE("emulated GPU: faults of Hopper's kernel over pages are seen") {
  const std::string boxes = "cuda/hopper/paged_kv_boxes.hpp";
  const std::string loader = "cuda/hopper/page_loader.hpp";
  const std::vector<Fault> faults = {
      {"V is read behind the sequence's end", boxes,
       "begin_ == kOutsidePool || rows_ >= 1 << shift_", "begin_ == kOutsidePool || rows_ >= 0"},
      {"a page's rows begin at the first", loader, "+ row - index * pages.page_size.value", ""},
      {"a box lies in the place of the one before", loader, "to + static_cast<unsigned>(row / 8 *",
       "to + static_cast<unsigned>(max(row / 8 - 2, 0) *"},
      {"a loader's bytes are not expected", loader, "- number() + kCount - 1) /", "- number()) /"},
      {"one loader alone asks for plans", "cuda/hopper/q_producer.hpp",
       "void ask_for_plan() const {\n    if (!Loader::speaks()) return;",
       "void ask_for_plan() const {\n    if (!Loader::leads()) return;"},
      {"the page before is read", loader, "page_entry(pages, index)",
       "page_entry(pages, index > 0 ? index - 1 : 0)"},
  };
  check_each_is_seen(faults, paged(128, "q_idx >= kv_idx"), lengths({{70, 203}, {130, 260}}, 48));
}

TEST_CASE("emulated GPU: faults of Hopper's kernel over pages and new rows are seen") {
  const std::string boxes = "cuda/hopper/paged_kv_new_boxes.hpp";
  const std::vector<Fault> faults = {
      {"new rows begin a row late", boxes, "q_tile.rows.q_len - all;",
       "q_tile.rows.q_len - all + 1;"},
      {"the context is a row longer", boxes, "kv_len) - first;", "kv_len) - first + 1;"},
      {"a tile of new rows begins at a group of the tensor", boxes, "begin_ % kRowsOfGroup);",
       "0);"},
      {"V's new rows go on behind the sequence's end", boxes,
       "min(max(all - row_, 0), kRowsOfGroup)", "kRowsOfGroup"},
      {"rows of a group lie on top of each other", boxes, "row_ % kRowsOfGroup * kPanelRowBytes)",
       "0)"},
      {"the group that is of both comes as one piece", boxes,
       "row_ = number == mixed ? kKvTile : ", "row_ = "},
  };
  Spec spec = paged(128, "q_idx >= kv_idx");
  spec.kv_new = true;
  auto of = lengths({{9, 0}, {140, 271}, {150, 150}}, 48);
  of.has_new_rows = true;
  REQUIRE(findings(spec, of, default_template_loader()).empty());
  check_each_is_seen(faults, spec, of);
}

TEST_CASE("emulated GPU: faults of the kernel that decodes are seen") {
  const std::string finish = "cuda/decode/finish_item.hpp";
  const std::vector<Fault> faults = {
      {"parts are added up with equal weights", finish,
       "weights[part] = weight_of(weights[part], greatest, to_log2);", "weights[part] = 1.0f;"},
      {"a part that comes last goes unnoticed", finish,
       "comes_last = add_and_synchronise(&arrived, 1u) + 1 == static_cast<unsigned>(parts.count);",
       "comes_last = add_and_synchronise(&arrived, 1u) + 2 == static_cast<unsigned>(parts.count);"},
      {"all rows are of the first head", "cuda/decode/group_rows.hpp", "row_of(i) % group;",
       "0 * group;"},
      {"every range begins with a unit that is not its own", "cuda/decode/work_range.hpp",
       "next_ = cuts_.begin_of(block);", "next_ = max(cuts_.begin_of(block) - 1, 0);"},
      {"warps do not wait for one another's ends", "cuda/decode/sum_of_warps.hpp",
       "__syncthreads();  // the warps' ends are there", ""},
      {"the page before is read", "cuda/attention/found_tile.hpp",
       "page_entry(q_tile.pages, index)", "page_entry(q_tile.pages, index > 0 ? index - 1 : 0)"},
  };
  check_each_is_seen(faults, paged(64, ""), lengths({{1, 2000}, {1, 300}, {2, 700}}, 16));
}
