#include "runtime/call/resident_items.hpp"

#include <optional>

#include "base/ceil_div.hpp"
#include "base/switch_variable.hpp"

namespace tilewright {
namespace {

// Whether at least four fifths of the multiprocessors have an item, on average over rounds of one
// for each.
bool fills(std::int64_t items, std::int64_t multiprocessors) {
  return 5 * items >= 4 * multiprocessors * ceil_div(items, multiprocessors);
}

}  // namespace

std::optional<bool> forced_resident() {
  return switch_variable("TILEWRIGHT_RESIDENT",
                         "set it to \"0\" or \"1\", or unset it and the sizes of a call decide");
}

std::int64_t resident_heads(const ResidentLaunch& launch, const PackedShape& shape) {
  if (launch.kv_rows == 0 || shape.batch == 0 || shape.max_kv_len > launch.kv_rows) return 0;
  const std::int64_t group = shape.num_q_heads / shape.num_kv_heads;
  if (const std::optional<bool> forced = forced_resident()) return *forced ? group : 0;
  for (std::int64_t heads = group; heads > 0; --heads) {
    if (group % heads != 0) continue;
    if (fills(shape.batch * shape.num_q_heads / heads, launch.multiprocessors)) return heads;
  }
  return 0;
}

}  // namespace tilewright
