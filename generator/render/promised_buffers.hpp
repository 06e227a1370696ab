#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../snippet/spec_facts.hpp"

namespace tilewright {

/// A buffer whose rows the proofs of mask_mod take as sorted, because the spec promises it.
struct PromisedBuffer {
  std::size_t buffer;  ///< in the order of the spec's names
  std::string name;
};

/// Each promised integer buffer that mask_mod mentions. Proofs do not read floats.
std::vector<PromisedBuffer> promised_buffers(const SpecFacts& facts);

}  // namespace tilewright
