// Checks of paged calls: they pass where the call is right, and fail where it is not.
// `TILEWRIGHT_TEST_DEVICE=cuda verify_tests "paged check: right calls*"` makes them on a GPU.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_sequences.hpp"

using namespace tilewright;
using namespace tilewright::verify;
using Catch::Matchers::ContainsSubstring;

namespace {

using Table = PageOptions::Table;

struct Case {
  std::string name;
  Spec spec;
  PackedLengths lengths;
};

Spec paged(DType dtype, std::int64_t head_dim, std::string mask_mod = "q_idx >= kv_idx") {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .layout = Layout::packed,
          .kv_layout = Layout::paged,
          .mask_mod = std::move(mask_mod),
          .outputs = {.lse = true}};
}

PackedLengths lengths_of(std::int64_t q_heads, std::int64_t kv_heads,
                         std::vector<PackedLengths::Sequence> sequences, PageOptions pages) {
  return {.num_q_heads = q_heads,
          .num_kv_heads = kv_heads,
          .sequences = std::move(sequences),
          .kv_offset = 0,
          .pages = pages};
}

const std::vector<PackedLengths::Sequence> kDecodeAndPrefill = {{1, 332}, {5, 18}, {129, 463}};
const std::vector<PackedLengths::Sequence> kDecodes = {{1, 523}, {1, 37}, {1, 11}};

// Context in pages, new rows outside of them: q rows may be none, or more than columns.
std::vector<Case> cases_of_new_rows() {
  const auto new_rows = [](Spec spec, PackedLengths lengths) {
    spec.kv_new = lengths.has_new_rows = true;
    return Case{"new rows", std::move(spec), std::move(lengths)};
  };
  const std::vector<PackedLengths::Sequence> mixed = {{16, 131}, {0, 40}, {70, 86},
                                                      {9, 9},    {5, 2},  {1, 90}};
  Spec widened = paged(f32, 40);
  widened.kv_dtype = f16;
  Spec sloped = paged(f16, 64);
  sloped.score_mod = "score + slopes[h] * (kv_idx - q_idx)";
  sloped.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}};
  return {new_rows(paged(f16, 128), lengths_of(8, 1, mixed, {.page_size = 32})),
          new_rows(paged(f16, 24, "q_idx >= kv_idx && q_idx - kv_idx < 16"),
                   lengths_of(4, 4, mixed, {.page_size = 16})),
          new_rows(sloped, lengths_of(4, 2, mixed, {.page_size = 17, .table = Table::flat})),
          new_rows(widened, lengths_of(2, 1, mixed, {.page_size = 3}))};
}

std::vector<Case> right_cases() {
  const PageOptions of_16 = {.page_size = 16};
  Spec softcap = paged(bf16, 64, "");
  softcap.score_mod = "50.0f * tanh(score / 50.0f)";
  Spec slots = paged(f32, 32, "kept[kv_token]");
  slots.buffers = {{"kept", {.dtype = boolean, .shape = {NamedDim::total_kv}}}};
  std::vector<Case> cases = {
      {"causal", paged(bf16, 128), lengths_of(8, 2, kDecodeAndPrefill, of_16)},
      {"decodes, heads that do not divide", paged(bf16, 128), lengths_of(5, 1, kDecodes, of_16)},
      {"softcap", softcap, lengths_of(4, 4, {{3, 77}, {1, 201}}, of_16)},
      {"a window", paged(f16, 64, "q_idx >= kv_idx && q_idx - kv_idx < 64"),
       lengths_of(4, 2, kDecodeAndPrefill, {.page_size = 64})},
      {"a buffer over slots", slots, lengths_of(2, 1, {{9, 40}, {2, 70}}, {.page_size = 17})},
      {"pages of one row", paged(f32, 32), lengths_of(2, 1, {{9, 40}, {2, 70}}, {.page_size = 1})},
      {"a flat table", paged(bf16, 40),
       lengths_of(2, 2, kDecodeAndPrefill, {.page_size = 3, .pages = 0, .table = Table::flat})},
      {"a static cache", paged(bf16, 64),
       lengths_of(2, 2, kDecodeAndPrefill, {.page_size = 500, .pages = 0, .table = Table::none})},
      {"a shared prefix", paged(bf16, 64),
       lengths_of(4, 1, {{2, 80}, {1, 100}, {30, 70}},
                  {.page_size = 16, .pages = 0, .table = Table::rows, .shared_columns = 64})},
      {"sequences without rows or columns", paged(f32, 32),
       lengths_of(4, 2, {{5, 9}, {0, 0}, {0, 31}, {7, 40}, {3, 0}}, of_16)},
  };
  Case offset = {"positions after a prefix", paged(f32, 32), lengths_of(2, 1, {{9, 40}}, of_16)};
  offset.lengths.kv_offset = 100;
  cases.push_back(std::move(offset));
  for (Case& one : cases_of_new_rows()) cases.push_back(std::move(one));
  return cases;
}

CheckOptions on_device() {
  const char* const device = std::getenv("TILEWRIGHT_TEST_DEVICE");
  CheckOptions options;
  options.attention.device = device != nullptr ? Device::parse(device) : Device::cpu();
  return options;
}

}  // namespace

TEST_CASE("paged check: right calls pass") {
  for (const Case& c : right_cases()) {
    const PackedInputs inputs = random_packed_inputs(c.spec, c.lengths, 1);
    const Report report = check(c.spec, inputs.problem(), on_device());
    CAPTURE(c.name, report.reasons());
    CHECK(report.ok);
    CHECK(report.verdict.bound_max > 0);
  }
}

TEST_CASE("paged check: a table that names no page is an error before any forward") {
  const Spec spec = paged(f32, 32);
  PackedInputs inputs = random_packed_inputs(
      spec, lengths_of(2, 1, {{3, 40}, {2, 20}}, {.page_size = 16, .pages = 7}), 1);
  auto* const entries = static_cast<std::int32_t*>(inputs.page_table->data());
  entries[inputs.page_table->shape()[1] + 1] = 5021;
  CHECK_THROWS_WITH(check(spec, inputs.problem(), on_device()),
                    ContainsSubstring("page_table(1, 1) is 5021, but the pool has 7 pages"));
}

TEST_CASE("paged check: a freed page whose columns mask_mod keeps is a fault of the call") {
  const auto check_with_freed = [](const Spec& spec, std::size_t entry) {
    PackedInputs inputs = random_packed_inputs(
        spec, lengths_of(2, 1, {{3, 40}, {2, 20}}, {.page_size = 16, .pages = 7}), 1);
    static_cast<std::int32_t*>(inputs.page_table->data())[entry] = -1;
    return check(spec, inputs.problem(), on_device());
  };
  const Report kept = check_with_freed(paged(f32, 32), 0);
  CHECK_FALSE(kept.ok);
  REQUIRE(kept.reasons().size() == 1);
  CHECK(kept.reasons().front() ==
        "sequence 0's page 0 is freed (-1), but column 0 of it is kept in row 0 of h 0");
  const Spec window = paged(f32, 32, "q_idx >= kv_idx && q_idx - kv_idx < 20 - h");
  CHECK(check_with_freed(window, 0).ok);
  CHECK(check_with_freed(window, 1).reasons() ==
        std::vector<std::string>{
            "sequence 0's page 1 is freed (-1), but column 18 of it is kept in row 0 of h 0"});
  CHECK(check_with_freed(paged(f32, 32, ""), 2).reasons() ==
        std::vector<std::string>{
            "sequence 0's page 2 is freed (-1), but column 32 of it is kept in row 0 of h 0"});
  // No column of the sequence reaches it.
  CHECK(check_with_freed(paged(f32, 32, ""), 3).ok);
}

TEST_CASE("paged check: random pages are each used once, and the rest is poison") {
  const RandomPages pages = random_pages({40, 17, 0}, {.page_size = 16, .shared_columns = 16}, 3);
  CHECK(pages.pages == 3 + 1 + 1);
  const auto* const table = static_cast<const std::int32_t*>(pages.page_table->data());
  const std::int64_t columns = pages.page_table->shape()[1];
  CHECK(columns == 5);
  CHECK(table[0] == table[columns]);  // the shared page
  CHECK(table[1] != table[columns + 1]);
  CHECK(std::count(pages.is_used.begin(), pages.is_used.end(), true) == 40 + 1);
  CHECK_THROWS_AS(random_pages({40}, {.page_size = 16, .pages = 3}, 1), Error);
  CHECK_THROWS_AS(random_pages({40}, {.page_size = 16, .pages = 0, .table = Table::none}, 1),
                  Error);
}
