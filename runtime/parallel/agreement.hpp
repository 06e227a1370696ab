#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../base/error.hpp"
#include "../api/communicator.hpp"

namespace tilewright::parallel {

/// Something that all ranks must have alike, with its name for messages.
struct Fact {
  std::string name;
  std::string value;
};

/// Compares the facts of all ranks, which have the same names in the same order or lack some.
/// @throws Error with `code`, on each rank with the same text: "head_dim is 64 on rank 0 and 128 on
///         rank 2"
void require_agreement(Communicator& communicator, const std::vector<Fact>& facts, ErrorCode code);

/// Numbers of all ranks: as many from each, those of rank 0 first.
std::vector<std::int64_t> gather_numbers(Communicator& communicator,
                                         const std::vector<std::int64_t>& mine);

}  // namespace tilewright::parallel
