// Head dims that are padded inside tiles, on a CPU.
#include "tests/support/padded_dims.hpp"

#include "tests/support/appended_rows.hpp"
#include "tests/support/merged_parts.hpp"
#include "tests/support/padded_gradients.hpp"

namespace tilewright {
using namespace padded_dims;

TEST_CASE("padded dims: dense calls") {
  check_dense("cpu");
}

TEST_CASE("padded dims: packed and paged calls, new rows beside pages") {
  check_packed("cpu");
}

TEST_CASE("padded dims: append and merge") {
  const Attention appends(appended_rows::append_spec(f16, f16, 17),
                          {.device = Device::cpu(), .append = true});
  appended_rows::check_append(appends, 16, appended_rows::TableForm::rows);
  const Attention merges(merged_parts::merge_spec(bf16, Layout::bshd, 17),
                         {.device = Device::cpu(), .merge = true});
  merged_parts::check_merge(merges, 3, 2, 3, 50);
}

TEST_CASE("padded dims: gradients") {
  check_gradients("cpu");
  check_packed_gradients("cpu");
}

TEST_CASE("padded dims: what has no kernels for them is refused by its key") {
  Spec spec = spec_of(f16, 17);
  spec.kv_dtype = i8;
  spec.k_scale = spec.v_scale = "0.1f";
  CHECK_THROWS_WITH(validate(spec), Catch::Matchers::ContainsSubstring("one byte"));
  spec = spec_of(f16, 17);
  spec.layout = Layout::packed;
  spec.kv_layout = Layout::paged_x;
  CHECK_THROWS_WITH(validate(spec), Catch::Matchers::ContainsSubstring("paged_x"));
}

}  // namespace tilewright
