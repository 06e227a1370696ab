#pragma once

#include <iosfwd>

#include "cli/bench/suites.hpp"

namespace tilewright::cli {

/// Answers requests, one JSON object a line, with one row of the suite a line, until the input
/// ends. A program that measures something else in turn keeps the data and kernels of a row this
/// way.
///
///     {"spec": {...}, "batch": 2, "heads": 16, "kv_heads": 16, "q_len": 8192, "kv_len": 8192,
///      "seed": 7, "buffers": "F.safetensors", "budget_ms": 200, "hot": false}
///
/// All but the spec may be left out, as on the command line; a packed spec needs "inputs" in place
/// of sizes: "random:32,8/8192:8192,1:100x4". A request that repeats one of the last `kept`
/// different ones, budget_ms and hot aside, is measured on the same tensors; the tensors of so many
/// lie on the device at once. What goes wrong is answered as {"error": {...}}.
void serve(std::istream& requests, const BenchArguments& defaults, std::size_t kept);

}  // namespace tilewright::cli
