#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/bench/suites.hpp"

namespace tilewright::cli {

/// What one of suites_of_calls() measures on a device: the user's spec and sizes where they were
/// given, else the suite's own.
/// @throws Error with code usage for another suite
std::vector<Workload> workloads(const std::string& suite, const BenchArguments& arguments);

/// Those of the suite backward, --only not yet applied: the specs name their gradients.
/// @throws Error with code usage for a spec of the user's that can have none
std::vector<Workload> backward_workloads(const BenchArguments& arguments);

/// Those of the suite splits, --only not yet applied.
std::vector<Workload> split_workloads(const BenchArguments& arguments);

/// "causal bf16 d128 batch 4, heads 16/16, q 4096, kv 4096"; of a packed call as --inputs has it.
std::string description_of(const Workload& workload);

/// Erases the rows whose description does not hold the text.
/// @throws Error with code usage where none is left; it lists the rows
template <typename Row, typename Describe>
void keep_wanted(std::vector<Row>& rows, const std::string& text, Describe describe);

/// That error, of a suite whose rows have these descriptions.
Error no_such_row(const std::string& text, const std::vector<std::string>& rows);

/// The shape of one call, from the arguments and what the suite chooses where they are 0.
Shape shape_of(const BenchArguments& arguments, const Shape& otherwise);

/// A length that the device works through in a fraction of a second.
std::int64_t usual_length(const Device& device);

/// The dtype and head_dim of the arguments; by default bf16 and 128 on a GPU, f32 and 64 on a CPU.
DType dtype_of(const BenchArguments& arguments);
std::int64_t head_dim_of(const BenchArguments& arguments);

/// The user's spec alone, else these.
std::vector<Spec> own_or(const BenchArguments& arguments, std::vector<Spec> specs);

/// The variants of the suites mods and compile.
std::vector<Spec> variants_of(const BenchArguments& arguments);

/// The sides of a block mask's tiles that Hopper's dense kernel is fastest on.
std::array<std::int64_t, 2> fastest_block(const Spec& spec, const std::string& target,
                                          std::int64_t length);

bool on_gpu(const BenchArguments& arguments);

template <typename Row, typename Describe>
void keep_wanted(std::vector<Row>& rows, const std::string& text, Describe describe) {
  std::vector<std::string> descriptions;
  for (const Row& row : rows) descriptions.push_back(describe(row));
  std::erase_if(rows,
                [&](const Row& row) { return describe(row).find(text) == std::string::npos; });
  if (rows.empty()) throw no_such_row(text, descriptions);
}

}  // namespace tilewright::cli
