#pragma once

#include <cstdint>
#include <vector>

namespace tilewright::verify {

/// Which weights of a call dropout keeps, by its definition in docs/spec.md and with none of the
/// kernels' code.
struct DropoutDraws {
  std::vector<double> p;  ///< [num_q_heads]: probabilities, each of them a float
  std::uint64_t seed = 0;
  std::int64_t first_b = 0;    ///< number of the problem's first batch
  std::int64_t q_offset = 0;   ///< q_idx = row + q_offset
  std::int64_t kv_offset = 0;  ///< kv_idx = column + kv_offset
  /// Of a problem whose columns stand in another order: the column that each was.
  std::vector<std::int64_t> columns = {};

  bool keeps(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) const;
  /// 0, or what a weight is multiplied by.
  double factor(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) const;
  /// What kept weights of a head are multiplied by.
  double keeping_factor(std::int64_t h) const;
};

}  // namespace tilewright::verify
