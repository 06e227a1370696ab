#include "fuzz/clamped_lengths.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tilewright::verify::fuzz {
namespace {

using FaultKind = PlanReport::Kind;

// Room for the numbers that kernels compute beyond a row's or a column's position.
constexpr std::int64_t kFurthest = std::numeric_limits<std::int32_t>::max() - 1024;

struct Interval {
  std::int64_t least, greatest;
};

class Clamping {
 public:
  Clamping(const SequenceNumbers& numbers, const PackedShape& shape, PlanReport& report)
      : numbers_(numbers), shape_(shape), report_(report) {}

  SequenceRows rows_of(std::size_t b) {
    SequenceRows rows;
    Interval part = part_of(FaultKind::q_begin, numbers_.q_begin, b, shape_.total_q);
    rows.q_begin = part.least;
    rows.q_len = part.greatest - part.least;
    read_columns(b, rows);
    if (numbers_.kv_offset) {
      rows.kv_offset =
          clamped(FaultKind::kv_offset, *numbers_.kv_offset, b,
                  {rows.kv_begin - kFurthest, kFurthest - rows.kv_len}, kFurthest - rows.kv_len);
    }
    const Interval positions = {rows.q_begin - kFurthest, kFurthest - rows.q_len};
    rows.q_offset =
        numbers_.q_offset
            ? clamped(FaultKind::q_offset, *numbers_.q_offset, b, positions, positions.greatest)
            : std::max(positions.least, rows.kv_offset + rows.kv_len - rows.q_len);
    return rows;
  }

 private:
  void read_columns(std::size_t b, SequenceRows& rows) {
    const std::int64_t most =
        shape_.max_kv_len > 0 ? shape_.max_kv_len : std::numeric_limits<std::int64_t>::max();
    if (numbers_.kv_len) {
      rows.kv_begin =
          clamped(FaultKind::kv_begin, numbers_.kv_begin, b, {0, shape_.total_kv}, shape_.total_kv);
      const std::int64_t room = std::min(shape_.total_kv - rows.kv_begin, most);
      rows.kv_len = clamped(FaultKind::kv_len, *numbers_.kv_len, b, {0, room}, room);
      return;
    }
    const Interval part = part_of(FaultKind::kv_begin, numbers_.kv_begin, b, shape_.total_kv);
    rows.kv_begin = part.least;
    rows.kv_len = std::min(part.greatest - part.least, most);
    if (rows.kv_len < part.greatest - part.least) {
      add({FaultKind::kv_len, static_cast<std::int64_t>(b), static_cast<std::int64_t>(b),
           part.greatest - part.least, most});
    }
  }

  // From one begin to the next. Of an inner begin the sequence before tells.
  Interval part_of(FaultKind kind, const std::vector<std::int64_t>& begins, std::size_t b,
                   std::int64_t total) {
    const std::int64_t first = b == 0 ? clamped(kind, begins, 0, {0, total}, total)
                                      : std::clamp<std::int64_t>(begins[b], 0, total);
    const std::int64_t next = begins[b + 1];
    const std::int64_t end = std::clamp(next, first, total);
    if (end != next) {
      add({kind, static_cast<std::int64_t>(b), static_cast<std::int64_t>(b) + 1, next,
           next < first ? first : total});
    }
    return {first, end};
  }

  std::int64_t clamped(FaultKind kind, const std::vector<std::int64_t>& values, std::size_t place,
                       const Interval& allowed, std::int64_t limit) {
    const std::int64_t value = values[place];
    const std::int64_t inside = std::clamp(value, allowed.least, allowed.greatest);
    const auto sequence = static_cast<std::int64_t>(place);
    if (inside != value) add({kind, sequence, sequence, value, limit});
    return inside;
  }

  // In the order of sequences. In a sequence a position's fault comes last, as rows are read first.
  void add(const PlanReport::Value& value) {
    if (report_.count++ == 0) report_.first = value;
  }

  const SequenceNumbers& numbers_;
  const PackedShape& shape_;
  PlanReport& report_;
};

}  // namespace

ClampedLengths::ClampedLengths(const SequenceNumbers& numbers, const PackedShape& shape) {
  Clamping clamping(numbers, shape, report);
  for (std::size_t b = 0; b < static_cast<std::size_t>(shape.batch); ++b) {
    rows.push_back(clamping.rows_of(b));
  }
}

}  // namespace tilewright::verify::fuzz
