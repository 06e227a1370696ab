#pragma once

#include <string>

#include "../../generator/spec/spec.hpp"
#include "../../generator/spec/target.hpp"
#include "../api/shape.hpp"
#include "call_split.hpp"

namespace tilewright {

/// Which kernel serves the prefill of a packed call, and why that one.
struct CallPrefill {
  std::string kernel = {};  ///< "forward_prefill_resident"; empty if all sequences are decoded
  std::string why = {};     ///< why k and v stay in shared memory, or why not
  bool keeps_kv = false;    ///< in shared memory
};

/// For tools that know the sizes of a call: of batch sequences of equal lengths, with max_kv_len,
/// of aligned tensors, which is not batch-invariant.
/// @param shape as validate() has it
/// @param split what split_of_call says of the same call
/// @throws Error as forced_resident
CallPrefill prefill_of_call(const Spec& spec, const Target& target, const Shape& shape,
                            const CallSplit& split);

}  // namespace tilewright
