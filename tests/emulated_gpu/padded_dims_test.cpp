// Head dims that are padded inside tiles, on the emulated GPU.
#include "tests/support/padded_dims.hpp"

#include <memory>
#include <utility>

#include "tests/emulated_gpu/faulty_templates.hpp"
#include "tests/support/appended_rows.hpp"
#include "tests/support/merged_parts.hpp"
#include "tests/support/padded_gradients.hpp"

namespace tilewright {
using namespace padded_dims;

TEST_CASE("padded dims on a GPU: dense calls", "[every-kind]") {
  check_dense("cuda");
}

TEST_CASE("padded dims on a GPU: packed and paged calls, new rows beside pages") {
  check_packed("cuda");
}

TEST_CASE("padded dims on a GPU: append and merge") {
  const Device gpu = Device::parse("cuda");
  for (const DType kv_dtype : {f32, bf16}) {
    const Attention appends(appended_rows::append_spec(f32, kv_dtype, 17),
                            {.device = gpu, .append = true});
    appended_rows::check_append(appends, 16, appended_rows::TableForm::rows);
  }
  const Attention merges(merged_parts::merge_spec(f16, Layout::packed, 17),
                         {.device = gpu, .merge = true});
  merged_parts::check_merge(merges, 3, 1, 3, 70);
}

TEST_CASE("padded dims on a GPU: gradients") {
  check_gradients("cuda");
}

TEST_CASE("padded dims on a GPU: gradients of packed sequences") {
  check_packed_gradients("cuda");
}

// AttentionOptions::decode asks for a kernel that such dims have not: the portable one serves.
TEST_CASE("padded dims on a GPU: dense calls with few rows do not split") {
  const Spec spec = spec_of(bf16, 64, 17);
  const Shape shape{
      .batch = 1, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 1, .kv_len = 700, .q_offset = 699};
  const AttentionOptions options{.device = Device::parse("cuda"), .decode = true};
  CHECK(Attention(spec, options).workspace_size(shape) == 0);
  CheckOptions check_options;
  check_options.attention = options;
  require_right(Checker(spec, check_options), random_inputs(spec, shape, 5).problem());
}

TEST_CASE("padded dims on a GPU: planted faults of forward are seen") {
  const std::string tensor_cores = "cuda/portable/load_padded_tensor_cores.hpp";
  const std::string floats = "cuda/portable/load_padded_float32.hpp";
  const std::string store = "cuda/store/padded_rows.hpp";
  const std::vector<std::pair<DType, test::Fault>> faults = {
      {bf16, {"elements of the next row", tensor_cores, "chunk * 8 + i < kColumnsOfRow", "true"}},
      {f32, {"elements of the next row", floats, "column + i < kColumnsOfRow) bits", "true) bits"}},
      {bf16, {"a column behind the row", store, "if (column + 1 < kValueColumns)", ""}},
      {f32,
       {"the last column left out", store, "if (column < kValueColumns)",
        "if (column + 1 < kValueColumns)"}}};
  const Shape shape{
      .batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 5, .kv_len = 33, .q_offset = 28};
  for (const auto& [dtype, fault] : faults) {
    CAPTURE(fault.what, fault.file);
    const Spec spec = spec_of(dtype, 17);
    CheckOptions options = on("cuda");
    options.attention.kernels.templates = std::make_shared<test::FaultyTemplates>(fault);
    const Inputs inputs = random_inputs(spec, shape, 5);
    CHECK_FALSE(Checker(spec, options).check(inputs.problem(), {.row_padding = 3}).ok);
  }
}

TEST_CASE("padded dims on a GPU: planted faults of gradients are seen") {
  const std::string rows = "cuda/backward/out_rows.hpp", sweep = "cuda/backward/sweep.hpp";
  const std::vector<test::Fault> faults = {
      {"delta without the last columns", rows,
       "sum += to_float(out[column]) * to_float(dout[column])", ""},
      {"a column behind a gradient's row", sweep,
       "if (Tile::kColumns % 2 == 0 || column + 1 < Tile::kColumns) from", "from"},
      {"columns of v taken for those of k", "cuda/backward/padded_tensor_core_tiles.hpp",
       "BackwardTile<kValueDim, kValueColumns>", "BackwardTile<kValueDim, kHeadColumns>"}};
  for (const test::Fault& fault : faults) {
    CAPTURE(fault.what);
    AttentionOptions options{.device = Device::parse("cuda")};
    options.kernels.templates = std::make_shared<test::FaultyTemplates>(fault);
    CHECK_FALSE(gradients_of_call(spec_with_gradients(bf16, 17, 21), options).is_right());
  }
}

}  // namespace tilewright
