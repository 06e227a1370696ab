// Compiles kernels for GPUs, without one, and judges what ptxas says of them (kernels.hpp).
// Compares kernel_resources.tsv with what it sees. Exit status 1 where anything is wrong.
//
//     compile_matrix                    a sample
//     compile_matrix --full             every example and variant for every target: the kernel that
//                                       `run` launches, and a sample of the others
//     compile_matrix --all              every kernel of theirs: a quarter of an hour on two cores
//     compile_matrix --write-table      writes kernel_resources.tsv
//     ... --list                        says what it would compile, and compiles nothing
//     ... NAME...                       only specs whose name contains one of the words
//
// TILEWRIGHT_TEST_FULL         all: as --full; 1: the day's eighth of that (TILEWRIGHT_TEST_SEED)
// TILEWRIGHT_TEST_NEEDS_NVRTC  1: without NVRTC it fails; else it says "[SKIP]"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/thread_pool.hpp"
#include "tests/compile_matrix/kernels.hpp"
#include "tests/compile_matrix/progress.hpp"
#include "tests/compile_matrix/resource_table.hpp"
#include "tests/compile_matrix/wishes.hpp"
#include "tests/support/cpu_seconds.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/nvrtc.hpp"
#include "tests/support/skip.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::compile_matrix;

const std::string kRoot = TILEWRIGHT_SOURCE_DIR;
const std::string kTablePath = kRoot + "/tests/compile_matrix/kernel_resources.tsv";

struct Settings {
  bool full = false;
  bool all = false;
  std::size_t shares = 1;  // of the full list of kernels, one share is compiled
  bool write_table = false;
  bool list = false;
  std::vector<std::string> names;

  bool wants(const Spec& spec) const {
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& word) {
             return spec.name.find(word) != std::string::npos;
           });
  }
};

Settings read_settings(int argc, char** argv) {
  Settings settings;
  settings.full = is_full_run();
  settings.shares = is_full_run() && !is_whole_run() ? 8 : 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--full") {
      settings.full = true;
      settings.shares = 1;
    } else if (argument == "--all") {
      settings.full = settings.all = true;
      settings.shares = 1;
    } else if (argument == "--write-table") {
      settings.write_table = true;
    } else if (argument == "--list") {
      settings.list = true;
    } else {
      settings.names.push_back(argument);
    }
  }
  return settings;
}

// A spec's kernels for each target stand in a row. The next spec begins one share later, so that
// each share holds every target.
void keep_share(std::vector<Wish>& wishes, std::size_t shares) {
  std::size_t position = 0;
  std::erase_if(wishes, [&](const Wish&) {
    const std::size_t spec = position / targets().size();
    return !is_in_share(position++ + spec, shares);
  });
}

void append(std::vector<Wish>& wishes, const std::vector<Wish>& more) {
  wishes.insert(wishes.end(), more.begin(), more.end());
}

std::vector<Wish> matrix_wishes(const Settings& settings) {
  std::vector<Spec> examples = specs_of(kRoot + "/examples");
  std::vector<Spec> specs = examples;
  for (Spec& packed : as_packed(examples)) specs.push_back(packed);
  for (Spec& variant : specs_of(kRoot + "/tests/battery/variants")) specs.push_back(variant);
  const auto unwanted = [&](const Spec& spec) { return !settings.wants(spec); };
  std::erase_if(examples, unwanted);
  std::erase_if(specs, unwanted);
  std::vector<Wish> others = gradient_wishes();
  append(others, difference_wishes());
  append(others, dropout_wishes());
  append(others, one_byte_wishes());
  std::erase_if(others, [&](const Wish& wish) { return unwanted(wish.spec); });
  if (!settings.full) return sample_wishes(specs);
  std::vector<Wish> wishes = settings.all ? all_wishes(specs) : main_wishes(specs);
  append(wishes, tight_wishes(examples));
  append(wishes, others);
  keep_share(wishes, settings.shares);
  if (!settings.all) append(wishes, sample_wishes(specs));
  return wishes;
}

// Side by side over the cores of this process.
std::vector<Outcome> compile_all(const std::vector<Kernel>& kernels) {
  std::vector<Outcome> outcomes(kernels.size());
  Progress progress(kernels.size());
  ThreadPool::shared().parallel_for(static_cast<std::int64_t>(kernels.size()),
                                    [&](std::int64_t item, int) {
                                      const auto i = static_cast<std::size_t>(item);
                                      outcomes[i] = compile(kernels[i]);
                                      progress.one_more(!problems(kernels[i], outcomes[i]).empty());
                                    });
  return outcomes;
}

int report_problems(const std::vector<Kernel>& kernels, const std::vector<Outcome>& outcomes) {
  int wrong = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::vector<std::string> found = problems(kernels[i], outcomes[i]);
    if (found.empty()) continue;
    ++wrong;
    fmt::print("WRONG {}\n", kernels[i].wishes.front().describe());
    for (const std::string& line : found) fmt::print("      {}\n", line);
  }
  return wrong;
}

bool is_row(const Wish& wish, const std::vector<Wish>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const Wish& row) {
    return row.spec == wish.spec && row.target == wish.target && row.kernel == wish.kernel;
  });
}

ResourceTable fresh_table(const std::vector<Kernel>& kernels, const std::vector<Outcome>& outcomes,
                          const std::vector<Wish>& rows) {
  ResourceTable table;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (!outcomes[i].error.empty()) continue;
    for (const Wish& wish : kernels[i].wishes) {
      if (is_row(wish, rows)) table.add(wish, outcomes[i]);
    }
  }
  return table;
}

// Figures are a compiler's own; which rows there are is ours.
int report_differences(const ResourceTable& fresh, const std::vector<Wish>& rows) {
  const ResourceTable recorded = ResourceTable::read(kTablePath);
  const bool is_comparable = recorded.compiler() == fresh.compiler();
  if (!is_comparable) {
    fmt::print("[SKIP] figures of kernel_resources.tsv: they are of ptxas {}, this is {}\n",
               recorded.compiler(), fresh.compiler());
  }
  const std::vector<std::string> differences =
      recorded.differences(is_comparable ? fresh : ResourceTable(), rows);
  for (const std::string& line : differences) fmt::print("CHANGED {}\n", line);
  if (!differences.empty()) {
    fmt::print("kernel_resources.tsv is out of date: run scripts/kernel_resources.sh\n");
  }
  return static_cast<int>(differences.size());
}

std::vector<Wish> wishes_of(const Settings& settings, const std::vector<Wish>& rows) {
  if (settings.write_table) return rows;
  std::vector<Wish> wishes = matrix_wishes(settings);
  if (!settings.names.empty()) return wishes;
  std::size_t position = 0;
  for (const Wish& row : rows) {
    const bool due = settings.full && is_in_share(position++, settings.shares);
    if (due || ResourceTable::is_in_sample(row)) wishes.push_back(row);
  }
  return wishes;
}

int run(const Settings& settings) {
  const std::vector<Wish> rows =
      ResourceTable::wishes(spec_from_file(kRoot + "/examples/alibi_documents.json"));
  const std::vector<Wish> wishes = wishes_of(settings, rows);
  if (wishes.empty()) {
    fmt::print("no spec has such a name\n");
    return 1;
  }
  const Progress clock(0);
  const std::vector<Kernel> kernels = distinct_kernels(wishes);
  if (settings.list) {
    for (const Kernel& kernel : kernels) fmt::print("{}\n", kernel.wishes.front().describe());
    fmt::print("{} kernels\n", kernels.size());
    return 0;
  }
  const std::vector<Outcome> outcomes = compile_all(kernels);
  int wrong = report_problems(kernels, outcomes);
  const ResourceTable fresh = fresh_table(kernels, outcomes, rows);
  if (settings.write_table) write_text_file(kTablePath, fresh.text());
  if (!settings.write_table && settings.names.empty()) wrong += report_differences(fresh, rows);
  fmt::print(
      "{} kernels ({} before equal sources were joined), {} wrong; {:.0f} s, {:.0f} s of "
      "CPU\n",
      kernels.size(), wishes.size(), wrong, clock.seconds(), cpu_seconds());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (test::nvrtc_is_missing()) return test::kSkipped;
    return run(read_settings(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
