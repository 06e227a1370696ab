// Relations of the fuzzer that move or divide the columns of packed calls, on the emulated GPU.
#include <memory>
#include <string>

#include "fuzz/case.hpp"
#include "fuzz/case_inputs.hpp"
#include "fuzz/relations.hpp"
#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify::fuzz;

constexpr Relation kRelations[] = {Relation::paged, Relation::new_rows, Relation::merged_ranges};

FuzzCase packed_case(DType dtype) {
  FuzzCase c;
  c.spec = {.dtype = dtype,
            .head_dim = 32,
            .layout = Layout::packed,
            .mask_mod = "q_idx >= kv_idx",
            .outputs = {.lse = true}};
  c.shape = {.num_q_heads = 4, .num_kv_heads = 2};
  c.packing = {.sequences = {{33, 70}, {0, 9}, {12, 0}, {1, 130}, {9, 4}}, .q_rows_before = 3};
  set_totals(c.shape, c.packing);
  return c;
}

RelationResult check(Relation relation, DType dtype, const Toolchain& kernels = {}) {
  const FuzzCase c = packed_case(dtype);
  KernelRelationRunner runner(Device::parse("cuda"), kernels);
  return check_relation(relation, c.spec, dense_inputs(c), runner, c.packing);
}

}  // namespace

TEST_CASE("emulated GPU: relations of columns in pages, new rows and parts hold") {
  for (const Relation relation : kRelations) {
    for (const DType dtype : {f32, f16}) {
      const RelationResult result = check(relation, dtype);
      CAPTURE(to_string(relation), to_string(dtype), result.message);
      CHECK(result.applies);
      CHECK(result.holds());
    }
  }
}

TEST_CASE("emulated GPU: relations show a page that is taken for the one before") {
  Toolchain kernels;
  kernels.templates = std::make_shared<const test::FaultyTemplates>(
      test::Fault{"the page before is read", "cuda/attention/paged_rows.hpp",
                  "page_entry(pages_, index);", "page_entry(pages_, index > 0 ? index - 1 : 0);"});
  CHECK_FALSE(check(Relation::paged, f16, kernels).holds());
}
