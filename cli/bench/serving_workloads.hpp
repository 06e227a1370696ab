#pragma once

#include <vector>

#include "cli/bench/packed_rows.hpp"

namespace tilewright::cli {

/// All rows of the suite serving: packed prompts of equal and unequal lengths, what masks and
/// modifications of scores cost them, and their plans. A spec of the user's takes the batches
/// alone.
std::vector<PackedRow> serving_rows(const BenchArguments& arguments);

}  // namespace tilewright::cli
