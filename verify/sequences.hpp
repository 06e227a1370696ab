#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../runtime/api/sequences.hpp"
#include "../templates/abi/cpu.hpp"
#include "problem.hpp"

namespace tilewright {
struct PlanWishes;
}

namespace tilewright::verify {

/// Rows and positions of one sequence of a packed call.
struct SequenceRows {
  std::int64_t q_begin = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_begin = 0;
  std::int64_t kv_len = 0;
  std::int64_t q_offset = 0;
  std::int64_t kv_offset = 0;
  abi::SequencePages pages = {};  ///< of paged k and v

  bool has_rows_of(const SequenceRows& other) const;
};

/// The page of a pool that a sequence's page `index` is; none where its rows are read as zeros.
std::optional<std::int64_t> page_of(const SequenceRows& rows, std::int64_t index);

/// Reads the sequences of a packed problem, apart from the runtime's own reading, so that a mistake
/// there shows as a wrong result. Values that lie are clamped as serving calls clamp them.
std::vector<SequenceRows> read_sequences(const Problem& problem);

/// The sizes of a packed problem; its bounds are the greatest lengths of its sequences.
PackedShape packed_shape(const Problem& problem);

/// How the problem says that its plan is made.
PlanWishes wishes_of(const Problem& problem);

/// What the snippets' kernels take for one sequence.
/// @param call for the whole call
abi::SnippetArguments arguments_of(abi::SnippetArguments call, const SequenceRows& sequence);

}  // namespace tilewright::verify
