// Attention::merge on the emulated GPU, against its definition in double.
#include "tests/support/merged_parts.hpp"

namespace tilewright {
using namespace merged_parts;

namespace {

Attention merging(const Spec& spec) {
  return Attention(spec, {.device = Device::parse("cuda"), .merge = true});
}

}  // namespace

TEST_CASE("merge on a GPU: layouts, dtypes, aligned or not") {
  check_merge(merging(merge_spec(f32, Layout::bhsd, 256)), 3, 2, 2, 9);
  check_merge(merging(merge_spec(f16, Layout::bshd, 24)), 16, 2, 3, 50);
  check_merge(merging(merge_spec(bf16, Layout::packed, 64)), 2, 1, 3, 70);
}

TEST_CASE("merge on a GPU: empty parts, special values, in place", "[every-kind]") {
  check_empty_parts(merging(merge_spec(f32, Layout::packed, 16)));
  check_special_values(merging(merge_spec(f32, Layout::bhsd, 16)));
  check_in_place(merging(merge_spec(f16, Layout::bshd, 72)));
}

}  // namespace tilewright
