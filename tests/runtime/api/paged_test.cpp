// Paged calls on a CPU: the same bits as packed ones, whatever the pages.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/paged_batch.hpp"
#include "tests/support/refusal.hpp"

namespace tilewright {
using test::refusal;
using namespace packed_calls;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec packed_of(Spec spec) {
  spec.kv_layout.reset();
  return spec;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

// Out and lse of a batch.
struct Results {
  Tensor out, lse;

  explicit Results(const Batch& batch)
      : out(Tensor::zeros(f32, batch.out.shape())), lse(Tensor::zeros(f32, batch.lse.shape())) {
    fill(out, -7.0f);
    fill(lse, -9.0f);
  }
};

// k, v: the batch's pools, or other views of their elements.
Results run_paged(const Attention& attention, const Batch& batch, const PagedBatch& paged,
                  const TensorView& k, const TensorView& v) {
  const PackedShape shape = paged.shape(batch);
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor(batch.q_begins);
  const Plan plan = attention.plan(shape, paged.sequences(q_begin), {},
                                   {.workspace = workspace.view(), .count_absent = true});
  CHECK(plan.report().text().empty());
  Results results(batch);
  attention.forward({.q = batch.q, .k = k, .v = v, .out = results.out, .lse = results.lse.view()},
                    plan);
  return results;
}

Batch mixed_batch() {
  Batch batch = {.lengths = {{1, 332}, {5, 18}, {129, 163}, {0, 9}, {7, 0}, {30, 256}},
                 .heads = 4,
                 .kv_heads = 2,
                 .dim = 32};
  batch.make();
  return batch;
}

}  // namespace

TEST_CASE("paged: the same bits as packed, for all sizes of pages and forms of tables") {
  const char* const mask = GENERATE("", "q_idx >= kv_idx", "(q_idx * 7 + kv_idx * 13) % 5 != 2");
  const Spec spec = paged_spec(f32, 32, mask);
  Batch batch = mixed_batch();
  run_packed(spec, batch);
  const Attention attention(spec, {.device = Device::cpu()});
  for (const std::int64_t page_size : {1, 3, 16, 17, 64, 256}) {
    for (const TableForm form : {TableForm::rows, TableForm::flat, TableForm::flat_with_ends}) {
      CAPTURE(mask, page_size, static_cast<int>(form));
      const PagedBatch paged(batch, page_size, form);
      const Results found = run_paged(attention, batch, paged, paged.k, paged.v);
      CHECK(same_bits(found.out, batch.out));
      CHECK(same_bits(found.lse, batch.lse));
    }
  }
  const PagedBatch one_page_each(batch, 400, TableForm::none);
  const Results found =
      run_paged(attention, batch, one_page_each, one_page_each.k, one_page_each.v);
  CHECK(same_bits(found.out, batch.out));
}

TEST_CASE("paged: heads before rows, and k and v in one pool, by strides") {
  const Spec spec = paged_spec(f32, 32, "q_idx >= kv_idx");
  Batch batch = mixed_batch();
  run_packed(spec, batch);
  const Attention attention(spec, {.device = Device::cpu()});
  const PagedBatch paged(batch, 16, TableForm::rows);
  const std::int64_t heads = batch.kv_heads, dim = batch.dim;
  // [pages, heads, page_size, dim] of k, and after each page the same of v.
  Tensor both = Tensor::zeros(f32, {paged.pages, 2, heads, 16, dim});
  const auto view_of = [&](std::int64_t which) {
    TensorView view = paged.k.view();
    view.data = floats(both) + which * heads * 16 * dim;
    view.strides = {2 * heads * 16 * dim, dim, 16 * dim, 1};
    return view;
  };
  for (std::int64_t i = 0; i < paged.k.numel(); ++i) {
    const std::int64_t d = i % dim, h = i / dim % heads, row = i / dim / heads % 16;
    const std::int64_t page = i / dim / heads / 16;
    const std::int64_t to = page * 2 * heads * 16 * dim + (h * 16 + row) * dim + d;
    floats(both)[to] = static_cast<const float*>(paged.k.data())[i];
    floats(both)[to + heads * 16 * dim] = static_cast<const float*>(paged.v.data())[i];
  }
  const Results found = run_paged(attention, batch, paged, view_of(0), view_of(1));
  CHECK(same_bits(found.out, batch.out));
}

TEST_CASE("paged: rows of freed and absent pages are zeros") {
  const Spec spec = paged_spec(f32, 32, "", true);
  Batch batch = {.lengths = {{3, 40}}, .heads = 1, .kv_heads = 1, .dim = 32};
  batch.make();
  const Attention attention(spec, {.device = Device::cpu()});
  PagedBatch paged(batch, 16, TableForm::rows);
  const PackedShape shape = paged.shape(batch);
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor(batch.q_begins);
  auto* const entries = static_cast<int*>(paged.page_table->data());
  for (std::int64_t i = 16 * 32; i < 32 * 32; ++i) {
    floats(batch.k)[batch.kv_begins[0] * 32 + i] = floats(batch.v)[batch.kv_begins[0] * 32 + i] = 0;
  }
  run_packed(spec, batch);
  const auto run = [&](int entry) {
    entries[1] = entry;
    const Plan plan = attention.plan(shape, paged.sequences(q_begin), {},
                                     {.workspace = workspace.view(), .count_absent = true});
    Results results(batch);
    attention.forward(
        {.q = batch.q, .k = paged.k, .v = paged.v, .out = results.out, .lse = results.lse.view()},
        plan);
    CHECK(same_bits(results.out, batch.out));
    CHECK(same_bits(results.lse, batch.lse));
    return plan.report().text();
  };
  const auto pages = static_cast<int>(paged.pages);
  CHECK(run(-1).empty());
  CHECK(run(pages) ==
        fmt::format("page_table(0, 1) is {}, but the pool has {} pages", pages, pages));
  CHECK(run(1 << 30) ==
        fmt::format("page_table(0, 1) is 1073741824, but the pool has {} pages", pages));
  CHECK(run(-7) == fmt::format("page_table(0, 1) is -7, but the pool has {} pages", pages));
}

TEST_CASE("paged: kv_token is a row of the pool") {
  Spec spec = paged_spec(f32, 32, "bias[kv_token] > 0.0f", false);
  spec.score_mod = "score + bias[kv_token]";
  spec.buffers = {{"bias", {.dtype = f32, .shape = {NamedDim::total_kv}}}};
  Batch batch = {.lengths = {{9, 40}, {2, 70}}, .heads = 2, .kv_heads = 1, .dim = 32};
  batch.make();
  const PagedBatch paged(batch, 16, TableForm::rows);
  const PackedShape shape = paged.shape(batch);
  // The same numbers by rows of packed k.
  const Tensor by_slot = random_tensor({shape.total_kv}, 5);
  Tensor by_row = Tensor::zeros(f32, {batch.k.shape()[0]});
  const auto* const table = static_cast<const int*>(paged.page_table->data());
  const std::int64_t columns = paged.page_table->shape()[1];
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    for (int row = 0; row < batch.kv_lens[b]; ++row) {
      const int page = table[static_cast<std::int64_t>(b) * columns + row / 16];
      floats(by_row)[batch.kv_begins[b] + row] =
          static_cast<const float*>(by_slot.data())[page * 16 + row % 16];
    }
  }
  const Tensor q_begin = int_tensor(batch.q_begins);
  const Attention attention(spec, {.device = Device::cpu()});
  const Attention packed(packed_of(spec), {.device = Device::cpu()});
  Workspace workspace(attention.workspace_size(shape)), other(packed.workspace_size(batch.shape()));
  const Bindings slots = attention.bind({.buffers = {{"bias", by_slot}}});
  const Bindings rows = packed.bind({.buffers = {{"bias", by_row}}});
  const BatchTensors staged(batch, f32);
  Results found(batch), wanted(batch);
  attention.forward(
      {.q = batch.q, .k = paged.k, .v = paged.v, .out = found.out},
      attention.plan(shape, paged.sequences(q_begin), slots, {.workspace = workspace.view()}),
      slots);
  packed.forward({.q = batch.q, .k = batch.k, .v = batch.v, .out = wanted.out},
                 packed.plan(batch.shape(), staged.sequences(), rows, {.workspace = other.view()}),
                 rows);
  CHECK(same_bits(found.out, wanted.out));
}

TEST_CASE("paged: tables and lengths that lie are clamped and reported") {
  const Attention attention(paged_spec(f32, 32, "q_idx >= kv_idx", false),
                            {.device = Device::cpu()});
  const PackedShape shape = {
      .batch = 2, .total_q = 8, .total_kv = 64, .page_size = 16, .max_kv_len = 48};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q = random_tensor({8, 1, 32}, 1), k = random_tensor({4, 16, 1, 32}, 2);
  Tensor out = Tensor::zeros(f32, {8, 1, 32});
  const Tensor q_begin = int_tensor({0, 4, 8}), table = int_tensor({0, 1, 2, 3, 0});
  const auto text_of = [&](const Tensor& begins, const std::vector<int>& lens) {
    const Tensor kv_len = int_tensor(lens);
    const Plan plan = attention.plan(shape,
                                     {.q_begin = q_begin,
                                      .kv_len = kv_len.view(),
                                      .page_table = table.view(),
                                      .page_begin = begins.view()},
                                     {}, {.workspace = workspace.view()});
    attention.forward({.q = q, .k = k, .v = k, .out = out}, plan);
    return plan.report().text();
  };
  CHECK(text_of(int_tensor({0, 3}), {48, 32}).empty());
  CHECK(text_of(int_tensor({0, 3}), {48, 33}) == "kv_len[1] is 33, but there is room for 32");
  CHECK(text_of(int_tensor({0, 3}), {1000000000, 1}) ==
        "kv_len[0] is 1000000000, but there is room for 48");
  CHECK(text_of(int_tensor({0, 3}), {-5, 1}) == "kv_len[0] is -5");
  CHECK(text_of(int_tensor({0, 9}), {1, 1}) ==
        "page_begin[1] is 9, but page_table has 5 entries (2 values were clamped)");
  CHECK(text_of(int_tensor({-1, 0}), {1, 1}) == "page_begin[0] is -1");
  CHECK(text_of(int_tensor({0, 3, 2}), {1, 0}) == "page_begin[2] is 2 after 3");
  CHECK(text_of(int_tensor({0, 1, 3}), {17, 0}) == "kv_len[0] is 17, but there is room for 16");
}

TEST_CASE("paged: a pool without pages and a table without columns have no row to read") {
  const Attention attention(paged_spec(f32, 32, ""), {.device = Device::cpu()});
  const Tensor q_begin = int_tensor({0, 2, 4, 6}), kv_len = int_tensor({16, 16, 16});
  const Tensor q = random_tensor({6, 1, 32}, 1), memory = random_tensor({3, 16, 1, 32}, 2);
  Tensor entries = int_tensor({-1, 0, 1});
  const TensorView one_column = TensorView::contiguous(entries.data(), i32, {3, 1});
  const TensorView no_column = TensorView::contiguous(static_cast<void*>(nullptr), i32, {3, 0});
  const auto require_nothing_read = [&](std::int64_t pages, const TensorView& table) {
    const PackedShape shape = {.batch = 3, .total_q = 6, .total_kv = pages * 16, .page_size = 16};
    Workspace workspace(attention.workspace_size(shape));
    const Plan plan =
        attention.plan(shape, {.q_begin = q_begin, .kv_len = kv_len.view(), .page_table = table},
                       {}, {.workspace = workspace.view()});
    TensorView pool = memory.view();
    pool.shape[0] = pages;
    Tensor out = Tensor::zeros(f32, {6, 1, 32}), lse = Tensor::zeros(f32, {1, 6});
    fill(out, kPoison);
    fill(lse, kPoison);
    attention.forward({.q = q, .k = pool, .v = pool, .out = out, .lse = lse.view()}, plan);
    CHECK(plan.report().text() ==
          "kv_len[0] is 16, but there is room for 0 (3 values were clamped)");
    CHECK(std::all_of(floats(out), floats(out) + out.numel(), [](float x) { return x == 0; }));
    CHECK(std::all_of(floats(lse), floats(lse) + lse.numel(),
                      [](float x) { return x == -std::numeric_limits<float>::infinity(); }));
  };
  require_nothing_read(0, one_column);
  require_nothing_read(0, no_column);
  require_nothing_read(3, no_column);
}

TEST_CASE("paged: a table with fewer columns than the bound says is refused") {
  const Tensor q_begin = int_tensor({0, 2, 4}), kv_len = int_tensor({16, 16});
  const Tensor table = Tensor::zeros(i32, {2, 4});
  Spec spec = paged_spec(bf16, 32, "");
  for (const bool has_new_rows : {false, true}) {
    spec.kv_new = has_new_rows;
    const Attention attention(spec, {.device = Device::cpu()});
    const auto plan_to = [&](std::int64_t max_kv_len) {
      const PackedShape shape = {.batch = 2,
                                 .total_q = 4,
                                 .total_kv = 160,
                                 .page_size = 16,
                                 .max_q_len = 2,
                                 .max_kv_len = max_kv_len};
      Workspace workspace(attention.workspace_size(shape));
      attention.plan(shape,
                     {.q_begin = q_begin, .kv_len = kv_len.view(), .page_table = table.view()}, {},
                     {.workspace = workspace.view()});
    };
    const std::int64_t room = has_new_rows ? 66 : 64;  // with the new rows
    CHECK_NOTHROW(plan_to(0));
    CHECK_NOTHROW(plan_to(room));
    CHECK_THROWS_WITH(plan_to(room + 1), ContainsSubstring(fmt::format(
                                             "page_table has 4 columns of 16 rows, room for 64, "
                                             "but max_kv_len is {}",
                                             room + 1)));
  }
}

TEST_CASE("paged: outputs and workspace that share memory with the table are refused") {
  const Attention attention(paged_spec(f32, 32, ""), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 2, .total_kv = 32, .page_size = 16};
  const std::int64_t bytes = attention.workspace_size(shape);
  Workspace workspace(bytes);
  const Tensor q_begin = int_tensor({0, 2}), kv_len = int_tensor({20});
  const Tensor q = random_tensor({2, 1, 32}, 1), k = random_tensor({2, 16, 1, 32}, 2);
  Tensor out = Tensor::zeros(f32, {2, 1, 32}), lse = Tensor::zeros(f32, {1, 2});
  const auto ints = [](void* data, std::initializer_list<std::int64_t> extents) {
    return TensorView::contiguous(data, i32, extents);
  };
  const auto plan_of = [&](const TensorView& table, std::optional<TensorView> begin) {
    return attention.plan(
        shape,
        {.q_begin = q_begin, .kv_len = kv_len.view(), .page_table = table, .page_begin = begin}, {},
        {.workspace = workspace.view()});
  };
  const auto forward = [&](const Plan& plan) {
    return refusal(
        [&] { attention.forward({.q = q, .k = k, .v = k, .out = out, .lse = lse.view()}, plan); });
  };
  Tensor pages = int_tensor({0, 1}), begin = int_tensor({0});
  CHECK(forward(plan_of(ints(pages.data(), {2}), begin.view())).empty());
  CHECK_THAT(forward(plan_of(ints(floats(out) + 30, {1, 2}), {})),
             ContainsSubstring("out overlaps page_table in memory"));
  CHECK_THAT(forward(plan_of(ints(lse.data(), {2}), begin.view())),
             ContainsSubstring("lse overlaps page_table in memory"));
  CHECK_THAT(refusal([&] {
               plan_of(ints(workspace.view().data, {1, 2}), {});
             }),
             ContainsSubstring("the plan's workspace overlaps page_table in memory"));
  CHECK_THAT(refusal([&] { plan_of(ints(pages.data(), {2}), ints(workspace.view().data, {1})); }),
             ContainsSubstring("the plan's workspace overlaps page_begin in memory"));
}

TEST_CASE("paged: what the host can see is refused before anything is launched") {
  const Attention attention(paged_spec(f32, 32, "", false), {.device = Device::cpu()});
  const PackedShape shape = {.batch = 1, .total_q = 8, .total_kv = 32, .page_size = 16};
  Workspace workspace(attention.workspace_size(shape));
  const Tensor q_begin = int_tensor({0, 8}), kv_len = int_tensor({20});
  const Tensor table = Tensor::zeros(i32, {1, 2}), flat = int_tensor({0, 1});
  const Tensor begin = int_tensor({0}), wide = Tensor::zeros(i64, {1, 2});
  const auto plan_of = [&](Sequences sequences, const PackedShape& of = {}) {
    if (sequences.q_begin.data == nullptr) sequences.q_begin = q_begin;
    return attention.plan(of.page_size > 0 || of.total_kv > 0 ? of : shape, sequences, {},
                          {.workspace = workspace.view()});
  };
  const auto message = [&](const Sequences& sequences, const PackedShape& of = {}) {
    return refusal([&] { plan_of(sequences, of); });
  };
  const auto lens = kv_len.view();
  CHECK(message({.page_table = table.view()}) ==
        "kv_layout is \"paged\", and the sequences have no kv_len");
  CHECK(message({.kv_begin = q_begin.view(), .kv_len = lens}) ==
        "kv_begin was given, and kv_layout is \"paged\"");
  CHECK(message({.kv_len = lens, .page_table = flat.view()}) ==
        "page_table has rank 1, and the sequences have no page_begin");
  CHECK(message({.kv_len = lens, .page_table = wide.view()}) ==
        "page_table is i64; it must be i32");
  CHECK(message({.kv_len = lens, .page_begin = begin.view()}) ==
        "page_begin was given, and there is no page_table");
  CHECK(message({.kv_len = lens, .page_table = table.view()},
                {.batch = 1, .total_q = 8, .total_kv = 33, .page_size = 16}) ==
        "total_kv is 33, which is no multiple of page_size 16");
  CHECK(message({.kv_len = lens, .page_table = table.view()},
                {.batch = 1, .total_q = 8, .total_kv = 32}) ==
        "kv_layout is \"paged\", and the shape has no page_size");
  const Tensor two_begins = int_tensor({0, 4, 8}), two_lens = int_tensor({9, 9});
  CHECK(message({.q_begin = two_begins, .kv_len = two_lens.view()},
                {.batch = 2, .total_q = 8, .total_kv = 16, .page_size = 16}) ==
        "the sequences have no page_table, and the pool has 1 pages for 2 sequences");

  const Plan plan = plan_of({.kv_len = lens, .page_table = table.view()});
  const Tensor q = random_tensor({8, 1, 32}, 1);
  Tensor out = Tensor::zeros(f32, {8, 1, 32});
  const auto forward = [&](std::initializer_list<std::int64_t> extents) {
    const Tensor k = random_tensor(extents, 2);
    return refusal([&] { attention.forward({.q = q, .k = k, .v = k, .out = out}, plan); });
  };
  CHECK(forward({2, 16, 1, 32}).empty());
  CHECK(forward({32, 1, 32}) == "k has rank 3; paged attention needs rank 4");
  CHECK(forward({4, 8, 1, 32}) == "the call has page_size 8, but the plan was made for 16");
  CHECK(forward({3, 16, 1, 32}) == "the call has total_kv 48, but the plan was made for 32");

  const Attention packed(packed_of(paged_spec(f32, 32, "", false)), {.device = Device::cpu()});
  CHECK(refusal([&] { packed.workspace_size(shape); }) ==
        "page_size is 16, and k and v are packed");
}

}  // namespace tilewright
