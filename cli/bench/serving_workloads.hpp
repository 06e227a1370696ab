#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/bench/suites.hpp"

namespace tilewright::cli {

/// A row of the suite serving: a packed call, what it is compared with, and the bars.
struct ServingRow {
  /// A call whose rate the first one's is divided by.
  struct Reference {
    std::string name;
    Workload workload;
    bool of_tiles = false;  ///< rates count whole tiles that are visited; else elements
  };

  std::string name;  ///< "8192+4096+2048+1024+8x128"
  Workload workload;
  std::optional<Reference> reference = {};
  double least_ratio = 0;      ///< 0: no bar
  double most_plan_ms = 0;     ///< of building the plan again
  double most_plan_share = 0;  ///< of forward's time
};

/// The user's spec, on --inputs or on the suite's batches, or else the rows of the suite that
/// --only names. --q-len
/// is the number of rows that most of them have; the lengths of sequences grow with it.
/// @throws Error with code usage for --batch and --kv-len; as own_workload; as keep_wanted
std::vector<ServingRow> serving_rows(const BenchArguments& arguments);

}  // namespace tilewright::cli
