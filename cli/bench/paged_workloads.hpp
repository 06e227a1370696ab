#pragma once

#include <vector>

#include "cli/bench/packed_rows.hpp"

namespace tilewright::cli {

/// All rows of the suite paged: steps of decoding and chunks of prompts over k and v in pages, and
/// what they are compared with.
std::vector<PackedRow> paged_rows(const BenchArguments& arguments);

}  // namespace tilewright::cli
