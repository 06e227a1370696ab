#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/inputs.hpp"
#include "generator/snippet/notes.hpp"
#include "generator/spec/spec.hpp"

namespace tilewright::cli {

/// How many elements of a result are NaN in the reference, and so are right as NaN.
struct NanCount {
  std::string tensor;  ///< "out", "dq", "d_slopes"
  std::int64_t nan = 0;
  std::int64_t judged = 0;
};

/// Says where NaN is right, and which inputs it comes from. None where it is right nowhere.
std::optional<SnippetNote> nan_note(const Spec& spec, const CallInputs& inputs,
                                    const std::vector<NanCount>& counts);

}  // namespace tilewright::cli
