#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "generator/spec.hpp"
#include "runtime/shape.hpp"

namespace tilewright::cli {

/// What a bench measures. Sizes that are 0 are chosen by the suite.
struct BenchArguments {
  std::optional<Spec> spec;  ///< the user's own, in place of the suite's
  DType dtype = DType::f32;
  std::int64_t head_dim = 64;
  std::int64_t batch = 1;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::vector<int> threads;  ///< empty: every thread of the machine
  std::uint64_t seed = 0;
  double budget_ms = 500;  ///< of measuring, for each row
  bool json = false;       ///< only for how progress is shown
};

/// The same results for people and for programs.
struct BenchResults {
  Table table;
  Json rows = Json::array();
};

/// The names of the suites: "dense", "mods", ...
const std::vector<std::string>& bench_suites();

/// @throws Error with code usage for an unknown suite
BenchResults run_suite(const std::string& suite, const BenchArguments& arguments);

}  // namespace tilewright::cli
