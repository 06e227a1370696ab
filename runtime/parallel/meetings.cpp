#include "runtime/parallel/meetings.hpp"

#include <algorithm>
#include <limits>

#include "base/ceil_div.hpp"
#include "runtime/parallel/agreement.hpp"

namespace tilewright::parallel {
namespace {

constexpr std::size_t kNumbersOfMeeting = 5;

// Grows by the tiles of one row, which rise.
void add_row(Meeting& box, std::int64_t q_block, const std::vector<std::int64_t>& offsets,
             const std::vector<std::int32_t>& indices, std::int64_t row) {
  const auto begin = static_cast<std::size_t>(offsets[static_cast<std::size_t>(row)]);
  const auto end = static_cast<std::size_t>(offsets[static_cast<std::size_t>(row) + 1]);
  if (begin == end) return;
  box.tiles += static_cast<std::int64_t>(end - begin);
  box.row_begin = std::min(box.row_begin, q_block);
  box.row_end = std::max(box.row_end, q_block + 1);
  box.column_begin = std::min(box.column_begin, std::int64_t{indices[begin]});
  box.column_end = std::max(box.column_end, std::int64_t{indices[end - 1]} + 1);
}

void append(std::vector<std::int64_t>& numbers, const Meeting& meeting) {
  numbers.insert(numbers.end(), {meeting.tiles, meeting.row_begin, meeting.row_end,
                                 meeting.column_begin, meeting.column_end});
}

}  // namespace

Meeting meeting_of(const BlockMask& mask, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  Meeting box{.row_begin = kFar, .column_begin = kFar};
  const std::shared_ptr<const HostTileLists> host = mask.on_host();
  const TileLists& lists = host->lists;
  for (std::int64_t row = 0; row < mask.rows(); ++row) {
    const std::int64_t q_block = row % mask.q_blocks();
    add_row(box, q_block, lists.row_offsets, lists.indices, row);
    add_row(box, q_block, lists.full_row_offsets, lists.full_indices, row);
  }
  if (box.tiles == 0) return {};
  const auto [q_side, kv_side] = mask.block();
  return {.tiles = box.tiles,
          .row_begin = box.row_begin * q_side,
          .row_end = std::min(box.row_end * q_side, rows),
          .column_begin = box.column_begin * kv_side,
          .column_end = std::min(box.column_end * kv_side, columns)};
}

Meeting whole_meeting(std::int64_t rows, std::int64_t columns,
                      const std::array<std::int64_t, 2>& block) {
  return {.tiles = ceil_div(rows, block[0]) * ceil_div(columns, block[1]),
          .row_begin = 0,
          .row_end = rows,
          .column_begin = 0,
          .column_end = columns};
}

Meetings gather_meetings(Communicator& communicator, const ShardList& list,
                         const std::function<Meeting(int i, int j)>& meet) {
  std::vector<std::int64_t> mine;
  for (const int i : list.of_rank(communicator.rank())) {
    for (int j = 0; j < list.count(); ++j) append(mine, meet(i, j));
  }
  const std::vector<std::int64_t> all = gather_numbers(communicator, mine);
  const auto count = static_cast<std::size_t>(list.count());
  Meetings meetings(count * count);
  std::size_t at = 0;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    for (const int i : list.of_rank(rank)) {
      for (std::size_t j = 0; j < count; ++j, at += kNumbersOfMeeting) {
        meetings[static_cast<std::size_t>(i) * count + j] = {all[at], all[at + 1], all[at + 2],
                                                             all[at + 3], all[at + 4]};
      }
    }
  }
  return meetings;
}

}  // namespace tilewright::parallel
