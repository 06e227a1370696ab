// kv_new on the emulated GPU: the bits of an append and a call without it.
#include "tests/support/new_rows.hpp"

namespace tilewright {
using namespace new_rows;

namespace {

// Sequences that are not decoded. Contexts: none, with fewer rows of q than columns, as many and
// more; within a tile's first 8 rows; of whole groups of 8 rows, whole pages and whole tiles; and
// such that a tile has rows of pages, new rows and none. A sequence without columns has new rows of
// NaN behind the end of the one before.
Batch straddling_batch(int dim) {
  Batch batch = {.lengths = {{20, 20},
                             {150, 150},
                             {9, 0},
                             {30, 21},
                             {9, 14},
                             {12, 0},
                             {20, 52},
                             {9, 0},
                             {17, 145},
                             {33, 161},
                             {10, 0},
                             {135, 420},
                             {9, 0},
                             {0, 30},
                             {128, 256},
                             {9, 0}},
                 .heads = 2,
                 .kv_heads = 1,
                 .dim = dim};
  batch.make();
  return batch;
}

}  // namespace

TEST_CASE("new rows on a GPU: the bits of append and a paged call", "[every-kind]") {
  const Device gpu = Device::parse("cuda");
  check_against_append(append_spec(f16, f16), gpu, 16, TableForm::rows);
  check_against_append(append_spec(f32, f32), gpu, 3, TableForm::flat_with_ends);
}

TEST_CASE("new rows on a GPU: tiles of rows of pages and new ones", "[every-kind]") {
  const Device gpu = Device::parse("cuda");
  const std::string causal = "q_idx >= kv_idx";
  struct Case {
    DType dtype;
    int dim;
    std::int64_t page_size;
    TableForm form;
    std::string mask_mod;
  };
  const auto one = GENERATE_COPY(
      Case{f16, 64, 16, TableForm::rows, causal}, Case{bf16, 128, 64, TableForm::flat, ""},
      Case{f16, 128, 48, TableForm::rows, causal}, Case{bf16, 96, 32, TableForm::rows, causal},
      Case{bf16, 256, 16, TableForm::flat_with_ends, ""},
      Case{f16, 32, 448, TableForm::none, causal}, Case{f16, 64, 24, TableForm::rows, causal});
  check_against_append(with_mask(append_spec(one.dtype, one.dtype, one.dim), one.mask_mod), gpu,
                       one.page_size, one.form, straddling_batch(one.dim));
}

// Two groups of heads whose tiles differ.
TEST_CASE("new rows on a GPU: several heads of k, and masks that tell heads apart") {
  Batch batch = {.lengths = {{40, 171}, {9, 0}, {20, 333}}, .heads = 6, .kv_heads = 2, .dim = 64};
  batch.make();
  check_against_append(
      with_mask(append_spec(f16, f16, 64), "q_idx >= kv_idx && (kv_idx / 128 + h) % 3 != 0"),
      Device::parse("cuda"), 16, TableForm::rows, batch);
}

}  // namespace tilewright
