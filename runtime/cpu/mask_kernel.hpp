#pragma once

#include <array>
#include <memory>
#include <vector>

#include "../../generator/render/extrema_table.hpp"
#include "../../templates/abi/extrema.hpp"
#include "../api/block_mask.hpp"
#include "../api/thread_pool.hpp"
#include "../library/kernel_library.hpp"
#include "arguments.hpp"

namespace tilewright::cpu {

/// A loaded kernel that decides the tiles of a block mask: mask_proved or mask_exact.
class MaskKernel {
 public:
  explicit MaskKernel(std::shared_ptr<const LoadedKernel> kernel);

  const KernelBuild& build() const { return kernel_->build; }

  /// @param fingerprint its batch and heads say how many lists are made
  /// @param shape the call's, which the snippet sees
  BlockMask run(MaskFingerprint fingerprint, const Shape& shape, const BindingArguments& bindings,
                ThreadPool& threads) const;

 private:
  using RowEntry = int(const abi::SnippetArguments*, const abi::ExtremaTables*, int b, int h,
                       int q_block, unsigned* runs, long long* evaluated);
  using ExtremaEntry = void(const abi::SnippetArguments*, const abi::ExtremaTables*, int table,
                            long long row);
  class Tables;

  std::shared_ptr<const LoadedKernel> kernel_;
  RowEntry* row_entry_;
  ExtremaEntry* extrema_entry_ = nullptr;  // of mask_proved
  std::vector<ExtremaTable> tables_;       // likewise
};

}  // namespace tilewright::cpu
