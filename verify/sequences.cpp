#include "verify/sequences.hpp"

#include <algorithm>
#include <optional>

namespace tilewright::verify {
namespace {

std::int64_t value_at(const TensorView& tensor, std::int64_t i) {
  return static_cast<const std::int32_t*>(tensor.data)[i];
}

std::int64_t inside(std::int64_t value, std::int64_t least, std::int64_t greatest) {
  return std::max(least, std::min(value, greatest));
}

}  // namespace

std::vector<SequenceRows> read_sequences(const Problem& problem) {
  const Sequences& given = *problem.sequences;
  const std::int64_t total_q = problem.shape.q_len, total_kv = problem.shape.kv_len;
  std::vector<SequenceRows> all;
  for (std::int64_t b = 0; b < problem.shape.batch; ++b) {
    SequenceRows rows;
    rows.q_begin = inside(value_at(given.q_begin, b), 0, total_q);
    rows.q_len = inside(value_at(given.q_begin, b + 1), rows.q_begin, total_q) - rows.q_begin;
    rows.kv_begin = inside(value_at(*given.kv_begin, b), 0, total_kv);
    const std::int64_t room = total_kv - rows.kv_begin;
    const std::int64_t kv_len = given.kv_len ? value_at(*given.kv_len, b)
                                             : value_at(*given.kv_begin, b + 1) - rows.kv_begin;
    rows.kv_len = inside(kv_len, 0, room);
    rows.kv_offset = given.kv_offset ? value_at(*given.kv_offset, b) : 0;
    rows.q_offset =
        given.q_offset ? value_at(*given.q_offset, b) : rows.kv_offset + rows.kv_len - rows.q_len;
    all.push_back(rows);
  }
  return all;
}

PackedShape packed_shape(const Problem& problem) {
  PackedShape shape = {.batch = problem.shape.batch,
                       .num_q_heads = problem.shape.num_q_heads,
                       .num_kv_heads = problem.shape.num_kv_heads,
                       .total_q = problem.shape.q_len,
                       .total_kv = problem.shape.kv_len};
  for (const SequenceRows& rows : read_sequences(problem)) {
    shape.max_q_len = std::max(shape.max_q_len, rows.q_len);
    shape.max_kv_len = std::max(shape.max_kv_len, rows.kv_len);
  }
  return shape;
}

abi::SnippetArguments arguments_of(abi::SnippetArguments call, const SequenceRows& sequence) {
  call.q_len = static_cast<int>(sequence.q_len);
  call.kv_len = static_cast<int>(sequence.kv_len);
  call.q_offset = static_cast<int>(sequence.q_offset);
  call.kv_offset = static_cast<int>(sequence.kv_offset);
  call.q_token_offset = static_cast<int>(sequence.q_begin - sequence.q_offset);
  call.kv_token_offset = static_cast<int>(sequence.kv_begin - sequence.kv_offset);
  return call;
}

}  // namespace tilewright::verify
