#pragma once

#include <array>
#include <memory>
#include <vector>

#include "../../generator/render/extrema_table.hpp"
#include "../../templates/abi/extrema.hpp"
#include "../api/block_mask.hpp"
#include "../api/executor.hpp"
#include "../library/kernel_library.hpp"
#include "arguments.hpp"

namespace tilewright::cpu {

/// Tables of least and greatest values that a call's buffers have, filled for mask_proved.
class FilledTables {
 public:
  const abi::ExtremaTables* pointer() const { return &tables_; }

 private:
  friend class MaskKernel;
  std::vector<std::vector<long long>> memory_;
  abi::ExtremaTables tables_ = {};
};

/// A loaded kernel that decides tiles of a mask: mask_proved, mask_exact, plan_proved or
/// plan_exact.
class MaskKernel {
 public:
  explicit MaskKernel(std::shared_ptr<const LoadedKernel> kernel);

  const KernelBuild& build() const { return kernel_->build; }
  /// Whether intervals decide tiles, and evaluation those that are left.
  bool proves() const { return extrema_entry_ != nullptr; }

  /// @param fingerprint its batch and heads say how many lists are made
  /// @param shape the call's, which the snippet sees
  BlockMask run(MaskFingerprint fingerprint, const Shape& shape, const BindingArguments& bindings,
                Executor& threads) const;

  /// The tables that its rows read, made by all threads.
  FilledTables fill_tables(const std::array<std::int64_t, 2>& block,
                           const abi::SnippetArguments& arguments, Executor& threads) const;

  /// Decides a row of tiles of one batch and head.
  /// @param runs room for each kv block: end << 2 | abi::TileState of each run of tiles
  /// @param evaluated grows by the tiles that were evaluated element by element
  /// @return the number of runs
  int decide_row(const abi::SnippetArguments& arguments, const FilledTables& tables, int b, int h,
                 int q_block, unsigned* runs, long long* evaluated) const {
    return row_entry_(&arguments, tables.pointer(), b, h, q_block, runs, evaluated);
  }

 private:
  using RowEntry = int(const abi::SnippetArguments*, const abi::ExtremaTables*, int b, int h,
                       int q_block, unsigned* runs, long long* evaluated);
  using ExtremaEntry = void(const abi::SnippetArguments*, const abi::ExtremaTables*, int table,
                            long long row);

  std::shared_ptr<const LoadedKernel> kernel_;
  RowEntry* row_entry_;
  ExtremaEntry* extrema_entry_ = nullptr;  // of mask_proved and plan_proved
  std::vector<ExtremaTable> tables_;       // likewise
};

}  // namespace tilewright::cpu
