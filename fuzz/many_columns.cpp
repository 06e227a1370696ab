#include "fuzz/many_columns.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "fuzz/packing.hpp"
#include "fuzz/snippet_wish.hpp"

namespace tilewright::verify::fuzz {
namespace {

// Nine tiles of 128: fewer are not worth a split (runtime/call/split_parts.cpp).
constexpr std::int64_t kLeast = 9 * 128;

// Nothing where there are too many rows, or no columns.
std::optional<std::int64_t> many(std::int64_t kv_len, std::int64_t most, Random& random) {
  if (kv_len == 0 || most < kLeast) return std::nullopt;
  return random.integer(kLeast, std::min(most, kMaxLength));
}

bool lengthen_dense(Shape& shape, std::int64_t max_elements, Random& random) {
  const std::int64_t rows = shape.batch * shape.num_q_heads * shape.q_len;
  const auto columns = many(shape.kv_len, max_elements / rows, random);
  if (!columns) return false;
  shape.kv_len = *columns;
  if (shape.q_offset > 0) shape.q_offset = shape.kv_len - shape.q_len;  // as a chunk of a prompt
  return true;
}

bool lengthen_packed(FuzzCase& fuzz_case, std::int64_t max_elements, Random& random) {
  FuzzPacking& packing = fuzz_case.packing;
  std::int64_t others = 0;
  for (const FuzzSequence& one : packing.sequences) others += one.q_len * one.kv_len;
  const auto longest = std::max_element(
      packing.sequences.begin(), packing.sequences.end(),
      [](const FuzzSequence& a, const FuzzSequence& b) { return a.kv_len < b.kv_len; });
  if (longest == packing.sequences.end() || longest->q_len == 0) return false;
  others -= longest->q_len * longest->kv_len;
  const std::int64_t elements = max_elements / fuzz_case.shape.num_q_heads - others;
  const std::int64_t room = kMaxIndex - total_kv_of(packing) + longest->kv_len;
  const auto columns = many(longest->kv_len, std::min(room, elements / longest->q_len), random);
  if (!columns) return false;
  longest->kv_len = *columns;
  set_totals(fuzz_case.shape, packing);
  return true;
}

}  // namespace

bool give_many_columns(FuzzCase& fuzz_case, std::int64_t max_elements, Random& random) {
  return fuzz_case.spec.is_packed() ? lengthen_packed(fuzz_case, max_elements, random)
                                    : lengthen_dense(fuzz_case.shape, max_elements, random);
}

}  // namespace tilewright::verify::fuzz
