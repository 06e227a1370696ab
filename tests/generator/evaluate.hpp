#pragma once

// Runs the snippets of a spec alone, in one interpretation, over one row of scores.

#include <string>
#include <vector>

#include "generator/render/templates.hpp"
#include "tests/generator/cpu_kernel.hpp"

namespace tilewright::test {

struct Row {
  std::vector<double> modified;
  std::vector<int> keep;
};

/// `kernel`: "evaluate_float", "evaluate_double" (Score double) or "evaluate_checked".
template <typename Score>
Row evaluate(const Spec& spec, const std::string& kernel, const abi::SnippetArguments& arguments,
             int row, double score) {
  const CompiledText object = load_kernel(spec, kernel);
  const auto size = static_cast<std::size_t>(arguments.kv_len);
  std::vector<Score> scores(size, static_cast<Score>(score)), modified(size);
  std::vector<unsigned char> keep(size, 7);
  object.symbol<void (*)(const abi::SnippetArguments*, int, int, int, const Score*, Score*,
                         unsigned char*)>("tilewright_evaluate_row")(
      &arguments, 0, 0, row, scores.data(), modified.data(), keep.data());
  return {{modified.begin(), modified.end()}, {keep.begin(), keep.end()}};
}

/// One batch and head, no buffers.
inline abi::SnippetArguments arguments_of(int q_len, int kv_len) {
  return {nullptr, nullptr, 1, 1, 1, q_len, kv_len, 0, 0};
}

struct Found {
  abi::Finding finding;
  Origin origin;
};

/// What the checked interpretation finds in a row of scores of 2.5.
inline std::vector<Found> check(const Spec& spec, const abi::SnippetArguments& arguments,
                                int row = 3) {
  const KernelSource source =
      render_kernel(spec, Target::host_cpu(), KernelVariant::parse("evaluate_checked"),
                    *default_template_loader());
  evaluate<float>(spec, "evaluate_checked", arguments, row, 2.5);
  abi::Finding findings[64];
  const int count =
      load_kernel(spec, "evaluate_checked")
          .symbol<int (*)(abi::Finding*, int)>("tilewright_take_findings")(findings, 64);
  std::vector<Found> found;
  for (int i = 0; i < count; ++i) {
    found.push_back({findings[i], source.map.origin_of(findings[i].line, findings[i].column)});
  }
  return found;
}

}  // namespace tilewright::test
