#include "cli/bench/paged_workloads.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/bench/packed_workload.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"

namespace tilewright::cli {
namespace {

constexpr std::int64_t kPageSize = 16;
// What modifications of scores may cost a step that waits for memory, and pages a chunk of a
// prompt, and new rows outside of pages.
constexpr double kFreeModification = 0.98;
constexpr double kEqualToPacked = 0.95;
constexpr double kEqualToPages = 0.95;

// Sequences of equal lengths.
struct StepGroup {
  std::int64_t count, q_len, kv_len;
};
using Step = std::vector<StepGroup>;

class PagedRows {
 public:
  explicit PagedRows(const BenchArguments& arguments)
      : arguments_(arguments),
        dtype_(dtype_of(arguments)),
        head_dim_(head_dim_of(arguments)),
        rows_(rows_in_all(arguments)) {}

  std::vector<PackedRow> all() {
    for (const Step& step :
         std::vector<Step>{{{1, 1, 2048}},
                           {{1, 1, 8192}},
                           {{1, 1, 32768}},
                           {{1, 1, 131072}},
                           {{8, 1, 8192}},
                           {{64, 1, 8192}},
                           {{16, 1, 32768}},
                           {{256, 1, 2048}},
                           {{40, 1, 1024}, {16, 1, 4096}, {6, 1, 16384}, {2, 1, 65536}}}) {
      add(plain(), step, kPageSize);
    }
    add(plain(), {{64, 1, 8192}}, 64);
    add_modifications();
    add_window();
    add_chunks({{8, 512, 8192}});
    add_chunks({{2, 2048, 32768}});
    add_new_rows({{64, 1, 8192}}, kPageSize);
    add_new_rows({{8, 512, 8192}}, kPageSize);
    add_new_rows({{8, 512, 8192}}, 64);
    add_new_rows({{8, 509, 8101}}, kPageSize);  // a tile has rows of pages and new ones
    add(as_paged(causal_variant(dtype_, head_dim_)), {{60, 1, 4096}, {4, 1024, 4096}}, kPageSize);
    return std::move(all_);
  }

 private:
  Spec plain() const { return as_paged(dense_variant(dtype_, head_dim_)); }

  void add_modifications() {
    const Step step = {{64, 1, 8192}};
    for (const char* const name : {"alibi", "softcap"}) {
      PackedRow& row = add(as_paged(long_variant(name, dtype_, head_dim_)), step, kPageSize);
      compare(row, "decode", packed_workload(plain(), *row.workload.lengths), kFreeModification);
    }
  }

  // The last thousand columns of long sequences take as long as sequences of a thousand.
  void add_window() {
    constexpr double kMostOfShortSequences = 1.15;
    PackedRow& row =
        add(as_paged(long_variant("window_1024", dtype_, head_dim_)), {{64, 1, 32768}}, kPageSize);
    compare(row, "decode of 1k", workload_of(plain(), {{64, 1, 1024}}, kPageSize),
            1 / kMostOfShortSequences);
  }

  // Rows of a prompt whose first part is in pages already.
  void add_chunks(const Step& step) {
    const Spec causal = causal_variant(dtype_, head_dim_);
    for (const std::int64_t page_size : {kPageSize, std::int64_t{64}}) {
      PackedRow& row = add(as_paged(causal), step, page_size);
      compare(row, "packed", workload_of(as_packed(causal), step, 0), kEqualToPacked);
    }
  }

  // The step's rows outside of pages, compared with all columns in pages.
  void add_new_rows(const Step& step, std::int64_t page_size) {
    const Spec causal = as_paged(causal_variant(dtype_, head_dim_));
    Spec with_new_rows = causal;
    with_new_rows.name += "_kv_new";
    with_new_rows.kv_new = true;
    compare(add(with_new_rows, step, page_size), "all in pages",
            workload_of(causal, step, page_size), kEqualToPages);
  }

  static void compare(PackedRow& row, std::string name, Workload workload, double least_ratio) {
    row.reference = {.name = std::move(name), .workload = std::move(workload)};
    row.least_ratio = least_ratio;
  }

  std::int64_t shrunk(std::int64_t length) const {
    return std::max<std::int64_t>(1, length * rows_ / kRowsInAll);
  }

  Workload workload_of(const Spec& spec, const Step& step, std::int64_t page_size) const {
    verify::PackedLengths lengths = lengths_of_heads(arguments_, {32, 8});
    lengths.pages.page_size = page_size;
    for (const StepGroup& group : step) {
      const std::int64_t q_len = group.q_len == 1 ? 1 : shrunk(group.q_len);
      lengths.sequences.insert(lengths.sequences.end(), static_cast<std::size_t>(group.count),
                               {q_len, std::max(q_len, shrunk(group.kv_len))});
    }
    return packed_workload(spec, lengths);
  }

  PackedRow& add(const Spec& spec, const Step& step, std::int64_t page_size) {
    std::string name;
    for (const StepGroup& group : step) {
      name += fmt::format("{}{}x{}:{}", name.empty() ? "" : "+", group.count,
                          group.q_len == 1 ? 1 : shrunk(group.q_len), shrunk(group.kv_len));
    }
    name += fmt::format("/{}", page_size);
    all_.push_back({.name = std::move(name), .workload = workload_of(spec, step, page_size)});
    return all_.back();
  }

  const BenchArguments& arguments_;
  DType dtype_;
  std::int64_t head_dim_;
  std::int64_t rows_;
  std::vector<PackedRow> all_;
};

}  // namespace

std::vector<PackedRow> paged_rows(const BenchArguments& arguments) {
  return PagedRows(arguments).all();
}

}  // namespace tilewright::cli
