#include "cli/bench/packed_rows.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/own_workload.hpp"
#include "cli/bench/paged_workloads.hpp"
#include "cli/bench/serving_workloads.hpp"
#include "cli/bench/workloads.hpp"

namespace tilewright::cli {
namespace {

// "causal bf16 d128 random:32,8/..., 1x16384 to dense"
std::string description_of_row(const PackedRow& row) {
  std::string text = fmt::format("{}, {}", description_of(row.workload), row.name);
  if (row.reference) text += " to " + row.reference->name;
  return text;
}

std::vector<PackedRow> all_rows(const std::string& suite, const BenchArguments& arguments) {
  if (!arguments.inputs.empty()) {
    return {{.name = arguments.inputs, .workload = own_workload(arguments)}};
  }
  return suite == "paged" ? paged_rows(arguments) : serving_rows(arguments);
}

}  // namespace

bool makes_packed_calls(const std::string& suite) {
  return suite == "serving" || suite == "paged";
}

std::vector<PackedRow> packed_rows(const std::string& suite, const BenchArguments& arguments) {
  std::vector<PackedRow> rows = all_rows(suite, arguments);
  keep_wanted(rows, arguments.only, description_of_row);
  return rows;
}

std::int64_t rows_in_all(const BenchArguments& arguments) {
  if (arguments.q_len != 0) return arguments.q_len;
  return on_gpu(arguments) ? kRowsInAll : usual_length(arguments.device);
}

verify::PackedLengths lengths_of_heads(const BenchArguments& arguments, PackedHeads otherwise) {
  if (arguments.heads != 0) otherwise = {arguments.heads, arguments.heads};
  if (arguments.kv_heads != 0) otherwise.of_kv = arguments.kv_heads;
  return {.num_q_heads = otherwise.of_q, .num_kv_heads = otherwise.of_kv};
}

}  // namespace tilewright::cli
