#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/suites.hpp"

namespace tilewright::cli {

/// A row of the suites serving and paged: a packed call, what it is compared with, and the bars.
struct PackedRow {
  /// A call whose rate the first one's is divided by.
  struct Reference {
    std::string name;
    Workload workload;
    bool of_tiles = false;  ///< rates count whole tiles that are visited; else elements
    bool batch_invariant = false;
  };

  std::string name;  ///< "8192+4096+2048+1024+8x128"
  Workload workload;
  std::optional<Reference> reference = {};
  double least_ratio = 0;      ///< 0: no bar
  double most_plan_ms = 0;     ///< of building the plan again
  double most_plan_share = 0;  ///< of forward's time
};

/// Whether it is serving or paged.
bool makes_packed_calls(const std::string& suite);

/// The rows of such a suite that --only names. A spec of the user's is measured on --inputs or on
/// the suite's batches. --q-len is the number of rows that most batches have; the lengths of their
/// sequences grow with it.
/// @throws Error as own_workload; as keep_wanted
std::vector<PackedRow> packed_rows(const std::string& suite, const BenchArguments& arguments);

/// Measures them.
BenchResults packed_suite(const std::vector<PackedRow>& rows, const BenchArguments& arguments);

/// Rows in all that the lengths of a suite's batches are written for.
inline constexpr std::int64_t kRowsInAll = 16384;

/// What they are scaled to: --q-len, else as the device works through in a fraction of a second.
std::int64_t rows_in_all(const BenchArguments& arguments);

struct PackedHeads {
  std::int64_t of_q, of_kv;
};

/// No sequences yet, with --heads and --kv-heads or these.
verify::PackedLengths lengths_of_heads(const BenchArguments& arguments, PackedHeads otherwise);

}  // namespace tilewright::cli
