#pragma once

#include <optional>
#include <string>

#include "../verify/attention_values.hpp"
#include "../verify/guarded_tensor.hpp"
#include "../verify/problem.hpp"
#include "case.hpp"

namespace tilewright::verify::fuzz {

/// The memory that one forward of a case writes to, with red zones.
struct Written {
  /// How out lies in memory: as the case says, or with its dimensions in another order and wider
  /// gaps, which a kernel of the same kind must serve too, with the same bits.
  enum class Order { of_case, other };

  explicit Written(const FuzzCase& fuzz_case, Order order = Order::of_case);

  const TensorView& out_view() const { return out_view_; }  ///< [batch, ...] as a call takes it

  AttentionValues values() const;

  /// "out was written to: 3 elements after its end ..."; empty where nothing around the
  /// outputs was.
  std::string damage() const;

  /// "row 17 of out belongs to no sequence and was written to", of a packed call; else empty.
  std::string touched_row(const Problem& problem) const;

  GuardedTensor out;  ///< its dimensions in the order of memory
  std::optional<GuardedTensor> lse;
  std::optional<GuardedTensor> max_scores;
  std::optional<GuardedTensor> weights;  ///< of a dense call
  Layout layout;

 private:
  int row_dimension_;  // of out in a packed call, in the order of memory
  TensorView out_view_;
};

/// Whether each number has the bits of the other's, its zeros their signs. Any NaN is as good as
/// another: its payload is not promised.
bool same_bits(const Values& a, const Values& b);
/// The same of tensors of one shape.
bool same_bits(const TensorView& a, const TensorView& b);

}  // namespace tilewright::verify::fuzz
