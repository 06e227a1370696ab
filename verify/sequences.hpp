#pragma once

#include <cstdint>
#include <vector>

#include "../runtime/api/sequences.hpp"
#include "../templates/abi/cpu.hpp"
#include "problem.hpp"

namespace tilewright::verify {

/// Rows and positions of one sequence of a packed call.
struct SequenceRows {
  std::int64_t q_begin = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_begin = 0;
  std::int64_t kv_len = 0;
  std::int64_t q_offset = 0;
  std::int64_t kv_offset = 0;

  friend bool operator==(const SequenceRows&, const SequenceRows&) = default;
};

/// Reads the sequences of a packed problem, apart from the runtime's own reading, so that a mistake
/// there shows as a wrong result. Values that lie are clamped as serving calls clamp them.
std::vector<SequenceRows> read_sequences(const Problem& problem);

/// The sizes of a packed problem; its bounds are the greatest lengths of its sequences.
PackedShape packed_shape(const Problem& problem);

/// What the snippets' kernels take for one sequence.
/// @param call for the whole call
abi::SnippetArguments arguments_of(abi::SnippetArguments call, const SequenceRows& sequence);

}  // namespace tilewright::verify
