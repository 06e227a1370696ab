#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../generator/spec/spec.hpp"
#include "../runtime/api/tensor.hpp"
#include "../verify/guarded_tensor.hpp"
#include "../verify/problem.hpp"
#include "../verify/random.hpp"
#include "../verify/random_pages.hpp"
#include "packed_relation_calls.hpp"
#include "packing.hpp"

namespace tilewright::verify::fuzz {

/// How the columns of a packed call lie in pages.
struct PageForm {
  PageOptions pages = {};
  bool has_ends = false;           ///< of a flat table: page_begin is i64 [batch + 1]
  bool is_x = false;               ///< pools are of paged_x
  bool heads_first = false;        ///< pools are [pages, heads, page_size, dim] in memory
  Placement pool = {};             ///< of the pools in memory
  std::int64_t table_padding = 0;  ///< elements between the rows of a table
};

/// Whether k and v of a spec can lie in the pages of paged_x.
bool suits_paged_x(const Spec& spec);

/// @param longest columns of the longest sequence: a page of a static cache holds as many
PageForm random_page_form(Random& random, std::int64_t longest);

/// A packed call whose k and v lie in pages of two pools. All other rows of the pools are NaN.
class PagedCall {
 public:
  /// A page of a sequence.
  struct Entry {
    std::size_t sequence = 0;
    std::int64_t index = 0;  ///< among the sequence's pages
  };

  /// @param call must outlive it
  /// @param form is_x for specs that suits_paged_x()
  PagedCall(const PackedRelationCall& call, const PageForm& form, std::uint64_t seed);

  const Spec& spec() const { return spec_; }
  /// Views; this must outlive them.
  Problem problem() const;
  /// Rows of a page.
  std::int64_t page_size() const { return form_.pages.page_size; }

  /// Entries of the table that have columns; none without a table.
  std::vector<Entry> entries() const;
  /// Writes an entry of the table: -1 is a freed page, a number that no page has an absent one.
  void set_entry(const Entry& entry, std::int32_t page);

  /// Moves each sequence's last columns, as many as it has rows of q, out of the pools into new
  /// rows of the spec's dtype, as append and kv_new take them.
  /// Not of paged_x.
  void take_new_rows();
  /// Entries that only new rows need become pages that do not exist.
  void forget_new_pages();
  const TensorView& k_new() const { return k_new_->view(); }
  const TensorView& v_new() const { return v_new_->view(); }

 private:
  void remember_rows();
  void place_table(std::int64_t batch);
  std::int64_t slot_of(std::size_t sequence, std::int64_t column) const;
  TensorView pages_of(const GuardedTensor& pool) const;
  GuardedTensor pool_of(const Tensor& rows) const;
  GuardedTensor moved_out_of(const GuardedTensor& pool) const;
  std::int64_t context_of(std::size_t sequence) const;

  const PackedRelationCall& call_;
  PageForm form_;
  Spec spec_;
  RandomPages made_;
  SequenceMemory memory_;
  std::optional<GuardedTensor> table_ = {}, begins_ = {}, old_rows_ = {};
  std::string old_rows_name_ = {};
  std::vector<std::int64_t> first_entries_ = {};  // of each sequence, as elements of the table
  std::optional<GuardedTensor> k_ = {}, v_ = {}, k_new_ = {}, v_new_ = {};
  std::optional<GuardedTensor> x_k_ = {}, x_v_ = {};  // k and v as paged_x has them
};

}  // namespace tilewright::verify::fuzz
