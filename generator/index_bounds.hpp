#pragma once

#include "spec.hpp"

namespace tilewright {

/// Whether the snippets are to see only indices that the call has, because others could do harm: an
/// endless loop, a division by 0 of integers, a read behind an array or a trusted buffer. Where
/// not, a kernel may evaluate them for a whole tile, in front of q_len and kv_len or behind, and
/// drop what does not exist afterwards. Decided by the snippets' text, and true in doubt.
bool needs_bounded_indices(const Spec& spec);

}  // namespace tilewright
