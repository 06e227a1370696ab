#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../runtime/api/tensor.hpp"

namespace tilewright::verify {

/// How the pages of a random call lie.
struct PageOptions {
  /// Which tensors say where a sequence's pages are.
  enum class Table : std::uint8_t {
    rows,  ///< page_table [batch, columns]
    flat,  ///< page_table [entries] and page_begin [batch]
    none,  ///< sequence b has page b
  };

  std::int64_t page_size = 0;  ///< 0: k and v are packed
  std::int64_t pages = 0;      ///< of the pool; 0: a quarter more than needed
  Table table = Table::rows;
  std::int64_t shared_columns = 0;  ///< whose whole pages all sequences share
};

/// Pages of a pool, in random order, for sequences of these lengths.
struct RandomPages {
  std::int64_t pages = 0;            ///< of the pool
  std::optional<Tensor> page_table;  ///< unused entries are -1 and unused pages, in turn
  std::optional<Tensor> page_begin;  ///< i32
  std::vector<bool> is_used;         ///< [pages * page_size]: some sequence's column
};

/// Pages that the pool has.
/// @throws Error with code usage where options.pages are too few
std::int64_t pages_of_pool(const std::vector<std::int64_t>& kv_lens, const PageOptions& options);

/// @throws Error as pages_of_pool
RandomPages random_pages(const std::vector<std::int64_t>& kv_lens, const PageOptions& options,
                         std::uint64_t seed);

}  // namespace tilewright::verify
